//! Tools whose definitions change after a policy pinned them.

use std::time::Duration;

use tests::Shown as _;
use tool_runtime::call::DecisionError;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::{Outcome, RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

use crate::source::{call, connect, echoes, policy, run_of, run_under, server, tool};

const PAY: &str = "mcp__s__pay";

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_definition_is_denied_until_the_policy_pins_it() {
    for scenario in ["description", "schema", "output", "annotations", "title", "meta", "quarantine"] {
        let servers = connect(&format!("rugpull-{scenario}")).await;
        let old = policy(&servers, &[PAY, "mcp__s__echo"], "");
        let run = run_under(&servers, old.clone());
        assert_eq!(call(&run, PAY, "{}").await.outcome(), Outcome::Ok, "{scenario}");
        servers.refresh().await;
        let denied = call(&run, PAY, "{}").await;
        assert_eq!(denied.outcome(), Outcome::PolicyDenied, "{scenario}");
        assert_eq!(call(&run, "mcp__s__echo", r#"{"text":"x"}"#).await.outcome(), Outcome::Ok, "{scenario}");
        // A catalog that is built now, with the new definition, under the old policy.
        let fresh = run_under(&servers, old.clone());
        assert!(!call(&fresh, PAY, "{}").await.is_ok(), "{scenario}");
        let state = tool(&servers, "pay").state(&old);
        if scenario == "quarantine" {
            assert_eq!(state, "quarantined");
        } else {
            assert_eq!(state, "drifted", "{scenario}");
            let named = run_of(&servers, &[PAY], "");
            let outcome = call(&named, PAY, "{}").await.outcome();
            let expected = if scenario == "output" { Outcome::OutputInvalid } else { Outcome::Ok };
            assert_eq!(outcome, expected, "{scenario}");
            // The run with the old definition is still denied, and so is a model that was offered it.
            assert_eq!(call(&run, PAY, "{}").await.outcome(), Outcome::PolicyDenied, "{scenario}");
        }
        servers.shutdown().await;
    }
}

/// A call waits, and its server publishes another definition meanwhile: the refusal names that cause.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_names_the_definition_that_changed() {
    let servers = connect("rugpull-swap-back").await;
    let pin = tool(&servers, "pay").pin().expect("a pin");
    let asks = format!(
        "allowed_tools = ['{PAY}']\nrequire_approval_for_tools = ['{PAY}']\n[tools.{PAY}]\npin = '{pin}'\n\
         redact = ['text', 'resources.uri', '$media']"
    );
    let catalog = ToolCatalog::builder().source(&servers).build().expect("a catalog");
    let policy = ToolPolicy::from_toml(&asks).expect("a policy");
    let runner = ToolRunner::builder(catalog, policy).approvals(true).build().expect("a runner");
    let run = runner.run(RunOptions::new());
    let asked = call(&run, PAY, "{}").await;
    assert_eq!(asked.outcome(), Outcome::ApprovalRequired);
    let id = asked.call_id().as_str();
    servers.refresh().await;
    let refused = run.resume_shown(id, ApprovalDecision::Approve, &tests::grace()).await.expect("it waits");
    assert_eq!((refused.outcome(), refused.executed()), (Outcome::ApprovalMismatch, false));
    assert_eq!(refused.error().and_then(|error| error.mismatch), Some(DecisionError::Definition));
    // Once a person has looked at the definition, which came back, the call runs.
    servers.refresh().await;
    assert!(servers.review(PAY));
    let approved = run.resume_shown(id, ApprovalDecision::Approve, &tests::grace()).await.expect("it waits");
    assert_eq!(approved.outcome(), Outcome::Ok);
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_keys_is_no_change() {
    let servers = connect("rugpull-keyorder").await;
    let run = run_of(&servers, &[PAY], "");
    servers.refresh().await;
    assert_eq!(call(&run, PAY, "{}").await.outcome(), Outcome::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_comes_back_stays_denied_until_somebody_looks() {
    let servers = connect("rugpull-swap-back").await;
    let pinned = policy(&servers, &[PAY], "");
    let run = run_under(&servers, pinned.clone());
    servers.refresh().await;
    servers.refresh().await;
    assert_eq!(call(&run, PAY, "{}").await.outcome(), Outcome::PolicyDenied);
    assert_eq!(tool(&servers, "pay").state(&pinned), "drifted");
    assert!(servers.review(PAY) && !servers.review("mcp__s__other"));
    assert_eq!(tool(&servers, "pay").state(&pinned), "enabled");
    assert_eq!(call(&run, PAY, "{}").await.outcome(), Outcome::Ok);
}

/// Runs of one party share their tools. A run that starts after a change gets the tools of that time.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_never_starts_with_the_tools_of_before() {
    let servers = connect("rugpull-swap-back").await;
    let pinned = policy(&servers, &[PAY, "mcp__s__echo"], "");
    let catalog = ToolCatalog::builder().source(&servers).build().expect("a catalog");
    let runner = ToolRunner::builder(catalog, pinned).build().expect("a runner");
    let sees = |names: &[&str]| {
        let run = runner.run(RunOptions::new());
        let again = runner.run(RunOptions::new().principal("ada"));
        assert!(std::ptr::eq(run.catalog(), again.catalog()));
        assert_eq!(run.catalog().specs().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), names);
        let named = runner.run(RunOptions::new().tools([PAY]));
        assert_eq!(named.catalog().get(PAY).is_some(), names.contains(&PAY));
    };
    sees(&["mcp__s__echo", PAY]);
    servers.refresh().await;
    sees(&["mcp__s__echo"]);
    // It has the pinned definition again, and nobody has looked at it.
    servers.refresh().await;
    sees(&["mcp__s__echo"]);
    assert!(servers.review(PAY));
    sees(&["mcp__s__echo", PAY]);
    servers.shutdown().await;
    sees(&["mcp__s__echo", PAY]);
}

/// A server that changes its tools without a notification is asked again before a call.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_old_is_read_again_before_a_call() {
    let servers = [server("s", "rugpull-description").refresh(Duration::ZERO)];
    let servers = tool_runtime::mcp::source::ToolSource::connect(servers).await.unwrap();
    let run = run_of(&servers, &[PAY], "");
    let denied = call(&run, PAY, "{}").await;
    assert_eq!(denied.outcome(), Outcome::PolicyDenied);
    assert!(!denied.executed());
    echoes(&servers).await;
}

/// A pin covers everything that was published, in any order of keys, and anybody can compute it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pin_is_the_hash_of_canonical_json() {
    let servers = connect("well-behaved").await;
    let echo = tool(&servers, "echo");
    let text = r#"{"description":"Says it again.","inputSchema":{"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"},"name":"echo"}"#;
    assert_eq!(echo.definition().unwrap().to_string(), text);
    // printf %s "$text" | sha256sum
    assert_eq!(echo.pin().unwrap().to_string(), ECHO);
    let enabled = policy(&servers, &["mcp__s__echo"], "");
    assert_eq!(echo.state(&enabled), "enabled");
    assert_eq!(echo.state(&ToolPolicy::deny_all()), "discovered");
}

const ECHO: &str = "3f7f60f181687529e595551f2f2a614117c2d7d7e8a6de089fc1d7f41d3f5dd7";
