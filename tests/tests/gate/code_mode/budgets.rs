//! The budgets of a script: calls, time and output, and the limits that stop it.

use std::time::Duration;

use serde_json::Value;
use tool_runtime::{Outcome, ToolExecResult, ToolInvocationRecord};

use crate::code_mode::{HANGING, Rig, call, code, run};

const THOUSAND: &str = "let n = 0; for i in 0..1000 { n += notes__say(#{ text: `${i}` }).len(); } n";

async fn thousand(rules: &str, calls: usize) -> (ToolExecResult, Vec<ToolInvocationRecord>) {
    let rig = Rig::new();
    let result = rig.run(rules, code().max_calls(calls)).exec(call(THOUSAND)).await;
    (result, rig.records().await)
}

#[tokio::test]
async fn a_thousand_calls_are_a_thousand_records() {
    let (result, records) = thousand("", 1000).await;
    assert_eq!(result.to_model(), r#"{"value":"2890","printed":"","calls":1000}"#);
    assert_eq!(records.iter().filter(|record| record.outcome == Outcome::Ok).count(), 1001);
}

#[tokio::test]
async fn a_thousand_calls_keep_the_budget_of_the_script() {
    let (result, records) = thousand("", 300).await;
    assert!(result.to_model().contains("too many calls"), "{}", result.to_model());
    assert_eq!(records.len(), 301);
}

/// The call that has no budget is refused and recorded, and the script ends.
#[tokio::test]
async fn a_thousand_calls_keep_the_budget_of_the_policy() {
    for rules in ["[budgets.graphs.code]\ncalls = 50", "[budgets.run]\ncalls = 51"] {
        let (result, records) = thousand(rules, 1000).await;
        assert!(result.to_model().contains("A budget of the run"), "{}", result.to_model());
        let count = |outcome| records.iter().filter(|record| record.outcome == outcome).count();
        assert_eq!((count(Outcome::Ok), count(Outcome::BudgetExceeded)), (50, 1), "{rules}");
    }
}

#[tokio::test]
async fn a_script_that_takes_too_long_is_stopped() {
    for script in ["loop {}", "notes__hang()", "try { notes__hang() } catch { loop {} }"] {
        let rig = Rig::new();
        let slow = code().timeout(Duration::from_millis(300)).max_operations(u64::MAX);
        let result = rig.run("", slow).exec(call(script)).await;
        assert_eq!(result.outcome(), Outcome::Timeout, "{script}");
    }
}

#[tokio::test]
async fn a_script_ends_with_its_run() {
    let rig = Rig::new();
    let run = rig.run("", code());
    let (cancelled, running) = (run.clone(), run.exec(call("try { notes__hang() } catch { 1 }")));
    let cancel = async {
        while HANGING.get() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancelled.cancel();
    };
    let (result, ()) = tokio::join!(running, cancel);
    assert_eq!(result.outcome(), Outcome::Cancelled);
    assert_eq!(rig.records().await.len(), 2);
}

/// The result takes precedence, and printed text gets the room that is left.
#[tokio::test]
async fn output_is_bounded() {
    let rig = Rig::new();
    let flood = "for i in 0..10000 { print(\"a \\\" flood\"); } \"the result\"";
    let result = rig.run("", code().max_output(1000)).exec(call(flood)).await;
    let text = result.to_model();
    assert!(text.starts_with(r#"{"value":"\"the result\"","printed":"a \" flood\n"#) && text.len() <= 1000, "{text}");
    assert!(text.len() > 900, "the room is used: {text}");
    let large = "let s = \"x\"; for i in 0..12 { s += s; } s";
    let result = rig.run("", code().max_output(1000)).exec(call(large)).await;
    assert!(!result.is_ok(), "{}", result.to_model());
}

/// The length of printed text is that of its JSON.
#[tokio::test]
async fn printed_text_is_cut_by_its_length_in_json() {
    for (character, least) in [("a", 10_001), ("\"", 10_001), ("\\x01", 5_000)] {
        let (result, _) = run(&format!("let s = \"\"; s.pad(10000, '{character}'); print(s); 1")).await;
        let text = result.to_model();
        assert!(result.is_ok() && text.len() <= 32 << 10, "{character}: {} bytes", text.len());
        let output: Value = serde_json::from_str(&text).expect("JSON");
        let printed = output["printed"].as_str().expect("text").len();
        assert!((least..=10_001).contains(&printed), "{character}: {printed} bytes");
    }
}

/// The policy's default limit on arguments has room for the longest script of the published schema.
#[tokio::test]
async fn the_longest_script_of_the_schema_runs_by_default() {
    let schema = Rig::new().run("", code()).catalog().get("graph__code").expect("the tool").input_schema.to_value();
    let most = schema["properties"]["script"]["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok());
    let most = most.expect("a limit");
    let line = format!("// \"{}\"\n", "x".repeat(34));
    let longest = format!("{}{}", line.repeat(most / line.len()), " ".repeat(most % line.len()));
    let (result, _) = run(&longest).await;
    assert!(result.is_ok(), "{}", result.to_model());
    let (longer, _) = run(&format!("{longest} ")).await;
    assert_eq!(longer.outcome(), Outcome::ValidationError);
}

/// More scripts than may run at a time wait for each other, and all end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_run_side_by_side() {
    let rig = Rig::new();
    let runner = rig.runner("", code());
    let tasks: Vec<_> = (0..100)
        .map(|at| {
            let run = runner.run(crate::code_mode::options().run_id(format!("run {at}")));
            tokio::spawn(async move { run.exec(call("notes__list().len()")).await.is_ok() })
        })
        .collect();
    for task in tasks {
        assert!(task.await.expect("a task"));
    }
}

/// A limit of zero is the smallest limit, not the absence of a limit.
#[tokio::test]
async fn a_limit_of_zero_is_a_limit() {
    for limited in [code().max_operations(0), code().max_calls(0)] {
        let rig = Rig::new();
        let result = rig.run("", limited).exec(call("for i in 0..9 { notes__say(#{ text: `${i}` }); }")).await;
        assert!(!result.is_ok() && result.to_model().contains("script_budget"), "{}", result.to_model());
        assert!(rig.calls().await.is_empty());
    }
}
