//! Several runs with the same id, which can come from a request and does not identify the owner of a run. Policies and
//! values that change while a call waits.

use tests::Shown as _;
use tool_runtime::store::Store as _;

use super::*;

/// What the client says, in few words.
#[tool(name = "waiting__short", effect = read_only, execution = client, client_result = String, prepare = ["$"],
    redact = ["$"], max_result_bytes = 64)]
struct Short {}

impl ToolComponent for Short {
    type Capabilities = ();
    type Output = bool;

    async fn run(self, (): (), _: &Call<Self>) -> Result<bool, ToolError> {
        Ok(true)
    }
}

/// Reads a page, and repeats its words when it fails.
#[tool(name = "waiting__page", effect = read_only, redact = ["$"], tags = ["web"])]
fn page() -> Result<u8, ToolError> {
    Err(ToolError::safe("what the page says"))
}

fn strangers() -> [RunOptions; 3] {
    [
        RunOptions::new().run_id("run-1").principal("mallory").tenant("acme"),
        RunOptions::new().run_id("run-1").principal("ada").tenant("other"),
        RunOptions::new().run_id("run-1"),
    ]
}

#[tokio::test]
async fn to_other_people_nothing_of_a_run_exists() {
    let runner = runner(POLICY, &Arc::new(MemoryStore::new()));
    let owner = suspended(&runner, ada()).await;
    owner.exec(ToolCall::text("read", "waiting__read", "{}")).await;
    for options in strangers() {
        let stranger = runner.run(options);
        assert!(stranger.recorded(&CallId::new("read")).await.expect("a store").is_none());
        assert_eq!(stranger.snapshot().await.expect("a store").waiting().count(), 0);
    }
    assert!(owner.recorded(&CallId::new("read")).await.expect("a store").expect("a record").is_ok());
    assert_eq!(owner.snapshot().await.expect("a store").waiting().count(), 2);
}

#[tokio::test]
async fn a_call_of_another_run_leaves_a_waiting_call_of_the_same_id() {
    for options in strangers().into_iter().chain([ada()]) {
        let store = Arc::new(MemoryStore::new());
        let runner = runner(POLICY, &store);
        let owner = suspended(&runner, ada()).await;
        let other = runner.run(options);
        other.exec(ToolCall::text("person", "waiting__read", "{}")).await;
        let moved = moved(&owner.snapshot().await.expect("a store"));
        let result =
            owner.resume_shown("person", ApprovalDecision::Deny(None), &grace()).await.expect("it still waits");
        assert_eq!(result.outcome(), Outcome::ApprovalDenied);
        let filter = RecordFilter::call("run-1", CallId::new("person"));
        let record = store.calls(&filter).await.expect("records").pop().expect("a record of the denial");
        assert_eq!((&*record.name, record.tenant.as_deref()), ("waiting__change", Some("acme")));
        assert_eq!(record.decision.expect("a decision").rule, "require_approval_for_tools");
        // The snapshot has the call too.
        let elsewhere = super::runner(POLICY, &Arc::new(MemoryStore::new()));
        let run = elsewhere.restore(moved, ada()).await.expect("a run");
        assert_eq!(
            run.resume_shown("person", ApprovalDecision::Approve, &grace()).await.expect("it waits").to_model(),
            "3"
        );
    }
}

#[tokio::test]
async fn a_full_store_keeps_what_waits() {
    let store = Arc::new(MemoryStore::with_limits(4096, 1));
    let runner = runner(POLICY, &store);
    let run = runner.run(ada());
    let call = |id: &str| run.exec(ToolCall::text(id, "waiting__change", r#"{"to":3}"#));
    assert_eq!(call("first").await.outcome(), Outcome::ApprovalRequired);
    // The store is full: the second call ends, and the first still waits.
    assert_eq!(call("second").await.outcome(), Outcome::Cancelled);
    assert_eq!(run.resume_shown("first", ApprovalDecision::Approve, &grace()).await.expect("it waits").to_model(), "3");
}

#[tokio::test]
async fn the_tools_own_result_limit_holds_for_every_value() {
    let small = r#""0123456789""#;
    let long = format!("\"{}\"", "x".repeat(2000));
    for (value, expected) in [(small, Outcome::Ok), (&*long, Outcome::ApprovalMismatch)] {
        let run = runner(POLICY, &Arc::new(MemoryStore::new())).run(ada());
        run.exec(ToolCall::text("c", "waiting__short", "{}")).await;
        assert_eq!(run.client_result("c", value).await.expect("it waits").outcome(), expected);
    }
}

#[tokio::test]
async fn a_failure_labels_the_run_as_a_value_does() {
    let run = runner(POLICY, &Arc::new(MemoryStore::new())).run(ada());
    assert!(run.exec(ToolCall::text("1", "waiting__page", "{}")).await.to_model().contains("what the page says"));
    let result = run.exec(ToolCall::text("2", "waiting__hang", "{}")).await;
    assert_eq!(result.outcome(), Outcome::PolicyDenied);
}

#[tokio::test]
async fn a_wider_policy_does_not_widen_a_restored_run() {
    let narrow = "allowed_tools = ['waiting__read']";
    let wide = "allowed_tools = ['waiting__read', 'waiting__page', 'waiting__hang']";
    let snapshot = runner(narrow, &Arc::new(MemoryStore::new())).run(ada()).snapshot().await.expect("a snapshot");
    let run = runner(wide, &Arc::default()).restore(moved(&snapshot), ada()).await.expect("a run");
    assert_eq!(run.exec(ToolCall::text("1", "waiting__page", "{}")).await.outcome(), Outcome::PolicyDenied);
    assert!(run.exec(ToolCall::text("2", "waiting__read", "{}")).await.is_ok());
    // The same holds in the next process, and a narrower policy applies.
    let again = run.snapshot().await.expect("a snapshot");
    let run = runner(wide, &Arc::default()).restore(moved(&again), ada()).await.expect("a run");
    assert_eq!(run.exec(ToolCall::text("3", "waiting__page", "{}")).await.outcome(), Outcome::PolicyDenied);
    let run =
        runner("allowed_tools = ['waiting__page']", &Arc::default()).restore(snapshot, ada()).await.expect("a run");
    assert_eq!(run.exec(ToolCall::text("4", "waiting__read", "{}")).await.outcome(), Outcome::PolicyDenied);
}

#[tokio::test]
async fn a_repair_stays_in_the_record_of_an_approved_call() {
    let store = Arc::new(MemoryStore::new());
    let policy = "allowed_tools = ['waiting__change']\nrepair.allowed = ['fenced_json']";
    let run = runner(policy, &store).run(ada());
    let call = ToolCall::text("c", "waiting__change", "```json\n{\"to\":3}\n```");
    assert_eq!(run.exec(call).await.outcome(), Outcome::ApprovalRequired);
    assert!(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await.expect("it waits").is_ok());
    assert_eq!(record(&store, "c").await.repairer(), Some("fenced_json"));
}
