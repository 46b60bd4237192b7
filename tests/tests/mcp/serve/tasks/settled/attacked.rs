//! Answers that no honest client sends, and tools that fail while they reconcile.

use std::sync::atomic::AtomicBool;

use tool_runtime::call::Violation;
use tool_runtime::error::Problem;
use tool_runtime::schema::validator::{Compiled, Tree, Validator};
use tool_runtime::tool::Schema;

use super::*;

/// Accepts the arguments of the tools only while the switch is off.
#[derive(Clone)]
struct Fickle(Arc<AtomicBool>, bool);

impl Validator for Fickle {
    fn name(&self) -> &'static str {
        "fickle"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn compile(&self, schema: &Schema) -> Result<Arc<dyn Compiled>, Problem> {
        Ok(Arc::new(Self(Arc::clone(&self.0), schema.as_str().contains("\"bill\""))))
    }
}

impl Compiled for Fickle {
    fn check(&self, _: &Tree<'_>) -> Result<(), Vec<Violation>> {
        let refuses = self.1 && self.0.load(Ordering::Acquire);
        if refuses { Err(vec![Violation::new("/bill", "fickle", "not now")]) } else { Ok(()) }
    }
}

/// All records, as text.
async fn text_of(rig: &Rig) -> String {
    serde_json::to_string(&rig.shared.store.records(&RecordFilter::default()).await.unwrap()).unwrap()
}

/// Answers under many keys of closed questions, in one message.
#[tokio::test(flavor = "multi_thread")]
async fn one_update_is_recorded_once() {
    let many = |id: &str, key: &dyn Fn(usize) -> String, answer: &Value| {
        let answers = (0..300).map(|number| (key(number), answer.clone())).collect();
        UpdateTaskParams::new(id, answers)
    };
    let no = fill(json!({"outcome": "did_not_happen"}));
    for policy in ["", OWN] {
        let rig = Rig::new();
        let client = piped(&rig.serve(policy), FORMS).await;
        let id = rig.task(&client, "bank__pay", "b-1").await;
        if policy.is_empty() {
            ended(&client, &id).await;
        } else {
            let (key, _) = asked(&client, &id).await;
            answer(&client, &id, &key, no.clone()).await;
        }
        let before = rig.settlements().await.len();
        client.update_task(many(&id, &|number| format!("outcome-{number}"), &no)).await.unwrap();
        assert_eq!(rig.settlements().await.len(), before + 1, "{policy}");
    }
    // The same for the question whether the call may run, which neither its principal nor a client of another tenant
    // may answer.
    let rig = Rig::new();
    let party = |peer: &Peer<'_>| {
        let tenant = if peer.header("x-user") == Some("eve") { "other" } else { "acme" };
        Some(RunOptions::new().principal("ada").tenant(tenant))
    };
    let served = McpServer::builder(rig.runner(""), party).ask_clients(true).build().unwrap();
    let client = over_http_as(&served, "ada", Patient { forms: true, ..NEW }).await;
    let id = task(&client, "bank__pay", json!({"bill": "b-1"})).await.task_id;
    let question = waiting(&*rig.shared.store).await[0].question();
    let key = |number| format!("approval-{number}-{question}");
    client.update_task(many(&id, &key, &fill(json!({"approve": true})))).await.unwrap();
    assert_eq!(refusals(&*rig.shared.store).await.len(), 1);
    let eve = over_http_as(&served, "eve", Patient { forms: true, ..NEW }).await;
    let stranger = eve.update_task(many(&id, &key, &fill(json!({"approve": true})))).await;
    assert_eq!(code(stranger.unwrap_err()).0, -32602);
    assert_eq!(refusals(&*rig.shared.store).await.len(), 2);
    assert_eq!((waiting(&*rig.shared.store).await.len(), rig.shared.effects()), (1, 0));
}

/// Forms that are not filled in as asked settle nothing, and leave the question open.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_answers_change_nothing() {
    let rig = Rig::new();
    let client = piped(&rig.serve(OWN), FORMS).await;
    let id = rig.task(&client, "bank__pay", "b-1").await;
    let (key, _) = asked(&client, &id).await;
    let deep = (0..90).fold(json!(1), |inner, _| json!([inner]));
    let long = "CANARY".repeat(100);
    for malformed in [
        json!({"action": "accept"}),
        json!({"action": "accept", "content": null}),
        json!({"action": "accept", "content": []}),
        json!({"action": "accept", "content": "happened"}),
        json!({"action": "perhaps", "content": {"outcome": "did_not_happen"}}),
        json!({"content": {"outcome": "did_not_happen"}}),
        json!([]),
        json!(null),
        fill(json!({})),
        fill(json!({"outcome": null})),
        fill(json!({"outcome": ["did_not_happen"]})),
        fill(json!({"outcome": "DID_NOT_HAPPEN"})),
        fill(json!({"outcome": "reconcile"})),
        fill(json!({"outcome": deep})),
        fill(json!({"outcome": "happened", "result": 7})),
        fill(json!({"outcome": "happened", "result": null})),
        fill(json!({"outcome": "did_not_happen", "reason": long})),
        fill(json!({"outcome": "did_not_happen", "reason": {"CANARY": 1}})),
    ] {
        let answered = async {
            answer(&client, &id, &key, malformed.clone()).await;
            asked(&client, &id).await.0
        };
        let now = tokio::time::timeout(Duration::from_hours(1), answered).await;
        assert_eq!(now.as_ref(), Ok(&key), "{malformed}");
    }
    for other in ["outcome-", "outcome-0", "outcome-2", "outcome-01", "outcome-18446744073709551616", "outcome"] {
        answer(&client, &id, other, fill(json!({"outcome": "did_not_happen"}))).await;
    }
    assert_eq!((rig.settlements().await, rig.unsettled().await), (vec![], 1));
    // A longer result than the policy allows is cut like the tool's own, in the task and in the record.
    answer(&client, &id, &key, fill(json!({"outcome": "happened", "result": "x".repeat(1 << 20)}))).await;
    let (is_error, text) = said(&get(&client, &id).await.unwrap());
    assert!(!is_error && text.len() <= 1 << 15, "{}", text.len());
    assert!(text_of(&rig).await.len() < 1 << 17);
}

