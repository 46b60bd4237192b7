//! Failures of calls whose caller is gone, and parts of the application with destructors that panic.

use tests::Shown as _;
use tool_runtime::call::Violation;
use tool_runtime::error::Problem;
use tool_runtime::schema::validator::{Compiled, Tree, Validator};
use tool_runtime::tool::Schema;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_when_its_caller_leaves_before_the_receipt() {
    let told = Told::default();
    let sink = Arc::clone(&told);
    let runner =
        ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), ToolPolicy::allow(["contained__fail"]))
            .broker(Broker)
            .store(HookedStore::new(Arc::new(MemoryStore::new()), |_| HookAction::Silence))
            .failures(move |failure: &Failure<'_>| {
                sink.lock().expect("no poison").push((failure.code.to_owned(), None, None, failure.text.to_owned()));
            })
            .build()
            .expect("a runner");
    let call = runner.run(RunOptions::new()).exec(ToolCall::text("c", "contained__fail", r#"{"panics":false}"#));
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err(), "the receipt never comes");
    let told = told.lock().expect("no poison");
    let [(code, .., text)] = &told[..] else { panic!("one failure: {told:?}") };
    assert_eq!((code.as_str(), text.as_str()), ("execution_error", "CANARY-outer: CANARY-cause"));
}

/// A part of every kind; its destructor panics.
#[derive(Clone)]
struct Bomb(#[expect(dead_code, reason = "kept for its destructor")] Arc<Fuse>);

struct Fuse;

impl Drop for Fuse {
    fn drop(&mut self) {
        panic!("CANARY-destructor");
    }
}

impl Bomb {
    fn new() -> Self {
        Self(Arc::new(Fuse))
    }
}

impl Clock for Bomb {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

impl Validator for Bomb {
    fn name(&self) -> &'static str {
        "bomb"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn compile(&self, _: &Schema) -> Result<Arc<dyn Compiled>, Problem> {
        Ok(Arc::new(Self::new()))
    }
}

impl Compiled for Bomb {
    fn check(&self, _: &Tree<'_>) -> Result<(), Vec<Violation>> {
        Ok(())
    }
}

#[async_trait]
impl ConnectionBroker for Bomb {
    async fn resolve(&self, _: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        Err(ConnectionError::Unknown)
    }
}

/// The parts that the runner owns are dropped with its last call, inside that call's future.
#[tokio::test]
async fn parts_may_panic_while_they_are_dropped() {
    let (told, bomb) = (Told::default(), Bomb::new());
    let sink = Arc::clone(&told);
    let runner =
        ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), ToolPolicy::allow(["contained__next"]))
            .broker(Bomb::new())
            .store(HookedStore::new(Arc::new(MemoryStore::new()), {
                let bomb = Bomb::new();
                move |_| {
                    let _ = &bomb;
                    HookAction::Pass
                }
            }))
            .clock(Bomb::new())
            .validator(Bomb::new())
            .repairer("bomb", {
                let bomb = Bomb::new();
                move |_| {
                    let _ = &bomb;
                    None
                }
            })
            .failures(move |failure: &Failure<'_>| {
                let _ = &bomb;
                sink.lock().expect("no poison").push((failure.code.to_owned(), None, None, failure.text.to_owned()));
            })
            .build()
            .expect("a runner");
    let heard = Bomb::new();
    let run = runner.run(RunOptions::new().events(move |_: Event| drop(heard.clone())));
    let call = run.exec(ToolCall::text("c", "contained__next", r#"{"to":1}"#));
    drop((run, runner));
    assert_eq!(call.await.outcome(), Outcome::Ok);
    let told = told.lock().expect("no poison");
    let panicked = told.iter().filter(|(code, .., text)| code == "part_panicked" && text.contains("CANARY-destructor"));
    // Broker, store, clock, validator, what it compiled, repairer, sink of events. A panic of the sink of failures
    // cannot be reported.
    assert_eq!(panicked.count(), 7, "{told:?}");
}

/// A validator that fails in one of its ways.
struct Fails(&'static str);

impl Validator for Fails {
    fn name(&self) -> &'static str {
        assert!(self.0 != "name", "CANARY-name");
        "fails"
    }

    fn version(&self) -> &'static str {
        assert!(self.0 != "version", "CANARY-version");
        "1"
    }

    fn compile(&self, _: &Schema) -> Result<Arc<dyn Compiled>, Problem> {
        assert!(self.0 != "compile", "CANARY-compile");
        Ok(Arc::new(Self(self.0)))
    }
}

