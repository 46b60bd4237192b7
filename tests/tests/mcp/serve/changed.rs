//! The policy of the server, or the definition of a tool, changes while a call waits.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::TaskPayload;
use serde_json::{Value, json};
use tool_runtime::agent::CodeMode;
use tool_runtime::mcp::serve::McpServer;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{DecisionKind, DecisionRecord, DocumentKind, MemoryStore, Query, RecordFilter, Store};
use tool_runtime::testing::ManualClock;
use tool_runtime::{ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::serve::held::{NOBODY, builder, letter, one_waiting, piped, post, recorded, send, sent, waiting, waits};
use crate::serve::rig::{admitted, request, text};
use crate::serve::tasks;

/// Another policy than that of a server without it.
const OTHER: &str = "[mcp]\nwindow = \"2h\"\n";

/// The same tools, of which one is described in other words.
mod redefined {
    use super::*;

    /// Sends a letter by post.
    #[tool(name = "letters__send", effect = external_side_effect, redact = ["$"])]
    pub(super) fn send(
        /// The text.
        text: String,
        /// How fast.
        #[arg(default = 1)]
        speed: u8,
    ) -> Result<String, ToolError> {
        Ok(format!("{text} sent at {speed}, by post"))
    }
}

fn served(store: &Arc<MemoryStore>, catalog: ToolCatalog, more: &str) -> McpServer {
    let policy = "allowed_tools = [\"letters__send\"]\nrequire_approval_for_tools = [\"letters__send\"]\n";
    let policy = ToolPolicy::from_toml(&format!("{policy}{more}")).unwrap();
    let runner = ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(store));
    McpServer::builder(runner.build().unwrap(), admitted).build().unwrap()
}

async fn decisions(store: &dyn Store) -> Vec<DecisionRecord> {
    let records = store.records(&RecordFilter::default()).await.unwrap();
    records.iter().filter_map(|sealed| sealed.record.as_decision().cloned()).collect()
}

