//! The table `notices` of a policy.

use tool_runtime::error::BuildError;

use super::*;

fn built(rules: &str) -> Result<(), String> {
    let policy = format!("allowed_tools = ['notices__refund']\n{rules}");
    let policy = ToolPolicy::from_toml(&policy).map_err(|error: BuildError| error.to_string())?;
    let built = ToolRunner::builder(catalog(), policy).capabilities(processes(0).capabilities()).build();
    built.map(drop).map_err(|error| error.to_string())
}

#[test]
fn what_cannot_take_effect_is_refused() {
    for (rules, part) in [
        ("[notices]\nevent = ['waiting']", "unknown field `event`"),
        ("[notices]\nevents = ['waits']", "waits"),
        ("[notices]\nevents = []", "an empty list sends nothing"),
        ("[notices]\nlink = 'app.example/{call}'", "begins with `https://`"),
        ("[notices]\nlink = 'https://{tenant}.example/'", "a placeholder in the host"),
        ("[notices]\nlink = 'https://user:pass@app.example/'", "without a user"),
        ("[notices]\nlink = 'https://app.example/{id}'", "can contain {run}, {call}"),
        ("[notices.tools.notices__refund]", "this lists nothing"),
        ("[notices.tools.notices__refunds]\narguments = ['/amount']", "notices__refund`"),
        ("[notices.tools.notices__refund]\narguments = ['/amuont']", "/amount"),
        ("[notices.tools.notices__refund]\narguments = ['amount']", "JSON Pointer"),
        ("[notices.tools.notices__refund]\narguments = ['/pin']", "is sensitive"),
    ] {
        let error = built(rules).expect_err(rules);
        assert!(error.contains(part), "{rules}: {error}");
    }
    built(NOTICES).expect("it fits");
}

/// Notices decide nothing: a call that waits is decided under a policy with other notices.
#[tokio::test]
async fn other_notices_are_no_other_policy() {
    let processes = processes(1);
    drop(waits(&processes, &format!("{POLICY}{ASKS}{NOTICES}")).await);
    let run = runner(&processes, &format!("{POLICY}{ASKS}")).run(ada());
    let ended = run.resume_shown("c/1", ApprovalDecision::Approve, &by("grace")).await.expect("it waits");
    assert_eq!(ended.outcome(), Outcome::Ok);
    // The terms with which the call began to wait hold for its notices.
    assert_eq!(kinds(&processes).await, ["call.waiting", "call.decided approved"]);
}
