//! Parts of the application that fail or panic, at every method; and the failures that operators receive.

mod edges;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tests::Shown as _;

use async_trait::async_trait;
use tests::grace;
use tests::world::{HookAction, HookedStore};
use tool_runtime::call::CallId;
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionRequest};
use tool_runtime::runner::{ApprovalDecision, Failure};
use tool_runtime::store::{Clock, MemoryStore};
use tool_runtime::wire::Usage;
use tool_runtime::{
    Capabilities, Connection, Event, Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy,
    ToolRunner, capability, tool,
};

/// Adds one.
#[tool(name = "contained__next", effect = read_only, redact = ["$"])]
fn next(
    /// To what.
    to: u8,
) -> Result<u8, ToolError> {
    Ok(to.saturating_add(1))
}

/// Changes something.
#[tool(name = "contained__change", effect = state_change, redact = ["$"])]
fn change() -> Result<bool, ToolError> {
    Ok(true)
}

/// Fails with an error that has a cause, or panics.
#[tool(name = "contained__fail", effect = read_only, redact = ["$"])]
fn fail(
    /// Whether it panics.
    panics: bool,
) -> Result<bool, Outer> {
    assert!(!panics, "CANARY-panic");
    Err(Outer(std::io::Error::other("CANARY-cause")))
}

#[derive(Debug)]
struct Outer(std::io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CANARY-outer")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Someone's notes.
#[capability(effect = read_only, kind = "notes")]
pub(crate) trait Notes {
    /// How many there are.
    fn count(&self) -> u32;
}

/// Someone's files.
#[capability(effect = read_only, kind = "files")]
pub(crate) trait Files {}

/// Counts notes.
#[tool(name = "contained__count", effect = read_only, redact = ["$"])]
fn count(notes: &Connection<dyn Notes>) -> Result<u32, ToolError> {
    Ok(notes.count())
}

/// Panics when the time is asked, if it is told so.
struct Panicking(&'static str);

impl Clock for Panicking {
    fn now(&self) -> jiff::Timestamp {
        assert!(self.0 != "now", "the clock");
        jiff::Timestamp::now()
    }
}

/// Finds the account `ada` only; hangs for the account `slow`.
struct Broker;

#[async_trait]
impl ConnectionBroker for Broker {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        match request.id.as_str() {
            "slow" => std::future::pending().await,
            "panics" => panic!("CANARY-broker"),
            "unknown" => Err(ConnectionError::Unknown),
            "unprintable" => Err(ConnectionError::Failed(Box::new(Unprintable))),
            "undroppable" => Ok(ConnectionHandle::new::<dyn Notes>(Arc::new(Unprintable))),
            "wrong" => Ok(ConnectionHandle::new::<dyn Files>(Arc::new(Unprintable))),
            _ => Err(ConnectionError::Failed("CANARY: the token database is down".into())),
        }
    }
}

/// An error and an adapter whose text and destructor panic.
#[derive(Debug)]
struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("CANARY-display")
    }
}

impl std::error::Error for Unprintable {}

impl Notes for Unprintable {
    fn count(&self) -> u32 {
        3
    }
}

impl Files for Unprintable {}

impl Drop for Unprintable {
    fn drop(&mut self) {
        panic!("CANARY-drop")
    }
}

/// The failures that the operators' sink received: code, tool, type, text.
type Told = Arc<Mutex<Vec<(String, Option<String>, Option<&'static str>, String)>>>;

const POLICY: &str = r#"
    allowed_tools = ["contained__next", "contained__change", "contained__fail", "contained__count"]
    require_approval_for_tools = ["contained__change"]
"#;

fn runner(part: &'static str, told: &Told) -> ToolRunner {
    let told = Arc::clone(told);
    let store = HookedStore::new(Arc::new(MemoryStore::new()), move |method| {
        assert!(part != method, "the store's {method}");
        HookAction::Pass
    });
    ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), ToolPolicy::from_toml(POLICY).expect("a policy"))
        .capabilities(Capabilities::new())
        .broker(Broker)
        .approvals(true)
        .store(store)
        .clock(Panicking(part))
        .failures(move |failure: &Failure<'_>| {
            let line =
                (failure.code.to_owned(), failure.tool.map(str::to_owned), failure.error_type, failure.text.to_owned());
            told.lock().expect("no poison").push(line);
        })
        .build()
        .expect("a runner")
}

