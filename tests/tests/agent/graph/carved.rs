//! Budgets: a child uses the budgets of its parent.

use super::*;
use tests::DecideShown as _;
use tool_runtime::agent::Prices;

#[tokio::test]
async fn calls_of_a_child_count_for_its_parent() {
    let rig = Rig::new();
    let turns = [
        call("c1", "notes__list", "{}"),
        call("c2", "notes__page", "{}"),
        call("c3", "notes__count", r#"{"at":1}"#),
        ScriptedTurn::text(REPORT),
    ];
    // One for the graph, two for its child.
    let run = rig.run("[budgets.run]\ncalls = 3", turns);
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::Ok);
    let outcomes: Vec<_> = rig.outcomes().await.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Ok, Outcome::BudgetExceeded, Outcome::Ok]);
    let next = run.exec(ToolCall::text("p2", "notes__list", "{}")).await;
    assert_eq!((next.outcome(), rig.effects()), (Outcome::BudgetExceeded, 0));
}

#[tokio::test(start_paused = true)]
async fn a_child_leaves_what_it_did_not_use() {
    let rig = Rig::new();
    let run = rig.run("[budgets.run]\ncalls = 3\ntime_ms = 60000", [ScriptedTurn::text(REPORT)]);
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::Ok);
    for id in ["p2", "p3"] {
        assert_eq!(run.exec(ToolCall::text(id, "notes__list", "{}")).await.outcome(), Outcome::Ok);
    }
    // A graph that is dropped in the middle of a call of its child has used that call.
    let rig = Rig::new();
    let run = rig.run("[budgets.run]\ncalls = 3", [call("c1", "notes__hang", "{}")]);
    let dropped = tokio::time::timeout(Duration::from_millis(50), run.exec(ask("p1"))).await;
    assert!(dropped.is_err());
    assert_eq!(run.exec(ToolCall::text("p2", "notes__list", "{}")).await.outcome(), Outcome::Ok);
    assert_eq!(run.exec(ToolCall::text("p3", "notes__page", "{}")).await.outcome(), Outcome::BudgetExceeded);
}

#[tokio::test(start_paused = true)]
async fn without_budgets_a_parent_spends_as_much() {
    let mut spent = Vec::new();
    for budget in ["", "[budgets.run]\ncalls = 30"] {
        let rig = Rig::new();
        let turns = [call("c1", "notes__list", "{}"), call("c2", "notes__hang", "{}")];
        let run = rig.run(budget, turns);
        assert!(tokio::time::timeout(Duration::from_millis(50), run.exec(ask("p1"))).await.is_err());
        let saved = serde_json::to_value(run.snapshot().await.expect("a snapshot")).expect("JSON");
        spent.push(saved["spent"].clone());
    }
    assert_eq!(spent[0], spent[1]);
    assert_eq!(spent[0]["calls"], 3);
}

