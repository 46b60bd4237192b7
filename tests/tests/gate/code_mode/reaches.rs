//! A script never has more rights than the run that calls it. Its labels, evidence and policies come back to the run.

use tool_runtime::{Outcome, Run, RunOptions, ToolCall, ToolError, tool};

use crate::code_mode::{Rig, World, call, code, options, read};

/// Reads a page of a stranger.
#[tool(name = "notes__page", effect = read_only, redact = ["$"], tags = ["web"])]
fn page() -> Result<String, ToolError> {
    Ok("a stranger wrote this".to_owned())
}

/// Erases a note that was listed.
#[tool(name = "notes__erase", effect = state_change, redact = ["$"])]
fn erase(
    world: &dyn World,
    /// The note.
    #[arg(evidence = "notes__list")]
    number: u32,
) -> Result<u32, ToolError> {
    world.happen();
    Ok(number)
}

async fn exec(run: &Run, id: &str, tool: &str, arguments: &str) -> Outcome {
    run.exec(ToolCall::text(id, tool, arguments)).await.outcome()
}

#[tokio::test]
async fn labels_of_a_script_are_those_of_its_caller() {
    let rules = "[labels.web]\nfrom_tags = ['web']\ndeny_effects = ['state_change']";
    for (script, expected) in [("notes__list()", Outcome::Ok), ("notes__page()", Outcome::PolicyDenied)] {
        let rig = Rig::new();
        let run = rig.run(rules, code().tools(["notes__list", "notes__page"]));
        assert_eq!(run.exec(call(script)).await.outcome(), Outcome::Ok);
        assert_eq!(exec(&run, "c2", "notes__delete", r#"{"number":7}"#).await, expected, "{script}");
    }
    // A script that fails has read the page all the same, and a script has the labels of its caller.
    for (first, script) in [("throw notes__page()", "1"), ("1", "notes__delete(#{ number: 7 })")] {
        let rig = Rig::new();
        let run = rig.run(rules, code().tools(["notes__page", "notes__delete"]).effects());
        run.exec(call(first)).await;
        exec(&run, "c2", "notes__page", "{}").await;
        let denied = match script {
            "1" => exec(&run, "c3", "notes__delete", r#"{"number":7}"#).await == Outcome::PolicyDenied,
            script => {
                let arguments = serde_json::json!({ "script": script }).to_string();
                let result = run.exec(ToolCall::text("c3", "graph__code", arguments)).await;
                result.to_model().contains("policy_denied")
            }
        };
        assert!(denied && rig.effects() == 0, "{first} {script}");
    }
}

#[tokio::test]
async fn evidence_of_a_script_is_that_of_its_caller() {
    let rig = Rig::new();
    let run = rig.run("", code());
    assert_eq!(exec(&run, "c0", "notes__erase", r#"{"number":7}"#).await, Outcome::ValidationError);
    assert!(run.exec(call("notes__list()")).await.is_ok());
    assert_eq!(exec(&run, "c2", "notes__erase", r#"{"number":7}"#).await, Outcome::Ok);
    // An id that a script makes up is no evidence, neither for itself nor for its caller.
    let rig = Rig::new();
    let run = rig.run("", code().tools(["notes__list", "notes__erase"]).effects());
    let result = run.exec(call("let note = 9; notes__erase(#{ number: note })")).await;
    assert!(result.to_model().contains("(validation_error)"), "{}", result.to_model());
    for (id, script) in [("s1", "9"), ("s2", "[\"9\"]"), ("s3", "print(9); \"9\"")] {
        let arguments = serde_json::json!({ "script": script }).to_string();
        assert_eq!(exec(&run, id, "graph__code", &arguments).await, Outcome::Ok);
    }
    assert_eq!(exec(&run, "c2", "notes__erase", r#"{"number":9}"#).await, Outcome::ValidationError);
}

/// A script that makes the same call again and again is stopped like a model. A script that makes different calls is
/// not.
#[tokio::test]
async fn the_loop_guard_stops_a_script() {
    let rig = Rig::new();
    let result = rig.run("", code()).exec(call("for i in 0..10 { notes__list(); }")).await;
    assert!(result.to_model().contains("its guard against loops"), "{}", result.to_model());
    let outcomes: Vec<_> = rig.calls().await.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Ok, Outcome::BudgetExceeded]);
    let rig = Rig::new();
    let result = rig.run("", code()).exec(call("for i in 0..4 { notes__list(); notes__say(#{ text: \"a\" }); }")).await;
    assert!(result.is_ok(), "{}", result.to_model());
    let never =
        rig.run("[loop_guard]\nwarn_at = 0\nstop_at = 0", code()).exec(call("for i in 0..9 { notes__list(); }")).await;
    assert!(never.is_ok(), "{}", never.to_model());
}

/// A repeated call adds a note for a model, but not to the value that a script gets.
#[tokio::test]
async fn a_warning_is_not_part_of_a_value() {
    let rig = Rig::new();
    let result = rig.run("", code()).exec(call("notes__say(#{ text: \"a\" }); notes__say(#{ text: \"a\" })")).await;
    assert_eq!(read(&result.to_model())["value"], "a");
}

/// A run under the maximum number of policies has no room for the policy of a script.
#[tokio::test]
async fn a_run_with_many_policies_runs_no_script() {
    let rig = Rig::new();
    let mut run = rig.run("", code());
    for policies in 1..=16 {
        let arguments = format!("{{\"script\":\"{policies}\"}}");
        let result = run.exec(ToolCall::text(format!("p{policies}"), "graph__code", arguments)).await;
        assert!(result.is_ok(), "{policies}: {}", result.to_model());
        let snapshot = run.snapshot().await.expect("a snapshot");
        let rules = format!("[budgets.run]\ncalls = {}", 1000 + policies);
        run = rig.runner(&rules, code()).restore(snapshot, options()).await.expect("a run");
    }
    let result = run.exec(call("notes__list()")).await;
    assert_eq!(result.outcome(), Outcome::ExecutionError);
    assert!(result.to_model().contains("script_policies"), "{}", result.to_model());
    assert!(rig.calls().await.is_empty());
}

/// Scripts of two runs at the same time each have the principal of their own run.
#[tokio::test]
async fn records_name_the_principal_of_the_run() {
    let rig = Rig::new();
    let runner = rig.runner("", code());
    let (ada, bob) =
        (runner.run(options()), runner.run(RunOptions::new().principal("bob").tenant("acme").run_id("other")));
    let (one, other) = tokio::join!(ada.exec(call("notes__list()")), bob.exec(call("notes__list()")));
    assert!(one.is_ok() && other.is_ok());
    let mut who: Vec<_> = rig
        .records()
        .await
        .into_iter()
        .filter_map(|record| Some((record.principal?.to_string(), record.name.to_string())))
        .collect();
    who.sort();
    let of = |who: &str, tool: &str| (who.to_owned(), tool.to_owned());
    let expected =
        [of("ada", "graph__code"), of("ada", "notes__list"), of("bob", "graph__code"), of("bob", "notes__list")];
    assert_eq!(who, expected);
}