async fn works(run: &Run, id: &str) -> Outcome {
    run.exec(ToolCall::text(id, "contained__next", r#"{"to":1}"#)).await.outcome()
}

#[tokio::test]
async fn a_store_and_a_clock_may_panic_at_every_method() {
    for method in ["append", "update", "read", "list", "records", "now"] {
        let told = Told::default();
        let runner = runner(method, &told);
        let run = runner.run(RunOptions::new().run_id("r"));
        assert_eq!(works(&run, "1").await, Outcome::Ok, "{method}");
        // Dropped in the middle: the guard writes its record while it is cleaned up.
        drop(run.exec(ToolCall::text("dropped", "contained__next", "{}")));
        let waiting = run.exec(ToolCall::text("w", "contained__change", "{}")).await.outcome();
        assert_eq!(
            waiting,
            if method == "update" { Outcome::Cancelled } else { Outcome::ApprovalRequired },
            "{method}"
        );
        let resumed = run.resume_shown("w", ApprovalDecision::Approve, &grace()).await;
        assert_eq!(resumed.is_ok(), matches!(method, "append" | "records" | "list" | "now"), "{method}");
        let recorded = run.recorded(&CallId::new("1")).await;
        assert_eq!(recorded.is_err(), method == "records", "{method}");
        assert_eq!(run.snapshot().await.is_err(), method == "list", "{method}");
        assert_eq!(works(&run, "2").await, Outcome::Ok, "{method}");
        let told = told.lock().expect("no poison");
        assert!(told.iter().any(|(code, ..)| code == "part_panicked"), "{method}: {told:?}");
    }
}

#[tokio::test]
async fn a_sink_may_panic() {
    let told = Told::default();
    let run = runner("", &told).run(RunOptions::new().events(|_: Event| panic!("CANARY-sink")));
    assert_eq!(works(&run, "1").await, Outcome::Ok);
    assert!(told.lock().expect("no poison").iter().any(|(.., text)| text.contains("CANARY-sink")));
}

#[tokio::test]
async fn operators_learn_why_a_tool_failed() {
    let told = Told::default();
    let run = runner("", &told).run(RunOptions::new());
    for panics in ["false", "true"] {
        run.exec(ToolCall::text(panics, "contained__fail", format!(r#"{{"panics":{panics}}}"#))).await;
    }
    let told = told.lock().expect("no poison");
    let [(code, tool, error_type, text), (panicked, .., panic)] = &told[..] else { panic!("two failures: {told:?}") };
    assert_eq!(
        (code.as_str(), tool.as_deref(), text.as_str()),
        ("execution_error", Some("contained__fail"), "CANARY-outer: CANARY-cause")
    );
    assert!(error_type.expect("a type").ends_with("Outer"));
    assert!(panicked == "panicked" && panic.contains("CANARY-panic"), "{panicked} {panic}");
}

#[tokio::test(start_paused = true)]
async fn operators_learn_why_a_connection_failed() {
    let cases = [
        (None, Outcome::ConnectionUnavailable, "RunOptions::connection"),
        (Some("unknown"), Outcome::ConnectionUnavailable, "there is no such connection"),
        (Some("down"), Outcome::ConnectionFailed, "CANARY: the token database is down"),
        (Some("panics"), Outcome::ConnectionFailed, "the broker panicked"),
        (Some("wrong"), Outcome::ConnectionFailed, "another trait"),
    ];
    for (account, outcome, expected) in cases {
        let told = Told::default();
        let mut options = RunOptions::new();
        if let Some(account) = account {
            options = options.connection("notes", ConnectionId::new(account));
        }
        let result = runner("", &told).run(options).exec(ToolCall::text("c", "contained__count", "{}")).await;
        assert_eq!(result.outcome(), outcome, "{account:?}");
        // A user can connect an account, and can do nothing about the service's own database.
        assert_eq!(result.to_model().contains("Ask the user"), outcome == Outcome::ConnectionUnavailable);
        assert!(result.detail().expect("a reason").contains(expected), "{account:?}: {:?}", result.detail());
        assert!(!result.to_model().contains("CANARY"));
        let told = told.lock().expect("no poison");
        assert!(told.iter().any(|(code, .., text)| code == outcome.code() && text.contains(expected)));
    }
}

#[tokio::test]
async fn errors_and_adapters_of_a_broker_may_panic() {
    let accounts = [
        ("unprintable", Outcome::ConnectionFailed),
        ("wrong", Outcome::ConnectionFailed),
        ("undroppable", Outcome::Ok),
    ];
    for (account, expected) in accounts {
        let run = runner("", &Told::default()).run(RunOptions::new().connection("notes", ConnectionId::new(account)));
        let result = run.exec(ToolCall::text("c", "contained__count", "{}")).await;
        assert_eq!(result.outcome(), expected, "{account}");
        assert_eq!(works(&run, "next").await, Outcome::Ok, "{account}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_cancelled_while_its_connection_is_resolved_is_cancelled() {
    let run = runner("", &Told::default()).run(RunOptions::new().connection("notes", ConnectionId::new("slow")));
    let call = run.exec(ToolCall::text("c", "contained__count", "{}"));
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        run.cancel();
    };
    assert_eq!(tokio::join!(call, cancel).0.outcome(), Outcome::Cancelled);
}

#[test]
fn an_error_that_is_its_own_cause_ends() {
    #[derive(Debug)]
    struct Cyclic;

    impl fmt::Display for Cyclic {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&"again ".repeat(1000))
        }
    }

    impl std::error::Error for Cyclic {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(self)
        }
    }

    let detail = ToolError::from(Cyclic).detail();
    assert!(detail.starts_with("again ") && detail.len() <= 16 * 1024 + 3, "{} bytes", detail.len());
}

#[test]
fn a_runner_has_to_state_whether_calls_can_be_approved() {
    let build = |policy: &str| {
        let policy = ToolPolicy::from_toml(policy).expect("a policy");
        ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy).broker(Broker).build()
    };
    let error = build(POLICY).expect_err("nobody said");
    assert_eq!(error.code(), "approvals_undecided");
    let text = error.to_string();
    assert!(text.contains("contained__change") && text.contains("approvals(true)"), "{text}");
    // The error names all rules, not only the first.
    let text =
        build(&format!("{POLICY}\nrequire_approval_for_effects = ['read_only']\nrepair.allowed = ['fenced_json']"))
            .expect_err("nobody said")
            .to_string();
    for rule in
        [r#"["contained__change"]"#, r#"require_approval_for_effects = ["read_only"]"#, "repair.require_approval"]
    {
        assert!(text.contains(rule), "{rule}: {text}");
    }
    // Rules that apply to no tool of this catalog require no approvals.
    let quiet = "allowed_tools = [\"contained__next\"]\nrequire_approval_for_effects = [\"external_side_effect\"]";
    assert!(build(quiet).is_ok());
}

#[tokio::test]
async fn unknown_names_in_run_options_are_reported() {
    let runner = runner("", &Told::default());
    let options = RunOptions::new()
        .tools(["contained__nxt"])
        .connection("note", ConnectionId::new("ada"))
        .role("admin")
        .label("strange");
    let run = runner.run(options);
    let codes: Vec<_> = run.problems().iter().map(tool_runtime::error::ParseError::code).collect();
    assert_eq!(codes, ["unknown_tool", "unknown_connection", "unknown_role", "unknown_label"]);
    assert!(run.problems()[0].to_string().ends_with("did you mean `contained__next`?"));
    assert!(runner.run(RunOptions::new().tools(["contained__next"])).problems().is_empty());
}

#[tokio::test]
async fn costs_stay_numbers() {
    let run = runner("", &Told::default()).run(RunOptions::new());
    for cost in [f64::NAN, 1.5, -3.0, f64::INFINITY, f64::INFINITY] {
        run.account(Usage::new(u64::MAX, 1), cost);
    }
    let summary = run.summary();
    assert!(summary.cost.is_finite() && summary.usage.total() == u64::MAX);
}
