//! Effect keys and unknown outcomes, for clients with tasks, with held requests and with repeated requests.

use std::sync::Arc;

use tests::world::{Processes, World};
use tool_runtime::agent::RunQueue;
use tool_runtime::{Capabilities, Reconciled};

use super::*;
use crate::serve::held;
use crate::serve::rig::text;

/// Pays a bill, once.
#[tool(name = "bills__pay", effect = external_side_effect, redact = ["$"], once = "pay:{bill}")]
async fn pay(
    world: &dyn World,
    /// Which.
    bill: String,
) -> Result<String, ToolError> {
    world.happen();
    world.door().pass().await;
    Ok(format!("paid {bill}"))
}

/// Sends a reminder.
#[tool(name = "bills__remind", effect = external_side_effect, redact = ["$"])]
async fn remind(
    world: &dyn World,
    /// Of which bill.
    bill: String,
) -> Result<String, ToolError> {
    world.happen();
    world.door().pass().await;
    Ok(format!("reminded of {bill}"))
}

const PAYS: &str = "allowed_tools = ['bills__pay', 'bills__remind']\n[loop_guard]\nwarn_at = 0\nstop_at = 0\n";

fn paying(shared: &Processes, more: &str) -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<pay>().tool::<remind>().build().unwrap();
    let policy = ToolPolicy::from_toml(&format!("{PAYS}{more}")).unwrap();
    let world = Arc::clone(&shared.world) as Arc<dyn World>;
    let runner = ToolRunner::builder(catalog, policy).capabilities(Capabilities::new().with(world));
    runner.approvals(true).store(Arc::clone(&shared.store)).build().unwrap()
}

fn paying_server(shared: &Processes, more: &str) -> McpServer {
    McpServer::builder(paying(shared, more), admitted).build().unwrap()
}

fn bill(tool: &str) -> rmcp::model::CallToolRequestParams {
    request(tool, json!({"bill": "b-1"}))
}