/// A server is killed while a call waits, with an approval that it did not carry out or without one.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_asks_anew() {
    for (name, is_approved) in [("asked anew", false), ("approved before", true)] {
        let store = Arc::<MemoryStore>::default();
        let first = builder(Arc::clone(&store), "").build().unwrap();
        waits(&letter(&piped(&first, NOBODY).await, name).await.unwrap());
        first.close(Duration::ZERO).await;
        let before = one_waiting(&*store).await;
        if is_approved {
            post(&store, &before, ApprovalDecision::Approve).await;
        }
        let second = builder(Arc::clone(&store), OTHER).build().unwrap();
        let client = piped(&second, NOBODY).await;
        waits(&letter(&client, name).await.unwrap());
        let after = one_waiting(&*store).await;
        assert_ne!((&after.call_id, after.question()), (&before.call_id, before.question()));
        assert_eq!(recorded(&*store).await, [json!(["letters__send", "approval_expired"])], "{name}");
        // It is the call that the next repetition joins, and nothing ran under the approval of the earlier question.
        waits(&letter(&client, name).await.unwrap());
        assert_eq!((one_waiting(&*store).await.call_id, sent(name)), (after.call_id.clone(), 0));
        post(&store, &after, ApprovalDecision::Approve).await;
        assert_eq!(text(&letter(&client, name).await.unwrap()), "sent at 1");
        assert_eq!((sent(name), waiting(&*store).await.len()), (1, 0));
        while !store.list(&Query::new(DocumentKind::Post)).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let of_first: Vec<_> =
            decisions(&*store).await.into_iter().filter(|decision| decision.call_id == before.call_id).collect();
        assert_eq!(of_first.iter().filter(|decision| decision.refused().is_none()).count(), 1, "{of_first:?}");
        assert!(of_first.iter().any(|decision| decision.decision == DecisionKind::Expired));
        assert_eq!(of_first.len(), 1 + usize::from(is_approved), "each decision has its record: {of_first:?}");
        let expected = [json!(["letters__send", "approval_expired"]), json!(["letters__send", "ok"])];
        assert_eq!(recorded(&*store).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_defined_anew_asks_anew() {
    let store = Arc::<MemoryStore>::default();
    let first = served(&store, ToolCatalog::builder().tool::<send>().build().unwrap(), "");
    waits(&letter(&piped(&first, NOBODY).await, "defined anew").await.unwrap());
    let before = one_waiting(&*store).await;
    let second = served(&store, ToolCatalog::builder().tool::<redefined::send>().build().unwrap(), "");
    let client = piped(&second, NOBODY).await;
    waits(&letter(&client, "defined anew").await.unwrap());
    let after = one_waiting(&*store).await;
    assert_ne!(after.call_id, before.call_id);
    post(&store, &after, ApprovalDecision::Approve).await;
    let done = letter(&client, "defined anew").await.unwrap();
    assert_eq!(text(&done), "defined anew sent at 1, by post");
}

/// A person denied the call before the server ended: the client is not asked to ask again.
#[tokio::test(flavor = "multi_thread")]
async fn a_denial_still_counts() {
    let store = Arc::<MemoryStore>::default();
    let first = builder(Arc::clone(&store), "").build().unwrap();
    waits(&letter(&piped(&first, NOBODY).await, "denied before").await.unwrap());
    first.close(Duration::ZERO).await;
    post(&store, &one_waiting(&*store).await, ApprovalDecision::Deny(Some("Not this one.".to_owned()))).await;
    let second = builder(Arc::clone(&store), OTHER).build().unwrap();
    let denied = letter(&piped(&second, NOBODY).await, "denied before").await.unwrap();
    assert!(text(&denied).contains("Not this one."), "{denied:?}");
    assert_eq!(recorded(&*store).await, [json!(["letters__send", "approval_denied"])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_ends_and_tells_its_client_to_call_again() {
    let store = Arc::<MemoryStore>::default();
    let first = builder(Arc::clone(&store), "").build().unwrap();
    let client = tasks::over_http(&first, "ada").await;
    let id = tasks::task(&client, "letters__send", json!({"text": "a task"})).await.task_id;
    first.close(Duration::ZERO).await;
    for _server in 0..2 {
        let second = builder(Arc::clone(&store), OTHER).build().unwrap();
        let client = tasks::over_http(&second, "ada").await;
        let TaskPayload::Completed { result } = tasks::get(&client, &id).await.unwrap().payload else {
            panic!("it waits")
        };
        assert_eq!(result["isError"], true);
        let said: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(said["errorCode"], "approval_expired");
        assert!(said["message"].as_str().unwrap().contains("Make the same call again"), "{said}");
    }
    assert_eq!(recorded(&*store).await, [json!(["letters__send", "approval_expired"])]);
    let third = builder(Arc::clone(&store), OTHER).build().unwrap();
    let client = tasks::over_http(&third, "ada").await;
    let id = tasks::task(&client, "letters__send", json!({"text": "a task"})).await.task_id;
    post(&store, &one_waiting(&*store).await, ApprovalDecision::Approve).await;
    while !tasks::get(&client, &id).await.unwrap().status().is_terminal() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(sent("a task"), 1);
}

/// A script has sent its first letter and waits with the second. It does not continue, and does not begin again.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_with_an_effect_ends_with_an_unknown_outcome() {
    const WRITES: &str =
        "letters__send(#{ text: \"first of a script\" }); letters__send(#{ text: \"second of a script\" })";
    let store = Arc::<MemoryStore>::default();
    let serve = |more: &str| {
        let writer = CodeMode::new("writer", "1").tools(["letters__send"]).effects();
        let catalog = ToolCatalog::builder().tool::<send>().dynamic(writer).build().unwrap();
        served(&store, catalog, &format!("allowed_graphs = [\"writer\"]\n{more}"))
    };
    let first = serve("");
    let client = piped(&first, NOBODY).await;
    let script = || request("graph__writer", json!({ "script": WRITES }));
    waits(&client.call_tool(script()).await.unwrap());
    let of_graph = async || {
        let found = waiting(&*store).await.into_iter().find(|call| call.tool.as_str() == "graph__writer");
        found.expect("the script waits")
    };
    let asked = of_graph().await;
    post(&store, &asked, ApprovalDecision::Approve).await;
    waits(&client.call_tool(script()).await.unwrap());
    assert_eq!((sent("first of a script"), sent("second of a script")), (1, 0));
    first.close(Duration::ZERO).await;
    let second = serve(OTHER);
    let client = piped(&second, NOBODY).await;
    let ended = client.call_tool(script()).await.unwrap();
    assert!(text(&ended).contains("outcome_unknown"), "{ended:?}");
    assert!(waiting(&*store).await.is_empty(), "the call in the script does not wait either");
    // The same script once more is a new call, which waits because of the first.
    waits(&client.call_tool(script()).await.unwrap());
    assert_eq!((sent("first of a script"), sent("second of a script")), (1, 0));
}

/// The tool of a script's call changes, and the script does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_asks_anew_if_the_tool_that_it_waits_with_is_defined_anew() {
    let store = Arc::<MemoryStore>::default();
    let serve = |tool: ToolCatalog| served(&store, tool, "allowed_graphs = [\"writer\"]\n");
    let writer = || CodeMode::new("writer", "1").tools(["letters__send"]).effects();
    let first = serve(ToolCatalog::builder().tool::<send>().dynamic(writer()).build().unwrap());
    let script = || request("graph__writer", json!({"script": "letters__send(#{ text: \"inner\" })"}));
    waits(&piped(&first, NOBODY).await.call_tool(script()).await.unwrap());
    let outer = async || {
        let found = waiting(&*store).await.into_iter().find(|call| call.tool.as_str() == "graph__writer");
        found.expect("the script waits")
    };
    let before = outer().await;
    first.close(Duration::ZERO).await;
    let second = serve(ToolCatalog::builder().tool::<redefined::send>().dynamic(writer()).build().unwrap());
    let client = piped(&second, NOBODY).await;
    waits(&client.call_tool(script()).await.unwrap());
    let after = outer().await;
    assert_ne!(after.call_id, before.call_id);
    post(&store, &after, ApprovalDecision::Approve).await;
    let done = client.call_tool(script()).await.unwrap();
    assert!(text(&done).contains("by post"), "{done:?}");
}

/// Servers of two policies live over one store, as in a rolling update. A call belongs to the one that made it, unless
/// the other one began later. So they do not end each other's calls forever, and the one that made a call carries its
/// approval out.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_two_policies_leave_each_other_their_calls() {
    let store = Arc::<MemoryStore>::default();
    let old = builder(Arc::clone(&store), "").build().unwrap();
    let at_old = piped(&old, NOBODY).await;
    waits(&letter(&at_old, "rolling").await.unwrap());
    let first = one_waiting(&*store).await;
    let new = builder(Arc::clone(&store), OTHER).build().unwrap();
    let at_new = piped(&new, NOBODY).await;
    waits(&letter(&at_new, "rolling").await.unwrap());
    let second = one_waiting(&*store).await;
    assert_ne!(second.call_id, first.call_id, "the new policy asks");
    for client in [&at_old, &at_new, &at_old] {
        waits(&letter(client, "rolling").await.unwrap());
        assert_eq!(one_waiting(&*store).await.call_id, second.call_id);
    }
    post(&store, &second, ApprovalDecision::Approve).await;
    waits(&letter(&at_old, "rolling").await.unwrap());
    assert_eq!(text(&letter(&at_new, "rolling").await.unwrap()), "sent at 1");
    // The old server makes a call while the new one lives.
    waits(&letter(&at_old, "of the old one").await.unwrap());
    let theirs = one_waiting(&*store).await;
    waits(&letter(&at_new, "of the old one").await.unwrap());
    assert_eq!(one_waiting(&*store).await.call_id, theirs.call_id);
    post(&store, &theirs, ApprovalDecision::Approve).await;
    waits(&letter(&at_new, "of the old one").await.unwrap());
    assert_eq!(text(&letter(&at_old, "of the old one").await.unwrap()), "sent at 1");
    assert_eq!((sent("rolling"), sent("of the old one")), (1, 1));
    let refused = decisions(&*store).await.into_iter().filter(|decision| decision.refused().is_some()).count();
    assert_eq!(refused, 0, "each approval had its effect");
}

/// The server that made a call later than this one began is gone as well.
#[tokio::test]
async fn a_call_is_left_to_another_server_for_an_hour() {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let [old, new] = ["", OTHER].map(|more| builder(Arc::clone(&store), more).build().unwrap());
    let (at_old, at_new) = (piped(&old, NOBODY).await, piped(&new, NOBODY).await);
    waits(&letter(&at_old, "of an hour").await.unwrap());
    let before = one_waiting(&*store).await;
    waits(&letter(&at_new, "of an hour").await.unwrap());
    old.close(Duration::ZERO).await;
    for (minutes, is_same) in [(59, true), (2, false)] {
        clock.advance(Duration::from_mins(minutes));
        waits(&letter(&at_new, "of an hour").await.unwrap());
        assert_eq!(one_waiting(&*store).await.call_id == before.call_id, is_same);
    }
    post(&store, &one_waiting(&*store).await, ApprovalDecision::Approve).await;
    assert_eq!(text(&letter(&at_new, "of an hour").await.unwrap()), "sent at 1");
}
