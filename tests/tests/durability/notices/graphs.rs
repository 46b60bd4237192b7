//! Notices about graphs: a person decides on the call of the graph, and reads the call that it waits with.

use tool_runtime::agent::Graph;

use super::*;

/// Notes a task.
#[tool(name = "notices__task", effect = state_change, redact = ["$"])]
fn note(
    world: &dyn World,
    /// The task.
    task: String,
) -> Result<String, ToolError> {
    world.happen();
    Ok(task)
}

/// A graph that pays and then takes the other turns.
fn clerk(turns: impl IntoIterator<Item = ScriptedTurn>) -> Graph {
    let pays = ScriptedTurn::call("i1", "notices__refund", ARGUMENTS);
    let inner = Agent::new(ScriptedModel::new([pays].into_iter().chain(turns)));
    Graph::new("clerk", "1", inner).description("Pays refunds.").tools(["notices__refund", "notices__task"])
}

fn run(processes: &Processes, policy: &str, turns: impl IntoIterator<Item = ScriptedTurn>) -> Run {
    let policy = format!("allowed_graphs = ['clerk']\n{policy}");
    let catalog = ToolCatalog::builder().tool::<refund>().tool::<note>().dynamic(clerk(turns)).build();
    runner_of(processes, &policy, catalog.unwrap_or_else(|error| panic!("{error}"))).run(ada())
}

fn asked() -> ToolCall {
    ToolCall::text("g1", "graph__clerk", r#"{"task":"Refund p/7."}"#)
}

/// A graph waits with each of its calls in turn. A person decides on the graph's call.
#[tokio::test]
async fn each_call_of_a_graph_is_one_question() {
    let processes = processes(2);
    let report = ScriptedTurn::text(r#"{"summary":"Paid.","findings":[]}"#);
    let again = [ScriptedTurn::call("i2", "notices__refund", ARGUMENTS), report];
    let run = run(&processes, &format!("{POLICY}{ASKS}{NOTICES}"), again);
    assert_eq!(run.exec(asked()).await.outcome(), Outcome::ApprovalRequired);
    let first = run.resume_shown("g1", ApprovalDecision::Approve, &by("grace")).await.expect("it waits");
    assert_eq!(first.outcome(), Outcome::ApprovalRequired);
    let last = run.resume_shown("g1", ApprovalDecision::Approve, &by("grace")).await.expect("it waits");
    assert_eq!(last.outcome(), Outcome::Ok);
    let expected = ["call.waiting", "call.decided approved", "call.waiting", "call.decided approved"];
    assert_eq!(kinds(&processes).await, expected);
    for (_, data) in events(&processes).await {
        let named = ["call_id", "tool", "graph", "sentence"].map(|member| data[member].clone());
        assert_eq!(named, [json!("g1"), json!("notices__refund"), json!("clerk"), json!("Refunds “p/7”")]);
        assert_eq!(data["arguments"], json!({"/amount": 1200}));
    }
}

/// A graph has paid and waits with a call that has an argument of the same name as the graph. Each lists its own.
#[tokio::test]
async fn the_end_of_a_graph_lists_the_arguments_of_the_graph() {
    let of = |tool: &str| format!("[notices.tools.{tool}]\narguments = ['/task']\n");
    for (lists, of_call, of_graph) in [
        (of("notices__task"), json!({"/task": "Later."}), Value::Null),
        (of("graph__clerk"), Value::Null, json!({"/task": "Refund p/7."})),
    ] {
        let processes = processes(1);
        let policy = format!(
            "allowed_tools = ['notices__refund', 'notices__task']\n\
             require_approval_for_tools = ['notices__task']\n[notices]\n{lists}"
        );
        let later = [ScriptedTurn::call("i2", "notices__task", r#"{"task":"Later."}"#)];
        let run = run(&processes, &policy, later);
        assert_eq!(run.exec(asked()).await.outcome(), Outcome::ApprovalRequired);
        assert_eq!(run.abandon("g1").await.expect("it waits").outcome(), Outcome::OutcomeUnknown);
        let mut told: Vec<_> = events(&processes)
            .await
            .into_iter()
            .map(|(event, data)| (event, data["tool"].clone(), data["arguments"].clone()))
            .collect();
        // Notices of one change have no order.
        told.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let expected = [
            ("call.decided".to_owned(), json!("notices__task"), of_call.clone()),
            ("call.unknown".to_owned(), json!("graph__clerk"), of_graph),
            ("call.waiting".to_owned(), json!("notices__task"), of_call),
        ];
        assert_eq!(told, expected);
    }
}

/// The process dies while a call of the graph runs: the outcomes of both are unknown. The call names the run that the
/// application knows.
#[tokio::test]
async fn a_lost_call_of_a_graph_names_the_run_that_called_the_graph() {
    let processes = processes(0);
    let run = run(&processes, &format!("{POLICY}{NOTICES}"), []);
    let stuck = processes.stuck(async move { run.exec(asked()).await }).await;
    // A process that has the graph could have continued it for a week.
    processes.clock.advance(Duration::from_hours(8 * 24));
    let store: &dyn Store = &*processes.store;
    store.sweep().await.expect("swept");
    let mut lost: Vec<_> = events(&processes)
        .await
        .into_iter()
        .map(|(event, data)| {
            let is_own = data["run_id"] == "run 1";
            (event, data["tool"].clone(), is_own, data["graph"].clone(), data["caller_run_id"].clone())
        })
        .collect();
    lost.sort_by_key(|(.., is_own, _, _)| *is_own);
    let event = || "call.unknown".to_owned();
    let expected = [
        (event(), json!("notices__refund"), false, json!("clerk"), json!("run 1")),
        (event(), json!("graph__clerk"), true, json!("clerk"), Value::Null),
    ];
    assert_eq!(lost, expected);
    stuck.abort();
}
