//! A child that fails, one that is cancelled, and one that runs again.

use super::*;
use tool_runtime::agent::StopReason;
use tool_runtime::testing::ManualClock;

#[tokio::test]
async fn what_goes_wrong_in_a_child_is_one_safe_sentence() {
    let cases: [(&str, Vec<ScriptedTurn>, &str); 3] = [
        ("its model", vec![ScriptedTurn::fails(ModelError::connect("scripted"))], ""),
        ("its answers", vec![ScriptedTurn::text("CANARY"), ScriptedTurn::text("CANARY")], "invalid_answer"),
        ("nothing", vec![ScriptedTurn::text("")], ""),
    ];
    for (why, turns, code) in cases {
        let rig = Rig::new();
        let result = rig.run("", turns).exec(ask("p1")).await;
        assert_eq!(result.outcome(), Outcome::ExecutionError, "{why}");
        let text = text(&result);
        assert!(text.contains("The graph stopped before it was done") && !text.contains("CANARY"), "{text}");
        assert!(code.is_empty() || text.contains(code), "{text}");
    }
    // The child handles a tool that panics.
    let rig = Rig::new();
    let result = rig.run("", [call("c1", "notes__panic", "{}"), ScriptedTurn::text(REPORT)]).exec(ask("p1")).await;
    assert_eq!((result.outcome(), rig.outcomes().await[0].1), (Outcome::Ok, Outcome::Panicked));
    // The result states that part of the task may be done.
    let rig = Rig::new();
    let run = rig.run("", [call("c1", "notes__count", r#"{"at":1}"#), ScriptedTurn::text("")]);
    assert!(text(&run.exec(ask("p1")).await).contains("Part of its task may be done"));
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_parent_cancels_the_child() {
    let rig = Rig::new();
    let run = rig.run("", [call("c1", "notes__hang", "{}")]);
    let exec = tokio::spawn(run.exec(ask("p1")));
    tokio::time::sleep(Duration::from_millis(50)).await;
    run.cancel();
    let result = tokio::time::timeout(LONG, exec).await.expect("it ends").expect("no panic");
    assert_eq!(result.outcome(), Outcome::OutcomeUnknown);
    let outcomes = rig.outcomes().await;
    assert!(outcomes.contains(&("notes__hang".to_owned(), Outcome::Cancelled)), "{outcomes:?}");
    assert_eq!(outcomes.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_hangs_ends_with_its_timeout() {
    let rig = Rig::new();
    // Its model hangs, and it has no tools with effects.
    let agent = Agent::new(ScriptedModel::new([ScriptedTurn::hangs()]));
    let graph = Graph::new("researcher", "1", agent).description("Researches.").tools(["notes__list"]);
    let run = rig.runner("", graph.timeout(Duration::from_millis(50))).run(rig.options());
    let result = tokio::time::timeout(LONG, run.exec(ask("p1"))).await.expect("it ends");
    assert_eq!(result.outcome(), Outcome::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_parent_leaves_one_record_for_each_call() {
    let rig = Rig::new();
    let rules = "[labels.web]\nfrom_tags = ['web']\ndeny_effects = ['external_side_effect']";
    let run = rig.run(rules, [call("c1", "notes__page", "{}"), call("c2", "notes__hang", "{}")]);
    assert!(tokio::time::timeout(Duration::from_millis(50), run.exec(ask("p1"))).await.is_err());
    let outcomes = rig.outcomes().await;
    assert_eq!(outcomes.len(), 3, "{outcomes:?}");
    assert!(outcomes.contains(&("graph__researcher".to_owned(), Outcome::OutcomeUnknown)));
    // Labels come back, however the child ended.
    let snapshot = serde_json::to_string(&run.snapshot().await.expect("a snapshot")).expect("JSON");
    assert!(snapshot.contains("\"labels\":[\"web\"]"), "{snapshot}");
}

#[tokio::test]
async fn a_turn_limit_stops_the_child_alone() {
    let rig = Rig::new();
    let turns = (0..2).map(|at| call(&format!("c{at}"), "notes__list", "{}"));
    let agent = Agent::new(ScriptedModel::new(turns)).max_turns(2);
    let graph = Graph::new("researcher", "1", agent).description("Researches.").tools(["notes__list"]);
    let runner = rig.runner("", graph);
    let model = [call("p1", "graph__researcher", r#"{"task":"Go."}"#), ScriptedTurn::text("It did not work.")];
    let mut conversation = Agent::new(ScriptedModel::new(model)).converse(runner.run(rig.options()));
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Answered { .. }));
    assert_eq!(StopReason::TurnLimit.code(), "turn_limit");
    assert!(serde_json::to_string(&conversation.history()).expect("JSON").contains("turn_limit"));
}

#[tokio::test(start_paused = true)]
async fn a_graph_that_runs_again_finds_what_it_did() {
    for idempotent in [true, false] {
        let rig = Rig::new();
        let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().expect("a time")));
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
        let process = |turns: Vec<ScriptedTurn>| {
            let graph = if idempotent { researcher(turns).idempotent() } else { researcher(turns) };
            let catalog = ToolCatalog::builder().namespaces(["notes"]).dynamic(graph).build().expect("a catalog");
            ToolRunner::builder(catalog, ToolPolicy::from_toml(POLICY).expect("a policy"))
                .capabilities(rig.capabilities())
                .clock(Arc::clone(&clock))
                .store(Arc::clone(&store))
                .build()
                .expect("a runner")
        };
        let count = || call("c1", "notes__count", r#"{"at":1}"#);
        // The first process dies in the middle of the second call of the child.
        let run = process(vec![count(), call("c2", "notes__hang", "{}")]).run(rig.options());
        let mut exec = Box::pin(run.exec(ask("p1")));
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut exec).await.is_err());
        std::mem::forget(exec);
        clock.advance(Duration::from_hours(1));
        let turns = if idempotent { vec![count(), ScriptedTurn::text(REPORT)] } else { Vec::new() };
        let run = process(turns).run(rig.options());
        let result = run.exec(ask("p1")).await;
        assert_eq!(rig.effects(), 1);
        assert_eq!(result.outcome(), if idempotent { Outcome::Ok } else { Outcome::OutcomeUnknown });
    }
}
