//! The contents of notices: the author's sentence alone, and the arguments that each policy of a run lists.

use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use tool_runtime::agent::Graph;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{Call, Precondition, ToolComponent, ToolContext, ToolEffect, capability};

use super::*;

/// Reads an account.
#[capability(effect = read_only)]
#[async_trait]
pub(crate) trait Account {
    /// Its balance.
    async fn balance(&self) -> i64;
}

struct Balance(AtomicI64);

#[async_trait]
impl Account for Balance {
    async fn balance(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Pays out.
#[tool(name = "notices__pay", effect = state_change, redact = ["$"], summary = "Pays {amount}",
    precondition = stated(account))]
fn pay(
    world: &dyn World,
    account: &dyn Account,
    /// The amount.
    amount: u64,
) -> Result<u64, ToolError> {
    let _ = account;
    world.happen();
    Ok(amount)
}

async fn stated(account: &dyn Account) -> Result<Precondition, ToolError> {
    Ok(Precondition::of("balance", account.balance().await))
}

const PAYS: &str = "allowed_tools = ['notices__pay']\nrequire_approval_for_tools = ['notices__pay']\n[notices]\n";

/// A run with an account, alone or within a graph.
fn paying(processes: &Processes, account: &Arc<Balance>, graph: Option<Graph>) -> Run {
    let allowed = if graph.is_some() { "allowed_graphs = ['clerk']\n" } else { "" };
    let policy = ToolPolicy::from_toml(&format!("{allowed}{PAYS}")).expect("a policy");
    let catalog = ToolCatalog::builder().tool::<pay>();
    let catalog = match graph {
        Some(graph) => catalog.dynamic(graph),
        None => catalog,
    };
    let builder = ToolRunner::builder(catalog.build().expect("a catalog"), policy).approvals(true);
    let builder = builder.capabilities(processes.capabilities().with(Arc::clone(account) as Arc<dyn Account>));
    let builder = builder.clock(Arc::clone(&processes.clock)).store(Arc::clone(&processes.store));
    builder.build().expect("a runner").run(ada())
}

/// The sentences of the notices. None has a statement about the account.
async fn sentences(processes: &Processes) -> Vec<Value> {
    for notice in notices(&*processes.store).await {
        assert!(!notice.payload().contains("balance"), "{}", notice.payload());
    }
    events(processes).await.iter().map(|(_, data)| data["sentence"].clone()).collect()
}

