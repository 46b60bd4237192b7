//! Twins (calls of one tool with the same arguments): while the outcome of a call is unknown, its twin waits for a
//! person's decision, unless `reconcile` finds the outcome. This holds in every run of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tests::world::{EventLog, Processes, World};
use tool_runtime::call::{CallId, Decider, Question};
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::{Chain, DecisionKind, DocumentKind, Query, RecordFilter, Store};
use tool_runtime::{
    Call, Cap, Capabilities, Event, Outcome, Reconciled, Run, RunOptions, ToolCall, ToolCatalog, ToolComponent,
    ToolError, ToolExecResult, ToolPolicy, ToolRunner, capability, tool,
};

/// A bank that looks refunds up by their key.
#[capability(effect = external_side_effect)]
pub(crate) trait Bank {
    /// Whether the bank knows what became of the key, and if so, whether it was paid.
    fn paid(&self, key: &str) -> Option<bool>;
}

/// Pays a payment back.
#[tool(name = "twins__refund", effect = external_side_effect, redact = ["$"], summary = "Refunds {payment_id}")]
async fn refund(
    world: &dyn World,
    /// Which.
    payment_id: String,
) -> Result<String, ToolError> {
    world.happen();
    world.door().pass().await;
    Ok(payment_id)
}

/// The same, and its outcome can be looked up.
#[tool(name = "twins__known", effect = external_side_effect, redact = ["$"])]
struct Known {
    /// Which.
    payment_id: String,
}

impl ToolComponent for Known {
    type Capabilities = (Cap<dyn World>, Cap<dyn Bank>);
    type Output = String;

    async fn run(self, (world, _): Self::Capabilities, _: &Call<Self>) -> Result<String, ToolError> {
        world.happen();
        world.door().pass().await;
        Ok(self.payment_id)
    }

    async fn reconcile(
        self,
        (_, bank): Self::Capabilities,
        call: &Call<Self>,
    ) -> Result<Reconciled<String>, ToolError> {
        Ok(match bank.paid(&call.idempotency_key()) {
            None => Reconciled::Unknown,
            Some(true) => Reconciled::TookEffect(format!("{} of {}", self.payment_id, call.call_id())),
            Some(false) => Reconciled::Prevented,
        })
    }
}

/// A bank whose answers the test sets.
#[derive(Default)]
struct Told {
    knows: AtomicBool,
    paid: AtomicBool,
}

impl Bank for Told {
    fn paid(&self, key: &str) -> Option<bool> {
        assert_eq!(key.len(), 64);
        self.knows.load(Ordering::Acquire).then(|| self.paid.load(Ordering::Acquire))
    }
}

pub(crate) struct Rig {
    shared: Processes,
    bank: Arc<Told>,
}

impl Rig {
    fn new() -> Self {
        Self { shared: Processes::at("2026-01-01T00:00:00Z", 0), bank: Arc::default() }
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities().with(Arc::clone(&self.bank) as Arc<dyn Bank>)
    }

    fn process(&self) -> ToolRunner {
        self.process_with("")
    }

    fn process_with(&self, rules: &str) -> ToolRunner {
        let policy = format!("allowed_tools = ['twins__refund', 'twins__known', 'world__again']\n{rules}");
        self.shared.start(Arc::clone(&self.shared.store) as _, &policy, self.capabilities())
    }

    fn run(&self, id: &str) -> Run {
        self.process().run(of(id))
    }

    /// Leaves a call with an unknown outcome: its process is killed after the effect.
    async fn unknown(&self, tool: &str, id: &str) {
        std::mem::forget(self.shared.stuck(self.run("run-1").exec(call(tool, id))).await);
        self.shared.clock.advance(Duration::from_secs(30));
        let closed = self.run("run-1").recover(&CallId::new(id)).await.expect("a store").expect("it began");
        assert_eq!(closed.outcome(), Outcome::OutcomeUnknown);
    }

    async fn decisions(&self) -> Vec<(DecisionKind, Option<String>, String)> {
        let records = self.shared.store.records(&RecordFilter::default()).await.expect("records");
        assert_eq!(Chain::verify(&records), Ok(()));
        let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        decisions
            .map(|decision| {
                let decider = decision.decider.as_ref().map(|decider| decider.principal().to_owned());
                (decision.decision, decider, decision.call_id.to_string())
            })
            .collect()
    }
}

fn of(id: &str) -> RunOptions {
    RunOptions::new().run_id(id).principal("ada").tenant("acme")
}

