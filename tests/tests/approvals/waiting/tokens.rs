//! Sealed tokens of waiting calls: a carrier cannot read one. A token opens only if it is unchanged, and only for a run
//! that fits its call, such as one of the same principal under the same policy.

use std::time::Duration;

use tool_runtime::runner::{ResumeError, SealingKeys};
use tool_runtime::testing::ManualClock;

use tool_runtime::store::RecordFilter;

use super::*;

const CANARY: &str = "canary-7f3a";

/// Sends something.
#[tool(name = "waiting__send", effect = external_side_effect, redact = ["$"])]
fn send(
    /// To whom.
    to: String,
    /// What.
    #[arg(sensitive)]
    text: String,
) -> Result<usize, ToolError> {
    Ok(to.len() + text.len())
}

const SENDS: &str = "allowed_tools = [\"waiting__send\"]\nrequire_approval_for_tools = [\"waiting__send\"]\n";

fn keys() -> SealingKeys {
    SealingKeys::new("2026-11", [7; 32])
}

/// A service without a separate store.
fn service(policy: &str, clock: &Arc<ManualClock>) -> ToolRunner {
    let policy = ToolPolicy::from_toml(policy).expect("a policy");
    let catalog = ToolCatalog::collect().expect("a catalog");
    ToolRunner::builder(catalog, policy).approvals(true).clock(Arc::clone(clock)).build().expect("a runner")
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time")))
}

async fn sealed(clock: &Arc<ManualClock>) -> String {
    let run = service(SENDS, clock).run(ada());
    let arguments = format!(r#"{{"to":"{CANARY}-to","text":"{CANARY}-text"}}"#);
    let waits = run.exec(ToolCall::text("c", "waiting__send", arguments)).await;
    assert_eq!(waits.outcome(), Outcome::ApprovalRequired);
    run.seal("c", &keys()).await.expect("it waits")
}

#[tokio::test]
async fn a_token_runs_its_call_in_another_process() {
    let clock = clock();
    let token = sealed(&clock).await;
    let again = sealed(&clock).await;
    assert_ne!(token, again, "the nonce is another one");
    for hidden in [CANARY, "waiting__send", "require_approval"] {
        assert!(!token.contains(hidden), "{hidden}");
    }
    let second = service(SENDS, &clock);
    let rotated = SealingKeys::new("2026-12", [8; 32]).also_opens("2026-11", [7; 32]);
    assert!(!format!("{rotated:?}").contains('8'), "{rotated:?}");
    let (run, question) = second.open_token(&token, &rotated, ada()).await.expect("it opens");
    let result = run.resume(&question, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!((result.outcome(), result.to_model().as_str()), (Outcome::Ok, "30"));
    // In this store, the call is decided already.
    let used = second.open_token(&token, &rotated, ada()).await.expect_err("used");
    assert_eq!(used.code(), "not_pending");
}

#[tokio::test]
async fn each_bit_of_a_token_counts() {
    let clock = clock();
    let (token, second) = (sealed(&clock).await, service(SENDS, &clock));
    for at in 0..token.len() {
        for bit in [0, 3] {
            let mut bytes = token.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let error = second.open_token(&changed, &keys(), ada()).await.expect_err("changed");
            let allowed = ["token_forged", "token_key_unknown", "token_version"];
            assert!(allowed.contains(&error.code()), "{at}: {}", error.code());
            assert!(!format!("{error:?} {error}").contains(CANARY));
        }
    }
    let body = token.rfind('.').expect("a body") + 9;
    let flipped = if &token[body..=body] == "A" { "B" } else { "A" };
    let changed = format!("{}{flipped}{}", &token[..body], &token[body + 1..]);
    assert_eq!(second.open_token(&changed, &keys(), ada()).await.expect_err("changed").code(), "token_forged");
    for wrong in
        ["", ".", "..", "tool-runtime-approval-1.2026-11.", "tool-runtime-approval-1.2026-11.AAAA", &token[..80]]
    {
        assert_eq!(second.open_token(wrong, &keys(), ada()).await.expect_err(wrong).code(), "token_forged");
    }
    assert!(second.store().records(&RecordFilter::default()).await.expect("records").is_empty());
}

#[tokio::test]
async fn a_token_opens_where_it_fits_only() {
    let other_policy = format!("{SENDS}[budgets.run]\ncalls = 9\n");
    let cases: [(&str, &str, SealingKeys, RunOptions, u64); 10] = [
        ("token_key_unknown", SENDS, SealingKeys::new("2026-12", [8; 32]), ada(), 0),
        ("token_forged", SENDS, SealingKeys::new("2026-11", [8; 32]), ada(), 0),
        ("token_expired", SENDS, keys(), ada(), 25),
        ("other_principal", SENDS, keys(), RunOptions::new().principal("eve").tenant("acme"), 0),
        ("other_tenant", SENDS, keys(), RunOptions::new().principal("ada").tenant("other"), 0),
        ("policy", &other_policy, keys(), ada(), 0),
        ("policy", POLICY, keys(), ada(), 0),
        ("attributes", SENDS, keys(), ada().attribute("region", "north"), 0),
        ("other_caller", SENDS, keys(), ada().caller(graph("report")), 0),
        ("", SENDS, keys(), ada().role("admin"), 0),
    ];
    for (expected, policy, keys, options, hours) in cases {
        let clock = clock();
        let token = sealed(&clock).await;
        clock.advance(Duration::from_secs(3600 * hours));
        let second = service(policy, &clock);
        match second.open_token(&token, &keys, options).await {
            Err(error) => {
                assert_eq!(error.code(), expected);
                assert!(!format!("{error:?} {error}").contains(CANARY));
                let waiting = tests::pending_calls(second.store(), &RecordFilter::default()).await;
                assert!(waiting.is_empty(), "{expected}");
            }
            // A role that the run did not have is left out.
            Ok(_) => assert_eq!(expected, ""),
        }
    }
    let clock = clock();
    let run = service(SENDS, &clock).run(ada());
    assert!(matches!(run.seal("nothing", &keys()).await, Err(ResumeError::NotWaiting(_))));
}

/// A token that is sealed after the first approval carries it, also to a service that opened an earlier token.
#[tokio::test]
async fn a_token_carries_an_approval_to_the_next_service() {
    let two = format!("{SENDS}[approvals]\nrequired = 2\n");
    let by = |name: &str| Decider::new(name).tenant("acme");
    for opened_before in [false, true] {
        let clock = clock();
        let run = service(&two, &clock).run(ada());
        run.exec(ToolCall::text("c", "waiting__send", r#"{"to":"a","text":"b"}"#)).await;
        let before = run.seal("c", &keys()).await.expect("it waits");
        let second = service(&two, &clock);
        if opened_before {
            second.open_token(&before, &keys(), ada()).await.expect("it opens");
        }
        let first = run.resume_shown("c", ApprovalDecision::Approve, &by("grace")).await.expect("it counts");
        assert_eq!(first.approvals(), Some((1, 2)));
        let after = run.seal("c", &keys()).await.expect("it waits");
        let (run, question) = second.open_token(&after, &keys(), ada()).await.expect("it opens");
        assert_eq!(first.question(), Some(&question));
        let again = run.resume(&question, ApprovalDecision::Approve, &by("grace")).await.expect_err("the same person");
        assert_eq!(again.code(), "not_allowed");
        assert!(run.resume(&question, ApprovalDecision::Approve, &by("heidi")).await.expect("it counts").is_ok());
    }
}
