//! Events of a call, the maximum number of calls of a run, and effects that the policy raises.

use tests::Shown as _;
use tests::spans::Traced;
use tool_runtime::runner::RunSnapshot;

use super::*;

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Two {
    shown: &'static str,
    inner: &'static str,
    secret: &'static str,
}

/// Shows one thing to everybody and one to the model only.
#[tool(name = "gate__two", effect = read_only, redact = ["shown"], model = ["inner"])]
fn two() -> Result<Two, ToolError> {
    Ok(Two { shown: "for all", inner: "MODEL-ONLY", secret: "NOBODY" })
}

#[tokio::test]
async fn what_only_the_model_sees_is_not_debugged() {
    let rig = rig(ToolPolicy::allow(["gate__two"]));
    let result = rig.exec("c", "gate__two", "{}").await;
    assert!(result.to_model().contains("MODEL-ONLY") && !result.to_model().contains("NOBODY"));
    let debug = format!("{result:?}");
    assert!(debug.contains("for all") && !debug.contains("MODEL-ONLY"), "{debug}");
    assert!(!serde_json::to_string(&result).expect("JSON").contains("MODEL-ONLY"));
}

#[tokio::test]
async fn a_call_id_forges_no_line_of_a_log() {
    let traced = Traced::default();
    let guard = tracing::subscriber::set_default(traced.subscriber());
    let rig = rig(ToolPolicy::allow(TOOLS).with_approval_for_effects([ToolEffect::StateChange]));
    let id = |n: u8| format!("{n}\u{1b}]52;c;x\u{7}\nforged");
    for (n, name, arguments) in
        [(1, "gate__fail", "{}"), (2, "gate__none", "{}"), (3, "gate__add", "{"), (4, "gate__change", r#"{"to":1}"#)]
    {
        rig.exec(&id(n), name, arguments).await;
    }
    let edited = ApprovalDecision::ApproveEdited("{".to_owned());
    rig.run.resume_shown(&id(4), edited, &grace()).await.expect("it waits");
    drop(guard);
    let text = traced.text();
    // Each of the four was traced, escaped.
    for n in 1..=4_u8 {
        assert!(text.contains(&format!("{n}\\u{{1b}}]52;c;x")), "{n}: {text}");
    }
    assert!(!text.contains('\u{1b}') && !text.lines().any(|line| line.starts_with("forged")), "{text}");
}

#[tokio::test]
async fn a_record_has_what_was_wrong_without_the_value() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    rig.exec("c", "gate__change", r#"{"to":"CANARY","at":1}"#).await;
    let records = rig.records().await;
    let broken: Vec<_> = records[0].violations.iter().map(|one| (one.pointer.as_str(), one.keyword.as_str())).collect();
    assert_eq!(broken, [("", "additionalProperties"), ("/to", "type")]);
    let again = serde_json::to_string(&records[0].violations).expect("JSON");
    assert!(!again.contains("CANARY"), "{again}");
}

#[tokio::test]
async fn the_model_reads_whether_a_failed_call_ran() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    let failed = rig.exec("failed", "gate__fail", "{}").await;
    assert!(failed.to_model().contains(r#""executed":true"#), "{}", failed.to_model());
    let refused = rig.exec("refused", "gate__change", r#"{"to":0}"#).await;
    assert!(!refused.to_model().contains("executed"), "{}", refused.to_model());
}

#[tokio::test]
async fn a_delivered_result_states_whether_an_effect_began() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    for (id, name, arguments) in [("ok", "gate__change", r#"{"to":1}"#), ("panics", "gate__panic_effect", "{}")] {
        rig.exec(id, name, arguments).await;
        assert!(!rig.run.may_have_begun(&id.into()), "{id}");
    }
}

/// The snapshot of a run that has used this many ids.
async fn snapshot_with(run: &Run, ids: usize) -> RunSnapshot {
    let snapshot = run.snapshot().await.expect("a snapshot");
    let mut document = serde_json::to_value(snapshot).expect("a document");
    let ids: Vec<_> = (0..ids).map(|at| json!(format!("old-{at}"))).collect();
    document["state"]["seen"] = ids.into();
    serde_json::from_value(document).expect("a snapshot")
}

#[tokio::test]
async fn a_run_takes_a_hundred_thousand_calls_and_says_so() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    let options = || RunOptions::new().principal("ada");
    let snapshot = snapshot_with(&rig.run, 99_999).await;
    let run = rig.runner.restore(snapshot, options()).await.expect("a run");
    let call = |id: &str| run.exec(ToolCall::text(id, "gate__add", r#"{"a":1,"b":2}"#));
    assert!(call("last").await.is_ok());
    let beyond = call("beyond").await;
    assert_eq!((beyond.outcome(), beyond.executed()), (Outcome::BudgetExceeded, false));
    assert!(beyond.to_model().contains("100000 calls"), "{}", beyond.to_model());
    // An id that was used is still recognized, and neither call is ever run.
    let again = call("old-7").await;
    assert_eq!(again.outcome(), Outcome::PolicyDenied);
    assert!(again.to_model().contains("already used"), "{}", again.to_model());
    assert_eq!(call("beyond").await.outcome(), Outcome::BudgetExceeded, "it was not remembered");
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_the_policy_raises_counts_to_the_end() {
    let raised = |name: &str| {
        let list: Vec<_> = TOOLS.iter().map(|name| format!("'{name}'")).collect();
        let policy = format!("allowed_tools = [{}]\n[tools.{name}]\neffect = 'state_change'", list.join(","));
        rig(ToolPolicy::from_toml(&policy).expect("a policy"))
    };
    assert_eq!(raised("gate__hang").exec("c", "gate__hang", "{}").await.outcome(), Outcome::OutcomeUnknown);
    assert_eq!(raised("gate__panic").exec("c", "gate__panic", "{}").await.outcome(), Outcome::OutcomeUnknown);
    let rig = raised("gate__hang");
    let call = rig.run.exec(ToolCall::text("dropped", "gate__hang", "{}"));
    assert!(tokio::time::timeout(Duration::from_millis(10), call).await.is_err());
    rig.settled(&rig.records().await, "dropped", Outcome::OutcomeUnknown);
    assert!(rig.run.may_have_begun(&"dropped".into()));
}

#[test]
fn an_effect_is_not_lowered() {
    let policy = "allowed_tools = ['gate__change']\n[tools.gate__change]\neffect = 'read_only'";
    let policy = ToolPolicy::from_toml(policy).expect("a policy");
    assert_eq!(policy.effect_of("gate__change", ToolEffect::StateChange), ToolEffect::StateChange);
    let error = ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy).build().expect_err("lowered");
    assert_eq!(error.code(), "policy_problem");
    assert!(error.to_string().contains("write `state_change` or more"), "{error}");
}