fn call(tool: &str, id: &str) -> ToolCall {
    ToolCall::text(id, tool, r#"{"payment_id":"p-1"}"#)
}

fn question(result: &ToolExecResult) -> Question {
    assert_eq!(result.outcome(), Outcome::ApprovalRequired, "{}", result.to_model());
    result.question().expect("a question").clone()
}

fn grace() -> Decider {
    Decider::new("grace").tenant("acme").because("the bank says no")
}

#[tokio::test]
async fn a_twin_of_an_unknown_outcome_waits_for_a_person_in_any_run() {
    let rig = Rig::new();
    rig.unknown("twins__refund", "c1").await;
    for (run, id) in [("run-1", "c2"), ("run-2", "c1"), ("run-3", "c9")] {
        let result = rig.run(run).exec(call("twins__refund", id)).await;
        assert!(!result.executed());
        drop(question(&result));
        let waiting = rig.run(run).pending(&CallId::new(id)).await.expect("a store").expect("it waits");
        assert_eq!(waiting.rule.as_deref(), Some("unknown_outcome"));
        assert_eq!(
            waiting.summary.as_deref(),
            Some(
                "A call with the same arguments has an unknown outcome: call “c1” of run “run-1” \
                 (2026-01-01T00:00:30Z, lost). Refunds “p-1”"
            )
        );
        // Made again, it is the same waiting call.
        drop(question(&rig.run(run).exec(call("twins__refund", id)).await));
    }
    assert_eq!(rig.shared.effects(), 1);
    // Other arguments, another tool that may repeat, another principal and another tenant are no twins.
    rig.shared.open(9);
    let other = ToolCall::text("d1", "twins__refund", r#"{"payment_id":"p-2"}"#);
    assert_eq!(rig.run("run-2").exec(other).await.outcome(), Outcome::Ok);
    for options in [of("run-4").principal("bob"), of("run-5").tenant("other"), RunOptions::new().run_id("run-6")] {
        let result = rig.process().run(options).exec(call("twins__refund", "c1")).await;
        assert_eq!(result.outcome(), Outcome::Ok);
    }
}

#[tokio::test]
async fn a_person_who_was_shown_the_unknown_outcome_lets_its_twin_run() {
    let rig = Rig::new();
    rig.unknown("twins__refund", "c1").await;
    let heard = EventLog::default();
    let run = rig.process().run(of("run-2").events(heard.sink()));
    let asked = question(&run.exec(call("twins__refund", "c2")).await);
    let told = heard.take().into_iter().find_map(|event| match event {
        Event::ToolCallSuspended { summary, .. } => summary,
        _ => None,
    });
    assert!(told.is_some_and(|told| told.contains("unknown outcome: call “c1” of run “run-1”")));
    // Its own principal may not.
    let own = run.resume(&asked, ApprovalDecision::Approve, &Decider::new("ada").tenant("acme")).await;
    assert!(matches!(own, Err(ResumeError::NotAllowed(_))), "{own:?}");
    rig.shared.open(1);
    // Another process takes the decision.
    let restored = rig.run("run-2");
    let result = restored.resume(&asked, ApprovalDecision::Approve, &grace()).await.expect("it is decided");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 2));
    let again = restored.resume(&asked, ApprovalDecision::Approve, &grace()).await;
    assert!(matches!(again, Err(ResumeError::NotWaiting(_))), "{again:?}");
    assert_eq!(rig.shared.effects(), 2);
    // The first outcome stays unknown, so the next twin waits too.
    drop(question(&rig.run("run-3").exec(call("twins__refund", "c3")).await));
    let denied = rig.run("run-3");
    let asked = denied.pending(&CallId::new("c3")).await.expect("a store").expect("it waits").question();
    let result = denied.resume(&asked, ApprovalDecision::Deny(None), &grace()).await.expect("it is decided");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::ApprovalDenied, 2));
}