/// A tool that panics while it reconciles leaves the outcome unknown. One that does not end is dropped when its server
/// closes.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_fails_to_reconcile_settles_nothing() {
    let rig = Rig::new();
    let served = rig.serve(OWN);
    let client = piped(&served, FORMS).await;
    let id = rig.task(&client, "bank__transfer", "b-1").await;
    let (first, _) = asked(&client, &id).await;
    rig.bank.set(BankAnswer::Panics);
    answer(&client, &id, &first, fill(json!({"outcome": "reconcile"}))).await;
    let (second, _) = asked(&client, &id).await;
    assert_ne!(first, second);
    rig.bank.set(BankAnswer::Hangs);
    let update = UpdateTaskParams::new(&id, [(second, fill(json!({"outcome": "reconcile"})))].into());
    let stays = tokio::spawn(async move { client.update_task(update).await });
    rig.bank.waiting.acquire().await.unwrap().forget();
    served.close(Duration::ZERO).await;
    // The tool's future was dropped before the server was closed.
    rig.bank.dropped.try_acquire().expect("it was dropped").forget();
    drop(stays.await.unwrap());
    let ada = |kind| (kind, "ada".to_owned(), false);
    assert_eq!(rig.settlements().await, [ada(DecisionKind::Reconcile), ada(DecisionKind::Reconcile)]);
    assert_eq!((rig.unsettled().await, rig.shared.effects()), (1, 1));
    assert!(!text_of(&rig).await.contains("CANARY"));
    // The next server asks again.
    rig.bank.set(BankAnswer::Paid);
    let client = piped(&rig.serve(OWN), FORMS).await;
    let (key, _) = asked(&client, &id).await;
    answer(&client, &id, &key, fill(json!({"outcome": "reconcile"}))).await;
    assert_eq!(said(&get(&client, &id).await.unwrap()), (false, r#"{"number":5}"#.to_owned()));
}

/// An approval of arguments that do not fit any more is refused and recorded, and the call still waits. For the client
/// it is not a failure of the server, with a task and without.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_does_not_fit_any_more_is_refused() {
    let rig = Rig::new();
    let switch = Arc::new(AtomicBool::new(false));
    let runner = ToolRunner::builder(catalog(), ToolPolicy::from_toml(&format!("{ALLOWED}{ASKS}{OWN}")).unwrap())
        .capabilities(rig.capabilities())
        .approvals(true)
        .clock(Arc::clone(&rig.shared.clock))
        .store(Arc::clone(&rig.shared.store))
        .validator(Fickle(Arc::clone(&switch), false))
        .build()
        .unwrap();
    let served = McpServer::builder(runner, admitted).ask_clients(true).build().unwrap();
    let client = piped(&served, FORMS).await;
    let id = task(&client, "bank__pay", json!({"bill": "b-1"})).await.task_id;
    let question = waiting(&*rig.shared.store).await[0].question();
    let approve =
        async || answer(&client, &id, &format!("approval-1-{question}"), fill(json!({"approve": true}))).await;
    switch.store(true, Ordering::Release);
    approve().await;
    let still = get(&client, &id).await.unwrap();
    assert_eq!(still.status(), TaskStatus::InputRequired, "{still:?}");
    assert_eq!((refusals(&*rig.shared.store).await.len(), rig.shared.effects()), (1, 0));
    switch.store(false, Ordering::Release);
    approve().await;
    asked(&client, &id).await;
    assert_eq!(rig.shared.effects(), 1);
    // The client of a held request approves when its arguments no longer fit.
    for (modern, bill) in [(false, "b-2"), (true, "b-3")] {
        let answers = Some(json!({"approve": true}));
        let client =
            if modern { held::posting(&served, "ada", answers).await } else { held::piped(&served, answers).await };
        let stops = Arc::clone(&switch);
        *client.service().before.lock().unwrap() = Some(Box::pin(async move { stops.store(true, Ordering::Release) }));
        let waits = client.call_tool(request("bank__pay", json!({"bill": bill}))).await;
        let text = format!("{waits:?}");
        assert!(!text.contains("-32603") && !text.contains("The server failed"), "{modern}: {text}");
        switch.store(false, Ordering::Release);
    }
    assert_eq!((waiting(&*rig.shared.store).await.len(), rig.shared.effects()), (2, 1));
    assert_eq!(refusals(&*rig.shared.store).await.len(), 3);
}
