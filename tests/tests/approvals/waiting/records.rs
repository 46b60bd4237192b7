//! The record of a call is the same for every way in which the call arrives: its validation, repair, decision and
//! violations.

use std::time::Duration;
use tests::Shown as _;

use serde_json::Value;
use tool_runtime::call::DigestKey;
use tool_runtime::testing::ManualClock;

use super::*;

/// Ends in its own way.
#[tool(name = "recorded__change", effect = state_change, redact = ["$"])]
async fn ends(
    /// How.
    #[schemars(range(min = 0, max = 9))]
    how: u8,
) -> Result<f64, ToolError> {
    end(how).await
}

/// Ends in its own way, and changes nothing.
#[tool(name = "recorded__read", effect = read_only, redact = ["$"])]
async fn reads(
    /// How.
    #[schemars(range(min = 0, max = 9))]
    how: u8,
) -> Result<f64, ToolError> {
    end(how).await
}

async fn end(how: u8) -> Result<f64, ToolError> {
    match how {
        1 => Err(ToolError::code("gone")),
        2 => panic!("gone"),
        3 => std::future::pending().await,
        4 => Ok(f64::NAN),
        _ => Ok(f64::from(how)),
    }
}

/// Asks the client.
#[tool(name = "recorded__client", effect = state_change, execution = client, client_result = u8, prepare = ["$"],
    redact = ["$"])]
struct Asks {
    /// What.
    #[schemars(range(min = 0, max = 9))]
    what: u8,
}

impl ToolComponent for Asks {
    type Capabilities = ();
    type Output = u8;

    async fn run(self, (): (), _: &Call<Self>) -> Result<u8, ToolError> {
        Ok(self.what)
    }
}

const TOOLS: &str = r#"
    allowed_tools = ["recorded__change", "recorded__read", "recorded__client"]
    repair = { allowed = ["fenced_json"], require_approval = false }
    budgets.default.max_runtime_ms = 1000
    tools.recorded__change.arguments = [{ pointer = "/how", equals = 9, then = "deny" }]
"#;
const ASKS: &str = "require_approval_for_effects = [\"read_only\", \"state_change\"]\n";

struct Rig {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    run: Run,
}