/// An approval from before an outcome became unknown is refused: the call now asks another question.
#[tokio::test]
async fn an_approval_from_before_the_unknown_outcome_does_not_count() {
    let rig = Rig::new();
    let asks = || rig.process_with("require_approval_for_tools = ['twins__refund']").run(of("run-2"));
    let before = question(&asks().exec(call("twins__refund", "c2")).await);
    let grant = tool_runtime::runner::Grant::allow(tool_runtime::store::GrantScope::Principal);
    let grant = grant.expires_in(Duration::from_hours(1)).uses(9);
    asks().remember(&before, grant, &grace()).await.expect("a grant");
    rig.unknown("twins__refund", "c1").await;
    let refused = asks().resume(&before, ApprovalDecision::Approve, &grace()).await;
    assert!(matches!(refused, Err(ResumeError::NotAllowed(_))), "{refused:?}");
    assert_eq!(rig.shared.effects(), 1);
    let waiting = asks().pending(&CallId::new("c2")).await.expect("a store").expect("it still waits");
    assert!(waiting.summary.as_deref().is_some_and(|text| text.contains("“c1”") && text.ends_with("Refunds “p-1”")));
    assert_ne!(waiting.question(), before);
    // A grant does not cover a twin either.
    drop(question(&asks().exec(call("twins__refund", "c3")).await));
    rig.shared.open(1);
    let result = asks().resume(&waiting.question(), ApprovalDecision::Approve, &grace()).await.expect("a decision");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 2));
}

/// Two people have to approve. Both have to be shown the unknown outcome, so the approvals from before are dropped.
#[tokio::test]
async fn all_approvals_are_for_the_question_with_the_unknown_outcome() {
    let rig = Rig::new();
    let rules = "require_approval_for_tools = ['twins__refund']\n[approvals]\nrequired = 2";
    let asks = || rig.process_with(rules).run(of("run-2"));
    let before = question(&asks().exec(call("twins__refund", "c2")).await);
    let by = |name: &str| Decider::new(name).tenant("acme");
    let approve =
        async |asked: &Question, name: &str| Box::pin(asks().resume(asked, ApprovalDecision::Approve, &by(name))).await;
    assert_eq!(approve(&before, "grace").await.expect("it counts").approvals(), Some((1, 2)));
    rig.unknown("twins__refund", "c1").await;
    let refused = approve(&before, "heidi").await;
    assert!(matches!(refused, Err(ResumeError::NotAllowed(_))), "{refused:?}");
    let waiting = asks().pending(&CallId::new("c2")).await.expect("a store").expect("it still waits");
    assert_eq!(waiting.approvals(), (&[][..], 2));
    rig.shared.open(1);
    assert_eq!(approve(&waiting.question(), "grace").await.expect("it counts").approvals(), Some((1, 2)));
    assert_eq!(rig.shared.effects(), 1);
    let result = approve(&waiting.question(), "heidi").await.expect("it counts");
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 2));
}

#[tokio::test]
async fn reconcile_answers_for_a_twin() {
    for (knows, paid) in [(true, true), (true, false), (false, false)] {
        let rig = Rig::new();
        // A tool that reconciles is asked when its call is taken over, and does not know yet.
        rig.unknown("twins__known", "c1").await;
        rig.bank.knows.store(knows, Ordering::Release);
        rig.bank.paid.store(paid, Ordering::Release);
        let result = rig.run("run-2").exec(call("twins__known", "c2")).await;
        assert_eq!(rig.shared.effects(), 1);
        match (knows, paid) {
            (true, true) => {
                assert_eq!((result.outcome(), result.executed()), (Outcome::Ok, false));
                assert_eq!(
                    result.to_model(),
                    "p-1 of c1\n\nThe tool did not run again: an earlier call already caused this effect; this is its \
                     result."
                );
                assert_eq!(result.earlier_call(), Some(("run-1", &CallId::new("c1"))));
                assert_eq!(rig.decisions().await, [(DecisionKind::Happened, None, "c1".to_owned())]);
                let records = rig.shared.closed().await;
                let twin = records.iter().find(|record| record.tool_call_id.as_str() == "c2").expect("a record");
                assert_eq!(twin.earlier_call(), Some(("run-1", &CallId::new("c1"))));
                // The first call, made again, has its result now.
                let first = rig.run("run-1").exec(call("twins__known", "c1")).await;
                assert_eq!((first.outcome(), first.to_model().as_str()), (Outcome::Ok, "p-1 of c1"));
            }
            (true, false) => {
                assert_eq!((result.outcome(), result.executed()), (Outcome::Cancelled, false));
                assert!(result.to_model().contains("may be made again"), "{}", result.to_model());
                assert_eq!(rig.decisions().await, [(DecisionKind::DidNotHappen, None, "c1".to_owned())]);
            }
            (false, _) => drop(question(&result)),
        }
        let left = rig.shared.store.list(&Query::new(DocumentKind::Effect)).await.expect("it lists");
        assert_eq!(left.len(), usize::from(!knows));
        if knows {
            // Nothing is unknown any more.
            rig.shared.open(1);
            assert_eq!(rig.run("run-3").exec(call("twins__known", "c3")).await.outcome(), Outcome::Ok);
            assert_eq!(rig.shared.effects(), 2);
        }
    }
}