/// A call states what it depends on, and asks again when that has changed. The notices have the author's sentence only.
#[tokio::test]
async fn statements_about_the_world_are_in_no_notice() {
    for is_graph in [false, true] {
        let (processes, account) = (processes(0), Arc::new(Balance(AtomicI64::new(3200))));
        let graph = || {
            let pays = ScriptedTurn::call("i1", "notices__pay", r#"{"amount":5}"#);
            let report = ScriptedTurn::text(r#"{"summary":"Done.","findings":[]}"#);
            let inner = Agent::new(ScriptedModel::new([pays, report]));
            Graph::new("clerk", "1", inner).description("Pays.").tools(["notices__pay"])
        };
        let run = paying(&processes, &account, is_graph.then(graph));
        let (tool, arguments) =
            if is_graph { ("graph__clerk", r#"{"task":"Pay."}"#) } else { ("notices__pay", r#"{"amount":5}"#) };
        assert_eq!(run.exec(ToolCall::text("c/1", tool, arguments)).await.outcome(), Outcome::ApprovalRequired);
        let waiting = run.pending(&CallId::new("c/1")).await.expect("a store").expect("it waits");
        let summary = waiting.graph.as_ref().map_or(&waiting.summary, |graph| &graph.summary);
        assert!(
            summary.as_ref().is_some_and(|summary| summary.contains("balance")),
            "an approver reads it: {summary:?}"
        );
        account.0.store(3100, Ordering::Release);
        let again = run.resume_shown("c/1", ApprovalDecision::Approve, &by("grace")).await.expect("it waits");
        let expected = if is_graph { Outcome::ApprovalRequired } else { Outcome::ApprovalMismatch };
        assert_eq!(again.outcome(), expected, "it asks again");
        run.resume_shown("c/1", ApprovalDecision::Deny(None), &by("grace")).await.expect("it waits");
        let kinds = kinds(&processes).await;
        assert!(kinds.starts_with(&["call.waiting".to_owned()]) && kinds.len() > 2, "{kinds:?}");
        assert_eq!(sentences(&processes).await, vec![json!("Pays 5."); kinds.len()]);
    }
}

/// A call waits because the outcome of another one is unknown. The notice does not name the other one.
#[tokio::test]
async fn a_call_that_waits_for_its_twin_does_not_name_it() {
    let processes = processes(0);
    let policy = format!("{POLICY}[notices]\n");
    let run = runner(&processes, &policy).run(ada().run_id("run of the twin"));
    let stuck = processes.stuck(async move { run.exec(call()).await }).await;
    processes.clock.advance(LEASE);
    (&*processes.store as &dyn Store).sweep().await.expect("swept");
    let run = runner(&processes, &policy).run(ada());
    let twin = ToolCall::text("c/2", "notices__refund", ARGUMENTS);
    assert_eq!(run.exec(twin).await.outcome(), Outcome::ApprovalRequired);
    let waiting = run.pending(&CallId::new("c/2")).await.expect("a store").expect("it waits");
    assert!(waiting.summary.is_some_and(|summary| summary.contains("run of the twin")), "an approver reads it");
    let waits = notices(&*processes.store).await.pop().expect("a notice");
    assert_eq!((&*waits.event, &*waits.run_id), ("call.waiting", "run 1"));
    assert!(!waits.payload().contains("twin") && !waits.payload().contains("c/1"), "{}", waits.payload());
    assert_eq!(events(&processes).await.pop().expect("a notice").1["sentence"], "Refunds “p/7”");
    stuck.abort();
}

struct Unlocks;

#[async_trait]
impl DynamicHandler for Unlocks {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

/// No sentence can name a sensitive argument: `#[tool]` refuses it (`tests/ui/attribute`), and so does the catalog. A
/// unit test of `redact` holds that it would be masked.
#[test]
fn a_sentence_with_a_sensitive_argument_is_refused() {
    let schema = json!({"type": "object", "properties": {"door": {"type": "string"}, "pin": {"type": "string"}}});
    let tool = DynamicTool::new("notices__unlock", "Unlocks.", schema, ToolEffect::StateChange, Arc::new(Unlocks));
    let tool = tool.redact(["$"]).sensitive("pin").summary(["Unlocks {door} with {pin}"]);
    let error = ToolCatalog::builder().dynamic(tool).build().expect_err("it is sensitive");
    assert!(error.to_string().contains("`summary` names `pin`, which is sensitive"), "{error}");
}

/// Opens a page at the user.
#[tool(name = "notices__open", effect = state_change, execution = client, client_result = bool, prepare = ["$"],
    redact = ["$"])]
struct Opened {}

impl ToolComponent for Opened {
    type Capabilities = ();
    type Output = bool;

    async fn run(self, (): (), _: &Call<Self>) -> Result<bool, ToolError> {
        Ok(true)
    }
}

fn opens(processes: &Processes) -> ToolRunner {
    let policy = "allowed_tools = ['notices__open']\n[notices]\nevents = ['expired']\n";
    runner_of(processes, policy, ToolCatalog::builder().tool::<Opened>().build().expect("a catalog"))
}

/// The time of a client's call is over, through each way to find it out.
#[tokio::test]
async fn a_call_of_a_client_expires_through_every_door() {
    for door in ["sweep", "late result", "abandon"] {
        let processes = processes(0);
        let run = opens(&processes).run(ada());
        let call = ToolCall::text("c/1", "notices__open", "{}");
        assert_eq!(run.exec(call).await.outcome(), Outcome::ClientRequired);
        processes.clock.advance(Duration::from_hours(25));
        match door {
            "sweep" => opens(&processes).sweep().await.map(drop).expect("swept"),
            "late result" => drop(run.client_result("c/1", "true").await.expect("it expired")),
            _ => drop(run.abandon("c/1").await.expect("it expired")),
        }
        assert_eq!(kinds(&processes).await, ["call.expired"], "{door}");
    }
}

#[tokio::test]
async fn a_call_of_a_client_expires_at_a_worker() {
    let processes = processes(0);
    let turns = [ScriptedTurn::call("c/1", "notices__open", "{}"), ScriptedTurn::text("Done.")];
    let (agent, runner) = (Agent::new(ScriptedModel::new(turns)), opens(&processes));
    let mut conversation = agent.clone().converse(runner.run(ada()));
    conversation.accept("Open it.".into()).await.expect("a message");
    RunQueue::new(&runner).enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    works(&agent, &runner, "client_required").await;
    processes.clock.advance(Duration::from_hours(25));
    works(&agent, &runner, "answered").await;
    assert_eq!(kinds(&processes).await, ["call.expired"]);
}

/// The operator adds a list while a run exists. Its calls have no argument that an earlier policy did not list.
#[tokio::test]
async fn a_restored_run_keeps_the_lists_of_its_policies() {
    let processes = processes(0);
    let before = runner(&processes, &format!("{POLICY}{ASKS}[notices]\n")).run(ada());
    let snapshot = before.snapshot().await.expect("a snapshot");
    let after = runner(&processes, &format!("{POLICY}{ASKS}{NOTICES}"));
    let run = after.restore(snapshot, ada()).await.expect("a run");
    assert_eq!(run.exec(call()).await.outcome(), Outcome::ApprovalRequired);
    let other = after.run(ada().run_id("run 2"));
    assert_eq!(other.exec(call()).await.outcome(), Outcome::ApprovalRequired);
    let listed: Vec<_> = events(&processes).await.iter().map(|(_, data)| data["arguments"].clone()).collect();
    assert_eq!(listed, [Value::Null, json!({"/amount": 1200})]);
}
