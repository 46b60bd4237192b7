//! The client of another tenant answers the question about an outcome: it learns nothing, and the attempt is reported
//! to operators.

use std::sync::Mutex;

use tool_runtime::call::DecisionError;
use tool_runtime::runner::Failure;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_tenant_about_an_outcome_is_reported() {
    let (rig, told) = (Rig::new(), Arc::new(Mutex::new(Vec::new())));
    let sink = Arc::clone(&told);
    let failed = move |failure: &Failure<'_>| {
        let call = failure.call_id.map_or("", CallId::as_str);
        sink.lock().unwrap().push([failure.code, failure.tool.unwrap_or(""), call].map(str::to_owned));
    };
    let policy = ToolPolicy::from_toml(&format!("{ALLOWED}{ASKS}{OWN}")).unwrap();
    let gate = ToolRunner::builder(catalog(), policy)
        .capabilities(rig.capabilities())
        .approvals(true)
        .clock(Arc::clone(&rig.shared.clock))
        .store(Arc::clone(&rig.shared.store))
        .failures(failed)
        .build()
        .unwrap();
    let party = |peer: &Peer<'_>| {
        let who = peer.header("x-user")?;
        Some(RunOptions::new().principal(who).tenant(if who == "eve" { "other" } else { "acme" }))
    };
    let served = McpServer::builder(gate, party).ask_clients(true).build().unwrap();
    let forms = Patient { forms: true, ..NEW };
    let (ada, eve) = (over_http_as(&served, "ada", forms).await, over_http_as(&served, "eve", forms).await);
    let id = rig.task(&ada, "bank__pay", "b-1").await;
    let (key, _) = asked(&ada, &id).await;
    told.lock().unwrap().clear();
    let (run, call) = id.rsplit_once('.').unwrap();
    let happened = || fill(json!({"outcome": "happened", "result": "forged"}));
    let update = |id: &str, answer: Value| UpdateTaskParams::new(id, [(key.clone(), answer)].into());

    let refused = code(eve.update_task(update(&id, happened())).await.unwrap_err());
    let reported = || [["decider_tenant".to_owned(), "bank__pay".to_owned(), call.to_owned()]].to_vec();
    assert_eq!(*told.lock().unwrap(), reported());
    // The state of a held request, from a client that is asked in the answer of its request.
    let mut again = request("bank__pay", json!({"bill": "b-1"}));
    (again.request_state, again.input_responses) = (Some(id.clone()), Some([(key.clone(), happened())].into()));
    let held = code(eve.call_tool_once(again).await.unwrap_err());
    assert_eq!(*told.lock().unwrap(), [reported(), reported()].concat());
    // What states nothing, and a task that does not exist.
    let never = format!("{run}0.{call}");
    for (id, answer) in
        [(&never, happened()), (&id, json!({"action": "decline"})), (&id, fill(json!({"outcome": "x"})))]
    {
        assert_eq!(code(eve.update_task(update(id, answer)).await.unwrap_err()), refused);
    }
    let mut unknown = request("bank__pay", json!({"bill": "b-1"}));
    (unknown.request_state, unknown.input_responses) = (Some(never), Some([(key.clone(), happened())].into()));
    assert_eq!(code(eve.call_tool_once(unknown).await.unwrap_err()), held);
    assert_eq!(told.lock().unwrap().len(), 2);

    let decisions = rig.decisions().await;
    assert!(
        decisions.iter().all(|(_, record)| record.mismatch() == Some(DecisionError::DeciderTenant)),
        "{decisions:?}"
    );
    assert_eq!((decisions.len(), rig.unsettled().await), (2, 1));
    answer(&ada, &id, &key, fill(json!({"outcome": "happened", "result": "paid"}))).await;
    assert!(said(&get(&ada, &id).await.unwrap()).1.contains("paid"));
    assert_eq!(rig.unsettled().await, 0);
}
