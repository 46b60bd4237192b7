//! Hostile answers to calls.

use tests::hostile::CANARY;
use tool_runtime::mcp::source::ToolSource;
use tool_runtime::{Outcome, RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

use crate::source::{SHORT, call, connect, echoes, policy, run_of, run_under, server, tool};

async fn check(cases: &[(&str, Outcome, &str)], scenario: &str, effect: &str) {
    // One that never answers ends by the limit, and all others before it.
    for (raw, outcome, shown) in cases.iter().filter(|(raw, ..)| *raw == "hang") {
        let servers = ToolSource::connect([server("s", scenario).call_timeout(SHORT)]).await.unwrap();
        let name = format!("mcp__s__{raw}");
        let result = call(&run_of(&servers, &[&name], effect), &name, "{}").await;
        assert_eq!(result.outcome(), *outcome, "{:?}", result.detail());
        assert!(result.to_model().contains(shown), "{}", result.to_model());
        servers.shutdown().await;
    }
    let cases = cases.iter().filter(|(raw, ..)| *raw != "hang");
    let servers = connect(scenario).await;
    for (raw, outcome, shown) in cases {
        let name = format!("mcp__s__{raw}");
        let run = run_of(&servers, &[&name], effect);
        let result = call(&run, &name, "{}").await;
        assert_eq!(result.outcome(), *outcome, "{raw}: {:?}", result.detail());
        let model = result.to_model();
        assert!(model.contains(shown), "{raw}: {model}");
        assert!(model.len() < 40_000, "{raw}: {} bytes", model.len());
        echoes(&servers).await;
    }
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_answer_ends_its_call_only() {
    check(
        &[
            ("meta", Outcome::Ok, r#"{"text":"fine"}"#),
            ("refuse", Outcome::ExecutionError, "server_refused"),
            ("report", Outcome::ExecutionError, "The tool failed."),
            ("unknown_block", Outcome::Ok, "[Left out: content of an unknown type.]"),
            ("only_unknown", Outcome::OutputInvalid, ""),
            ("half", Outcome::Ok, "fine"),
            ("control", Outcome::Ok, "a[31mredb"),
            ("bad_image", Outcome::Ok, "a file whose content does not match its type"),
            ("image", Outcome::Ok, ""),
            ("link", Outcome::Ok, "http://127.0.0.1:1/secret"),
            ("asks_back", Outcome::ExecutionError, "protocol_violation"),
            ("task", Outcome::OutcomeUnknown, ""),
            ("other_type", Outcome::OutcomeUnknown, ""),
            ("flood", Outcome::Ok, "fine"),
            ("empty", Outcome::Ok, r#"{"text":""}"#),
            ("nothing", Outcome::Ok, r#"{"text":""}"#),
            ("big", Outcome::ResultTooLarge, ""),
            ("hang", Outcome::OutcomeUnknown, ""),
            ("die", Outcome::OutcomeUnknown, ""),
        ],
        "well-behaved",
        "",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_only_reads_may_be_called_again() {
    let cases = [
        ("die", Outcome::Cancelled, "may be made again"),
        ("other_type", Outcome::Cancelled, "may be made again"),
        ("hang", Outcome::Timeout, "\"timeout\""),
    ];
    check(&cases, "well-behaved", "effect = 'read_only'").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_content_is_what_the_definition_says_and_projected() {
    let cases = [
        ("right", Outcome::Ok, r#"{"id":7}"#),
        ("wrong", Outcome::OutputInvalid, ""),
        ("missing", Outcome::OutputInvalid, ""),
        ("failing", Outcome::ExecutionError, "server_reported"),
    ];
    check(&cases, "structured", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_reports_is_shown_where_the_policy_says_so() {
    let servers = connect("well-behaved").await;
    let rule = |redact: &str| {
        let rules = ["report", "silent"].map(|name| {
            let pin = tool(&servers, name).pin().unwrap();
            format!("[tools.mcp__s__{name}]\npin = '{pin}'\nredact = {redact}\n")
        });
        let text = format!("allowed_tools = ['mcp__s__report', 'mcp__s__silent']\n{}", rules.concat());
        ToolPolicy::from_toml(&text).unwrap()
    };
    let shown = call(&run_under(&servers, rule("['text', '$error']")), "mcp__s__report", "{}").await;
    assert!(shown.to_model().contains("there is no such file"), "{}", shown.to_model());
    let hidden = call(&run_under(&servers, rule("['text']")), "mcp__s__report", "{}").await;
    assert!(!hidden.to_model().contains("file"), "{}", hidden.to_model());
    // A failure without a text has the fixed sentence.
    let silent = call(&run_under(&servers, rule("['text', '$error']")), "mcp__s__silent", "{}").await;
    let hidden = call(&run_under(&servers, rule("['text']")), "mcp__s__silent", "{}").await;
    assert_eq!(silent.to_model(), hidden.to_model());
    assert!(silent.to_model().contains("server_reported") && !silent.to_model().contains(r#""message":"""#));
    let catalog = ToolCatalog::builder().source(&servers).build().unwrap();
    let error = ToolRunner::builder(catalog, rule("['texts']")).build().unwrap_err().to_string();
    assert!(error.contains("tools.mcp__s__report.redact"), "{error}");
}

/// The values of a process's environment are replaced by their names, as in its standard error.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_does_not_repeat_the_environment() {
    let servers = ToolSource::connect([server("s", "well-behaved").env("KEY", CANARY)]).await.unwrap();
    for name in ["report_key", "refuse_key"] {
        let pin = tool(&servers, name).pin().unwrap();
        let policy = format!(
            "allowed_tools = ['mcp__s__{name}']\ntools.mcp__s__{name} = {{ pin = '{pin}', redact = ['text', '$error'] }}"
        );
        let run = run_under(&servers, ToolPolicy::from_toml(&policy).unwrap());
        let result = call(&run, &format!("mcp__s__{name}"), "{}").await;
        let shown = format!("{result:?} {:?} {}", result.detail(), result.to_model());
        assert!(shown.contains("no such key: [KEY]") && !shown.contains(CANARY), "{shown}");
    }
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_labels_its_run() {
    let servers = connect("well-behaved").await;
    let names = ["mcp__s__echo", "mcp__s__meta"];
    let pinned = policy(&servers, &names, "");
    let mut data = serde_json::to_value(&pinned).unwrap();
    data["labels"] = serde_json::json!({"untrusted": {"deny_effects": ["external_side_effect"]}});
    let policy = ToolPolicy::from_json(&data.to_string()).unwrap();
    let catalog = ToolCatalog::builder().source(&servers).build().unwrap();
    let run = ToolRunner::builder(catalog, policy).build().unwrap().run(RunOptions::new());
    assert_eq!(call(&run, "mcp__s__meta", "{}").await.outcome(), Outcome::Ok);
    assert_eq!(call(&run, "mcp__s__echo", r#"{"text":"x"}"#).await.outcome(), Outcome::PolicyDenied);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_validated_before_they_are_sent() {
    let servers = connect("well-behaved").await;
    let run = run_of(&servers, &["mcp__s__echo"], "");
    assert_eq!(call(&run, "mcp__s__echo", "{}").await.outcome(), Outcome::ValidationError);
    assert_eq!(call(&run, "mcp__s__env", "{}").await.outcome(), Outcome::PolicyDenied);
}