async fn rig(rules: &str) -> Rig {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time")));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let policy = ToolPolicy::from_toml(&format!("{rules}\n{TOOLS}")).expect("a policy");
    let runner = ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy)
        .approvals(true)
        // The stores differ, and their own keys would differ, too.
        .digest_key(DigestKey::new([7; 32]))
        .clock(Arc::clone(&clock))
        .store(Arc::clone(&store));
    let run = runner.build().expect("a runner").run(ada());
    if rules.contains("calls = 1") {
        let spent = run.exec(ToolCall::text("before", "recorded__read", r#"{"how":6}"#)).await;
        if !spent.is_ok() {
            run.resume_shown("before", ApprovalDecision::Approve, &grace()).await.expect("it waits");
        }
    }
    Rig { clock, store, run }
}

impl Rig {
    /// The record of the call, as JSON.
    async fn record(&self) -> Value {
        serde_json::to_value(record(&self.store, "c").await).expect("a document")
    }
}

/// The arguments as JSON, and in a fence, as models also write them.
fn written(arguments: &str) -> [(String, bool); 2] {
    [(arguments.to_owned(), false), (format!("```json\n{arguments}\n```"), true)]
}

fn check(record: &Value, repaired: bool, what: &str) {
    for field in ["definition_hash", "validator", "decision"] {
        assert!(!record[field].is_null(), "{what}: no {field}: {record}");
    }
    assert_eq!(!record["repair"].is_null(), repaired, "{what}: {record}");
    if repaired {
        assert_eq!(record["repair"]["repairer"], "fenced_json", "{what}");
        assert_ne!(record["repair"]["before"], record["repair"]["after"], "{what}");
    }
}

fn without_decision(mut record: Value) -> Value {
    record["decision"].take();
    record
}

#[tokio::test(start_paused = true)]
async fn a_call_has_the_same_record_whichever_way_it_came() {
    let cases = [
        ("recorded__change", r#"{"how":0}"#, "", Outcome::Ok),
        ("recorded__change", r#"{"how":1}"#, "", Outcome::ExecutionError),
        ("recorded__change", r#"{"how":2}"#, "", Outcome::OutcomeUnknown),
        ("recorded__change", r#"{"how":3}"#, "", Outcome::OutcomeUnknown),
        ("recorded__change", r#"{"how":4}"#, "", Outcome::OutputInvalid),
        ("recorded__read", r#"{"how":0}"#, "", Outcome::Ok),
        ("recorded__read", r#"{"how":1}"#, "", Outcome::ExecutionError),
        ("recorded__read", r#"{"how":2}"#, "", Outcome::Panicked),
        ("recorded__read", r#"{"how":3}"#, "", Outcome::Timeout),
        ("recorded__read", r#"{"how":5}"#, "budgets.default.max_result_bytes = 2", Outcome::ResultTooLarge),
        ("recorded__change", r#"{"how":0}"#, "budgets.run.calls = 1", Outcome::BudgetExceeded),
        ("recorded__change", r#"{"how":9}"#, "", Outcome::PolicyDenied),
        ("recorded__client", r#"{"what":1}"#, "", Outcome::ClientRequired),
    ];
    for (tool, arguments, rules, expected) in cases {
        for (arguments, repaired) in written(arguments) {
            let what = format!("{tool} {arguments} {rules}");
            let call = || ToolCall::text("c", tool, arguments.clone());
            let exec = rig(rules).await;
            assert_eq!(exec.run.exec(call()).await.outcome(), expected, "{what}");
            let plain = exec.record().await;
            check(&plain, repaired, &what);
            let hydrated = rig(rules).await;
            let one = hydrated.run.hydrate([call()]).remove(0).hydrated.expect("good arguments");
            assert_eq!(one.repaired(), repaired, "{what}");
            assert_eq!(hydrated.run.exec_hydrated(one).await.outcome(), expected, "{what}");
            assert_eq!(hydrated.record().await, plain, "{what}: exec_hydrated");
            if expected == Outcome::PolicyDenied {
                continue;
            }
            // A person decides in between, both for `exec` and for `exec_hydrated`.
            let rules = format!("{ASKS}{rules}");
            let (one, two) = (rig(&rules).await, rig(&rules).await);
            assert_eq!(one.run.exec(call()).await.outcome(), Outcome::ApprovalRequired, "{what}");
            let hydrated = two.run.hydrate([call()]).remove(0).hydrated.expect("good arguments");
            assert_eq!(two.run.exec_hydrated(hydrated).await.outcome(), Outcome::ApprovalRequired, "{what}");
            assert_eq!(one.record().await, two.record().await, "{what}: open");
            check(&one.record().await, repaired, &what);
            for rig in [one, two] {
                let result = rig.run.resume_shown("c", ApprovalDecision::Approve, &grace()).await.expect("it waits");
                assert_eq!(result.outcome(), expected, "{what}");
                let approved = rig.record().await;
                assert_eq!(approved["decision"]["verdict"], "require_approval", "{what}");
                assert_eq!(without_decision(approved), without_decision(plain.clone()), "{what}: resume");
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_a_person_or_a_client_ends_keeps_what_was_known_of_it() {
    let late = |rig: &Rig| rig.clock.advance(Duration::from_hours(25));
    for (arguments, repaired) in written(r#"{"how":0}"#) {
        let cases = [
            (ApprovalDecision::Deny(None), false, Outcome::ApprovalDenied),
            (ApprovalDecision::Approve, true, Outcome::ApprovalExpired),
            (ApprovalDecision::Respond("3".to_owned()), false, Outcome::Ok),
            (ApprovalDecision::ApproveEdited(r#"{"how":1}"#.to_owned()), false, Outcome::ExecutionError),
        ];
        for (decision, is_late, expected) in cases {
            let rig = rig(ASKS).await;
            rig.run.exec(ToolCall::text("c", "recorded__change", arguments.clone())).await;
            if is_late {
                late(&rig);
            }
            let result = rig.run.resume_shown("c", decision, &grace()).await.expect("it waits");
            assert_eq!(result.outcome(), expected);
            check(&rig.record().await, repaired, expected.code());
        }
    }
    for (arguments, repaired) in written(r#"{"what":1}"#) {
        for (answer, is_late, expected) in [
            (Some("7"), false, Outcome::Ok),
            (Some("7"), true, Outcome::OutcomeUnknown),
            (None, false, Outcome::ExecutionError),
        ] {
            let rig = rig("").await;
            rig.run.exec(ToolCall::text("c", "recorded__client", arguments.clone())).await;
            if is_late {
                late(&rig);
            }
            let result = match answer {
                Some(answer) => rig.run.client_result("c", answer).await,
                None => rig.run.client_failed("c").await,
            };
            assert_eq!(result.expect("it waits").outcome(), expected);
            check(&rig.record().await, repaired, expected.code());
        }
    }
}

#[tokio::test]
async fn what_was_violated_is_recorded_where_it_was() {
    let pointers = |violations: &Value| {
        let violations = violations.as_array().cloned().unwrap_or_default();
        violations.iter().map(|one| (one["pointer"].clone(), one["keyword"].clone())).collect::<Vec<_>>()
    };
    let place = |pointer: &str, keyword: &str| vec![(Value::from(pointer), Value::from(keyword))];
    for (arguments, repaired) in written(r#"{"how":10}"#) {
        let rig = rig("").await;
        let result = rig.run.exec(ToolCall::text("c", "recorded__change", arguments)).await;
        assert_eq!(result.outcome(), Outcome::ValidationError);
        let record = rig.record().await;
        assert_eq!(pointers(&record["violations"]), place("/how", "maximum"));
        assert!(!record["validator"].is_null() && record["decision"].is_null(), "{record}");
        assert_eq!(!record["repair"].is_null(), repaired, "{record}");
    }
    let decided = async |rig: &Rig| {
        let decisions = rig.store.records(&RecordFilter::default()).await.expect("records");
        let last = decisions.last().and_then(|sealed| sealed.record.as_decision()).expect("a decision").clone();
        serde_json::to_value(last).expect("a document")
    };
    let one = rig(ASKS).await;
    one.run.exec(ToolCall::text("c", "recorded__change", r#"{"how":0}"#)).await;
    let edited = ApprovalDecision::ApproveEdited(r#"{"how":10}"#.to_owned());
    one.run.resume_shown("c", edited, &grace()).await.expect("it waits");
    assert_eq!(pointers(&decided(&one).await["refused"]["violations"]), place("/how", "maximum"));
    let one = rig("").await;
    one.run.exec(ToolCall::text("c", "recorded__client", r#"{"what":1}"#)).await;
    one.run.client_result("c", "\"seven\"").await.expect("it waits");
    assert_eq!(pointers(&decided(&one).await["refused"]["violations"]), place("", "type"));
}