/// A timeout, a cancellation and a panic leave the same mark as a killed process.
#[tokio::test]
async fn an_interrupted_call_is_unknown_to_its_twins_at_once() {
    let rig = Rig::new();
    let run = rig.run("run-1");
    let running = rig.shared.stuck(run.exec(call("twins__refund", "c1"))).await;
    run.cancel();
    running.await.expect("it ends");
    let running = rig.run("run-2");
    drop(question(&running.exec(call("twins__refund", "c2")).await));
    // A dropped future does, too.
    let other = ToolCall::text("d1", "twins__refund", r#"{"payment_id":"p-2"}"#);
    rig.shared.stuck(rig.run("run-1").exec(other)).await.abort();
    let listed = || async { rig.shared.store.list(&Query::new(DocumentKind::Effect)).await.expect("it lists").len() };
    while listed().await < 2 {
        tokio::task::yield_now().await;
    }
    let other = ToolCall::text("d2", "twins__refund", r#"{"payment_id":"p-2"}"#);
    drop(question(&rig.run("run-3").exec(other).await));
    assert_eq!(rig.shared.effects(), 2);
}

/// Where nobody can decide, the twin is refused.
#[tokio::test]
async fn without_approvals_a_twin_does_not_run() {
    let rig = Rig::new();
    rig.unknown("twins__refund", "c1").await;
    let policy = ToolPolicy::from_toml("allowed_tools = ['twins__refund']").expect("a policy");
    let runner = ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy)
        .capabilities(rig.capabilities())
        .clock(Arc::clone(&rig.shared.clock))
        .store(Arc::clone(&rig.shared.store))
        .build()
        .expect("a runner");
    let result = runner.run(of("run-2")).exec(call("twins__refund", "c2")).await;
    assert_eq!((result.outcome(), result.executed(), rig.shared.effects()), (Outcome::Cancelled, false, 1));
    assert!(result.to_model().contains("unknown outcome"), "{}", result.to_model());
}

/// The arguments of an approved call are kept only for a tool that can look its outcome up.
#[tokio::test]
async fn arguments_that_nobody_can_use_are_not_kept() {
    for (tool, are_kept) in [("twins__refund", false), ("twins__known", true)] {
        let rig = Rig::new();
        let run = rig.process_with(&format!("require_approval_for_tools = ['{tool}']")).run(of("run-1"));
        let asked = question(&run.exec(call(tool, "c1")).await);
        let approved = run.clone();
        let approve =
            async move { approved.resume(&asked, ApprovalDecision::Approve, &grace()).await.expect("it is decided") };
        let running = rig.shared.stuck(approve).await;
        run.cancel();
        running.await.expect("it ends");
        let left = rig.shared.store.list(&Query::new(DocumentKind::Effect)).await.expect("it lists");
        let [left] = &left[..] else { panic!("{left:?}") };
        assert_eq!(left.to_json().expect("JSON").contains(r#""waited""#), are_kept, "{tool}");
    }
}

/// A tool reconciled the earlier call for another twin after this one was asked about: it took effect, or it did not.
#[tokio::test]
async fn an_approval_from_before_the_tool_reconciled_counts_if_nothing_happened() {
    for paid in [true, false] {
        let rig = Rig::new();
        rig.unknown("twins__known", "c1").await;
        let shown = question(&rig.run("run-2").exec(call("twins__known", "c2")).await);
        rig.bank.knows.store(true, Ordering::Release);
        rig.bank.paid.store(paid, Ordering::Release);
        assert!(!rig.run("run-3").exec(call("twins__known", "c3")).await.executed());
        rig.shared.open(9);
        let decided = rig.run("run-2").resume(&shown, ApprovalDecision::Approve, &grace()).await;
        let waiting = rig.run("run-2").pending(&CallId::new("c2")).await.expect("a store");
        if paid {
            assert!(matches!(decided, Err(ResumeError::NotAllowed(_))), "{decided:?}");
            let summary = waiting.and_then(|waiting| waiting.summary).expect("a sentence");
            assert!(summary.contains("and took effect: call “c1” of run “run-1”"), "{summary}");
            assert_eq!(rig.shared.effects(), 1);
        } else {
            assert_eq!(decided.expect("it counts").outcome(), Outcome::Ok);
            assert!(waiting.is_none());
        }
    }
}