/// Leaves a call with an unknown outcome in a run of the application.
async fn unknown(shared: &Processes, tool: &str) {
    let run = paying(shared, "").run(RunOptions::new().run_id("elsewhere").principal("ada").tenant("acme"));
    let call = tool_runtime::ToolCall::text("c1", tool, r#"{"bill":"b-1"}"#);
    let running = shared.stuck(run.exec(call)).await;
    run.cancel();
    running.await.unwrap();
}

fn shared() -> Processes {
    Processes::at("2030-01-01T00:00:00Z", 0)
}

/// The sentence for the person who decides on the one call that waits.
async fn asked(shared: &Processes) -> String {
    held::one_waiting(&*shared.store).await.summary.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_holds_over_sessions_and_principals() {
    let shared = shared();
    let served = paying_server(&shared, "");
    let (first, second) = (held::piped(&served, held::NOBODY).await, held::posting(&served, "bob", held::NOBODY).await);
    let third = piped(&served, OLD).await;
    let paid = tokio::spawn(async move { first.call_tool(bill("bills__pay")).await });
    while shared.effects() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let refused = second.call_tool(bill("bills__pay")).await.unwrap();
    assert_eq!(refused.is_error, Some(true));
    assert!(text(&refused).contains("in_progress"), "{refused:?}");
    let CallToolResponse::Complete(refused) = third.call_tool_once(bill("bills__pay")).await.unwrap() else {
        panic!("it ends at once")
    };
    assert!(refused.is_error == Some(true) && text(&refused).contains("in_progress"), "{refused:?}");
    shared.open(1);
    assert_eq!(text(&paid.await.unwrap().unwrap()), "paid b-1");
    let CallToolResponse::Complete(had) = third.call_tool_once(bill("bills__pay")).await.unwrap() else {
        panic!("it ends at once")
    };
    for had in [had, second.call_tool(bill("bills__pay")).await.unwrap()] {
        assert_eq!((had.is_error, text(&had)), (Some(false), "paid b-1"));
        let remark =
            had.content.iter().filter_map(|block| block.as_text()).any(|block| {
                block.text.contains("The tool did not run again: an earlier call already caused this effect")
            });
        assert!(remark, "{had:?}");
    }
    assert_eq!(shared.effects(), 1);
    assert_eq!(shared.closed().await.len(), 5, "each call has a record");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_twin_is_a_task_or_a_held_request_or_is_asked_for_again() {
    let shared = shared();
    unknown(&shared, "bills__remind").await;
    shared.open(9);
    let served = paying_server(&shared, "");
    // A task.
    let client = piped(&served, OLD).await;
    let CallToolResponse::Task(created) = client.call_tool_once(bill("bills__remind")).await.unwrap() else {
        panic!("it waits")
    };
    let sentence = asked(&shared).await;
    assert!(sentence.contains("unknown outcome: call “c1” of run “elsewhere”"), "{sentence}");
    assert_eq!(shared.effects(), 1);
    decide(&shared.store, ApprovalDecision::Approve).await;
    let done = ended(&client, &created.task.task_id).await;
    assert_eq!((&result(&done)["content"][0]["text"], shared.effects()), (&json!("reminded of b-1"), 2));
    // The same request, made again.
    let client = held::posting(&served, "ada", held::NOBODY).await;
    held::waits(&client.call_tool(bill("bills__remind")).await.unwrap());
    let waiting = held::one_waiting(&*shared.store).await;
    held::waits(&client.call_tool(bill("bills__remind")).await.unwrap());
    assert_eq!(held::one_waiting(&*shared.store).await.question(), waiting.question());
    held::post(&shared.store, &waiting, ApprovalDecision::Approve).await;
    let done = client.call_tool(bill("bills__remind")).await.unwrap();
    assert_eq!((text(&done), shared.effects()), ("reminded of b-1", 3));
    // A held request.
    let served = paying_server(&shared, "[mcp]\nhold = \"1d\"");
    let client = held::piped(&served, held::NOBODY).await;
    let approve = async {
        held::post(&shared.store, &held::one_waiting(&*shared.store).await, ApprovalDecision::Approve).await;
    };
    let (done, ()) = tokio::join!(client.call_tool(bill("bills__remind")), approve);
    assert_eq!((text(&done.unwrap()), shared.effects()), ("reminded of b-1", 4));
}

/// A call of a session ends with an unknown outcome. A person settles it without the session, and the next one gets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_session_is_settled_without_it() {
    let shared = shared();
    let served = paying_server(&shared, "");
    let client = held::piped(&served, held::NOBODY).await;
    let cut = tokio::spawn(async move { client.call_tool(bill("bills__pay")).await });
    while shared.effects() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The call does not end in time, so it ends with the server.
    served.close(Duration::from_millis(50)).await;
    drop(cut.await.unwrap());
    let store: &dyn Store = &*shared.store;
    let unsettled = store.unsettled_calls(&RecordFilter::default()).await.unwrap();
    let [Ok(left)] = &unsettled[..] else { panic!("{unsettled:?}") };
    assert_eq!(left.effect_key.as_deref(), Some("pay:b-1"));
    let queue = RunQueue::new(&paying(&shared, ""));
    let grace = Decider::new("grace").tenant("acme").because("the bank's page shows it");
    let paid = || Reconciled::TookEffect("\"paid b-1 in person\"".to_owned());
    let foreign =
        queue.settle(&left.run_id, Some("other"), left.principal.as_deref(), &left.tool_call_id, paid(), &grace).await;
    assert_eq!(foreign.unwrap_err().code(), "not_pending");
    let settled = queue
        .settle(&left.run_id, Some("acme"), left.principal.as_deref(), &left.tool_call_id, paid(), &grace)
        .await
        .unwrap();
    assert_eq!(settled.outcome(), Outcome::Ok);
    let served = paying_server(&shared, "");
    for client in [held::piped(&served, held::NOBODY).await, held::posting(&served, "bob", held::NOBODY).await] {
        let had = client.call_tool(bill("bills__pay")).await.unwrap();
        assert_eq!((had.is_error, text(&had)), (Some(false), "paid b-1 in person"));
    }
    assert_eq!((shared.effects(), store.unsettled_calls(&RecordFilter::default()).await.unwrap().len()), (1, 0));
}