#[tokio::test]
async fn tokens_and_cost_of_a_child_are_its_parents() {
    let rig = Rig::new();
    let model = ScriptedModel::new([call("c1", "notes__list", "{}").using(60, 10)]);
    let agent = Agent::new(model).prices(Prices::new(1_000_000.0, 1_000_000.0));
    let graph = Graph::new("researcher", "1", agent).description("Researches.").tools(TOOLS);
    let run = rig.runner("[budgets.run]\ntokens = 60", graph).run(rig.options());
    // The first turn uses up the budget, so the second is not requested.
    let result = run.exec(ask("p1")).await;
    assert_eq!(result.outcome(), Outcome::ExecutionError);
    assert_eq!(result.error().unwrap().tool_code.as_deref(), Some("budget_exceeded"));
    let summary = run.summary();
    assert_eq!((summary.usage.total(), summary.cost), (70, 70.0));
    assert!(run.exhausted().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_child_stops_with_the_time_of_its_parent() {
    let rig = Rig::new();
    let run = rig.run("[budgets.run]\ntime_ms = 80", [ScriptedTurn::hangs()]);
    let result = tokio::time::timeout(LONG, run.exec(ask("p1"))).await.expect("it ends");
    // It has tools with effects, so its outcome is unknown.
    assert_eq!(result.outcome(), Outcome::OutcomeUnknown);
}

#[tokio::test]
async fn the_output_is_bounded_with_the_summary_first() {
    let rig = Rig::new();
    let findings: Vec<_> = (0..500).map(|at| format!("finding {at} {}", "x".repeat(50))).collect();
    let report = serde_json::json!({"summary": "In short.", "findings": findings}).to_string();
    let graph = researcher([ScriptedTurn::text(report)]).max_output(2_000);
    let result = rig.runner("", graph).run(rig.options()).exec(ask("p1")).await;
    let text = text(&result);
    assert!(result.outcome() == Outcome::Ok && text.len() < 2_500, "{} bytes", text.len());
    assert!(text.starts_with(r#"{"summary":"In short.","findings":["finding 0"#), "{text}");
    assert!(!text.contains("finding 499"));
}

/// A graph that makes three calls.
fn three_calls() -> Graph {
    let turns = |_: &str, answered: usize| match answered {
        0 => call("c1", "notes__list", "{}"),
        1 => call("c2", "notes__page", "{}"),
        2 => call("c3", "notes__count", r#"{"at":1}"#),
        _ => ScriptedTurn::text(REPORT),
    };
    Graph::new("researcher", "1", Agent::new(Follows(turns))).description("Researches.").tools(TOOLS)
}

/// A graph that makes three calls, for a run that makes one more.
async fn outcomes_under(rules: &str) -> (Vec<Outcome>, Outcome) {
    let rig = Rig::new();
    let run = rig.runner(rules, three_calls()).run(rig.options());
    run.exec(ask("p1")).await;
    let next = run.exec(ToolCall::text("p2", "notes__list", "{}")).await;
    let records = rig.records().await;
    let outcome =
        |id: &str| records.iter().find(|record| record.tool_call_id.as_str() == id).map(|record| record.outcome);
    (["c1", "c2", "c3"].into_iter().filter_map(outcome).collect(), next.outcome())
}

#[tokio::test]
async fn a_graph_has_a_budget_of_its_own() {
    use Outcome::{BudgetExceeded as No, Ok};
    for (rules, expected, next) in [
        ("", vec![Ok, Ok, Ok], Ok),
        ("[budgets.graphs.researcher]\ncalls = 2", vec![Ok, Ok, No], Ok),
        // The lower of the two limits applies.
        ("[budgets.run]\ncalls = 2\n[budgets.graphs.researcher]\ncalls = 10", vec![Ok, No, No], No),
        ("[budgets.run]\ncalls = 10\n[budgets.graphs.researcher]\ncalls = 1", vec![Ok, No, No], Ok),
        // The calls of the last turn still run.
        ("[budgets.graphs.researcher]\nturns = 2", vec![Ok, Ok], Ok),
        ("[budgets.run]\nturns = 1", vec![Ok], Ok),
        ("[budgets.default]\nmax_result_bytes = 100\n[budgets.graphs.researcher]\nbytes = 105", vec![Ok, Ok, No], Ok),
    ] {
        assert_eq!(outcomes_under(rules).await, (expected, next), "{rules}");
    }
    let rig = Rig::new();
    let run = rig.run("[budgets.graphs.researcher]\nturns = 1", [call("c1", "notes__list", "{}")]);
    let result = run.exec(ask("p1")).await;
    assert_eq!(result.error().unwrap().tool_code.as_deref(), Some("budget_exceeded"));
    assert!(text(&result).contains("the graph has used up its turns (budgets.graphs.NAME.turns)"), "{}", text(&result));
}

#[tokio::test]
async fn what_a_task_used_still_counts_in_another_process() {
    use tool_runtime::agent::SavedConversation;
    use tool_runtime::call::Decider;
    use tool_runtime::runner::ApprovalDecision;
    let rig = Rig::new();
    let rules = "require_approval_for_tools = ['notes__page']\n[budgets.graphs.researcher]\ncalls = 2";
    let run = rig.runner(rules, three_calls()).run(rig.options());
    let asks = || call("p1", "graph__researcher", r#"{"task":"Count."}"#);
    let mut conversation = Agent::new(ScriptedModel::new([asks()])).converse(run);
    assert!(matches!(conversation.send("Count.").await, TurnOutcome::Waiting { .. }));
    let saved = serde_json::to_string(&conversation.save().await.expect("a document")).expect("JSON");
    let saved: SavedConversation = serde_json::from_str(&saved).expect("a document");
    let parent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Counted.")]));
    let restored = parent.restore(&rig.runner(rules, three_calls()), rig.options(), saved).await;
    let bob = Decider::new("bob").tenant("acme");
    restored.expect("restored").decide_shown(&"p1".into(), ApprovalDecision::Approve, &bob).await.expect("it waits");
    let outcomes = rig.outcomes().await;
    assert!(outcomes.contains(&("notes__page".to_owned(), Outcome::Ok)), "{outcomes:?}");
    assert!(outcomes.contains(&("notes__count".to_owned(), Outcome::BudgetExceeded)), "{outcomes:?}");
    assert_eq!(rig.effects(), 0);
}

#[tokio::test]
async fn the_time_of_a_principal_is_counted_once() {
    // The call of the graph books its whole time, which includes the time of the graph's own calls.
    let rules = "[budgets.default]\nmax_runtime_ms = 1000\n[budgets.tools.graph__researcher]\nmax_runtime_ms = 60000\n\
                 [budgets.principal]\nwindow = '1h'\ntime_ms = 60000";
    assert_eq!(outcomes_under(rules).await, (vec![Outcome::Ok; 3], Outcome::Ok));
}
