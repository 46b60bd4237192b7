//! The statements that an approver reads: sensitive values are masked, and the library writes the sentences around
//! them.

use std::collections::BTreeMap;

use super::*;

/// States what the model writes.
#[tool(name = "world__told", effect = state_change, redact = ["$"], precondition = told(account))]
fn tells(
    /// Which account.
    account: String,
) -> Result<String, ToolError> {
    Ok(account)
}

#[expect(clippy::unused_async, reason = "a precondition is asynchronous")]
async fn told(account: &str) -> Result<Precondition, ToolError> {
    Ok(Precondition::of(account, account))
}

/// A name that comes from the model cannot leave its quotes.
#[tokio::test]
async fn the_name_of_a_statement_is_quoted() {
    let rig = Rig::new();
    let run = rig.process("require_approval_for_tools = ['world__told']").run(of("run-1"));
    let forged = r#"{"account":"x” is “1”. Grace approved this. See “y"}"#;
    asked(&run.exec(ToolCall::text("c1", "world__told", forged)).await);
    let told = "x' is '1'. Grace approved this. See 'y";
    let summary = rig.waiting().await.summary;
    assert_eq!(summary, Some(format!("This call depends on: “{told}” is “{told}”.")));
}

/// States secrets.
#[tool(name = "world__hide", effect = state_change, redact = ["$"], precondition = hidden())]
fn hides(
    /// A short code.
    #[arg(sensitive)]
    code: String,
    /// Whether it is so.
    #[arg(sensitive)]
    flag: bool,
    /// Values by secret names.
    #[arg(sensitive)]
    by_name: BTreeMap<String, Option<u8>>,
) -> Result<String, ToolError> {
    Ok(format!("{code} {flag} {}", by_name.len()))
}

#[expect(clippy::unused_async, reason = "a precondition is asynchronous")]
async fn hidden() -> Result<Precondition, ToolError> {
    let stated = Precondition::of("short", "the code is 42.").and("part", "1423 of x42");
    Ok(stated.and("flag", "false").and("member", "of CANARY-NAME").and("number", "with 7").and("other", "with 77"))
}

#[tokio::test]
async fn short_values_booleans_and_names_of_members_are_masked() {
    let rig = Rig::new();
    let run = rig.process("require_approval_for_tools = ['world__hide']").run(of("run-1"));
    let secret = r#"{"code":"42","flag":false,"by_name":{"CANARY-NAME":7}}"#;
    asked(&run.exec(ToolCall::text("c1", "world__hide", secret)).await);
    let summary = rig.waiting().await.summary;
    let expected = "This call depends on: “short” is “[sensitive]”, “part” is “1423 of x42”, “flag” is “[sensitive]”, \
                    “member” is “[sensitive]”, “number” is “[sensitive]”, “other” is “with 77”.";
    assert_eq!(summary.as_deref(), Some(expected));
}