impl Compiled for Fails {
    fn check(&self, _: &Tree<'_>) -> Result<(), Vec<Violation>> {
        assert!(self.0 != "check", "CANARY-check");
        // It refuses without a cause.
        if self.0 == "silent" { Err(Vec::new()) } else { Ok(()) }
    }
}

fn with_parts(way: &'static str, told: &Told) -> ToolRunner {
    let told = Arc::clone(told);
    let policy = "allowed_tools = ['contained__next']\nrepair = { allowed = ['fails'], require_approval = false }";
    ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), ToolPolicy::from_toml(policy).expect("a policy"))
        .broker(Broker)
        .validator(Fails(way))
        .repairer("fails", move |_| {
            assert!(way != "repair", "CANARY-repair");
            None
        })
        .failures(move |failure: &Failure<'_>| {
            told.lock().expect("no poison").push((failure.code.to_owned(), None, None, failure.text.to_owned()));
        })
        .build()
        .expect("a runner")
}

#[tokio::test]
async fn a_validator_and_a_repairer_may_fail_in_every_way() {
    for (way, arguments, expected) in [
        ("", r#"{"to":1}"#, Outcome::Ok),
        ("name", r#"{"to":1}"#, Outcome::Ok),
        ("version", r#"{"to":1}"#, Outcome::Ok),
        ("compile", r#"{"to":1}"#, Outcome::InstantiateFailed),
        ("check", r#"{"to":1}"#, Outcome::InstantiateFailed),
        ("silent", r#"{"to":1}"#, Outcome::InstantiateFailed),
        ("repair", "{to}", Outcome::InvalidJson),
    ] {
        let told = Told::default();
        let runner = with_parts(way, &told);
        let run = runner.run(RunOptions::new());
        for id in ["1", "2"] {
            let result = run.exec(ToolCall::text(id, "contained__next", arguments)).await;
            assert_eq!((result.outcome(), result.executed()), (expected, expected == Outcome::Ok), "{way}");
            assert!(!result.to_model().contains("CANARY"), "{way}");
        }
        let hydrated = run.hydrate([ToolCall::text("3", "contained__next", arguments)]).remove(0).hydrated;
        assert_eq!(hydrated.is_ok(), expected == Outcome::Ok, "{way}");
        let told = told.lock().expect("no poison");
        let panicked =
            told.iter().any(|(code, .., text)| code == "part_panicked" && text.ends_with(&format!("CANARY-{way}")));
        assert_eq!(panicked, !matches!(way, "" | "silent"), "{way}: {told:?}");
    }
}

/// An argument whose destructor panics.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
struct Touchy(u8);

impl Drop for Touchy {
    fn drop(&mut self) {
        panic!("CANARY-argument");
    }
}

/// Takes what must not be dropped.
#[tool(name = "contained__touchy", effect = state_change, redact = ["$"])]
fn touchy(
    /// Which.
    it: Touchy,
) -> Result<u8, ToolError> {
    let number = it.0;
    std::mem::forget(it);
    Ok(number)
}

#[tokio::test]
async fn arguments_that_are_never_used_may_panic_while_they_are_dropped() {
    let catalog = || ToolCatalog::collect().expect("a catalog");
    let denies = "[[tools.contained__touchy.arguments]]\npointer = '/it'\nequals = 9\nthen = 'deny'";
    let asks = "require_approval_for_tools = ['contained__touchy']";
    for (rules, it, expected) in [
        (asks, 1, Outcome::ApprovalRequired),
        (denies, 9, Outcome::PolicyDenied),
        ("budgets.run.calls = 0", 1, Outcome::BudgetExceeded),
        ("", 1, Outcome::Ok),
    ] {
        let policy =
            ToolPolicy::from_toml(&format!("allowed_tools = ['contained__touchy']\n{rules}")).expect("a policy");
        let builder = ToolRunner::builder(catalog(), policy).broker(Broker).approvals(true);
        let run = builder.build().expect("a runner").run(RunOptions::new());
        let call = |id: &str| ToolCall::text(id, "contained__touchy", format!(r#"{{"it":{it}}}"#));
        assert_eq!(run.exec(call("1")).await.outcome(), expected, "{rules}");
        drop(run.hydrate([call("2")]));
        if expected == Outcome::ApprovalRequired {
            let edited = ApprovalDecision::ApproveEdited(r#"{"it":7}"#.to_owned());
            let seven = run.resume_shown("1", edited, &grace()).await.expect("it waits");
            assert_eq!(seven.value().map(tool_runtime::call::JsonText::get), Some("7"));
        }
    }
}
