//! Settlements at the limits: huge and malformed results, tools that fail while they reconcile, wrong clocks, and
//! processes without the tool.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tests::world::{HookAction, HookedStore};
use tool_runtime::{ToolCatalog, ToolPolicy};

use super::*;

impl Rig {
    async fn by_queue(&self, outcome: Reconciled<&str>, decider: &Decider) -> Result<Outcome, &'static str> {
        let queue = RunQueue::new(&self.process());
        let result =
            queue.settle("run-1", Some("acme"), Some("ada"), &CallId::new("c1"), owned(outcome), decider).await;
        result.map(|result| result.outcome()).map_err(|error| error.code())
    }

    async fn text(&self) -> String {
        let records = self.shared.store.records(&RecordFilter::default()).await.expect("records");
        assert_eq!(Chain::verify(&records), Ok(()));
        serde_json::to_string(&records).expect("JSON")
    }
}

#[tokio::test]
async fn results_and_reasons_are_bounded() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__once", "c1").await;
    let canaries = "CANARY".repeat(1 << 17);
    let (open, deep) = ("[".repeat(1 << 17), format!("{}1{}", "[".repeat(1 << 17), "]".repeat(1 << 17)));
    let number = format!(r#"{{"number":{},"inner":""}}"#, "9".repeat(1 << 17));
    let wrong = [
        format!(r#"{{"number":"{canaries}","inner":""}}"#),
        format!("\"{canaries}"),
        r#"{"number":7,"number":8,"inner":"CANARY"}"#.to_owned(),
        r#"{"number":7,"inner":"CANARY"} {}"#.to_owned(),
        "\u{feff}{\"number\":7,\"inner\":\"CANARY\"}".to_owned(),
        number,
        open,
        deep,
        String::new(),
        "\0".to_owned(),
    ];
    for wrong in &wrong {
        for by_queue in [false, true] {
            let outcome = Reconciled::TookEffect(wrong.as_str());
            let refused = if by_queue {
                rig.by_queue(outcome, &person("grace")).await
            } else {
                rig.settle("run-1", "c1", outcome, "grace").await
            };
            let start: String = wrong.chars().take(40).collect();
            assert_eq!(refused, Ok(Outcome::ApprovalMismatch), "{start}");
        }
    }
    assert_eq!(rig.unsettled().await.len(), 1);
    let text = rig.text().await;
    assert!(!text.contains("CANARY") && text.len() < 100_000, "{}", text.len());
    // Ids that no call has leave nothing, however long.
    let (long, queue) = ("x".repeat(1 << 17), RunQueue::new(&rig.process()));
    for (run, id) in [("", "c1"), ("run-1", ""), (&*long, "c1"), ("run-1", &*long), ("run-2", "c1"), ("run-1", "c1.")] {
        let settled = queue
            .settle(run, Some("acme"), Some("ada"), &CallId::new(id), Reconciled::Prevented, &person("grace"))
            .await;
        let error = settled.expect_err("there is no such call");
        assert!(error.code() == "not_pending" && error.to_string().len() < 200, "{error}");
    }
    assert_eq!(rig.text().await, text);
    // A long reason is cut, and a decider without a readable name may not settle.
    for nameless in ["", " ", "\u{202e}grace", "gra\nce"] {
        let decider = Decider::new(nameless).tenant("acme").because("CANARY");
        assert_eq!(rig.by_queue(Reconciled::Prevented, &decider).await, Err("not_allowed"), "{nameless:?}");
    }
    let decider = Decider::new("grace").tenant("acme").because(&"a\u{1b}[31m".repeat(1 << 17));
    assert_eq!(rig.by_queue(Reconciled::Prevented, &decider).await, Ok(Outcome::Cancelled));
    let decisions = records(&rig.shared.store).await;
    let settled = decisions.iter().find(|decision| decision.refused().is_none()).expect("one settles");
    let reason = settled.decider.as_ref().and_then(Decider::reason).expect("a reason");
    assert!(reason.len() <= 2048 + "..".len() && !reason.contains('\u{1b}'), "{}", reason.len());
}

/// The refusals of a settled call are bounded for each decider, through both doors.
#[tokio::test]
async fn late_settlements_cannot_fill_the_store() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__once", "c1").await;
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Prevented, "grace").await, Ok(Outcome::Cancelled));
    for _ in 0..20 {
        assert_eq!(rig.settle("run-1", "c1", Reconciled::Unknown, "heidi").await, Err("not_pending"));
        assert_eq!(rig.by_queue(Reconciled::TookEffect("CANARY"), &person("ivan")).await, Err("not_pending"));
    }
    assert_eq!(rig.decisions().await.len(), 1 + 2 * 16);
    assert!(!rig.text().await.contains("CANARY"));
}

/// A tool that panics while it reconciles leaves the outcome unknown, and a person settles it.
#[tokio::test]
async fn a_tool_may_panic_while_it_reconciles() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__once", "c1").await;
    rig.bank.set(BankAnswer::Panics);
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Unknown, "grace").await, Ok(Outcome::OutcomeUnknown));
    assert_eq!(rig.by_queue(Reconciled::Unknown, &person("grace")).await, Ok(Outcome::OutcomeUnknown));
    assert_eq!(rig.unsettled().await.len(), 1);
    assert!(!rig.text().await.contains("CANARY"));
    let of_call = rig.shared.closed().await;
    assert_eq!(of_call.len(), 1, "the call has one record: {of_call:?}");
    assert_eq!(rig.by_queue(Reconciled::Prevented, &person("grace")).await, Ok(Outcome::Cancelled));
    assert_eq!(rig.shared.effects(), 1);
}

/// A settlement that is dropped at any of its steps took effect or did not. It is never half done, and the next one
/// settles the call or is refused.
#[tokio::test]
async fn a_settlement_may_be_dropped_anywhere() {
    let mut is_whole = false;
    for polls in 1..200 {
        let rig = Rig::new();
        rig.unknown("run-1", "settled__once", "c1").await;
        rig.bank.set(BankAnswer::Paid);
        // Each operation of the store is a step.
        let hook = |_: &'static str| HookAction::After(Box::pin(tokio::task::yield_now()));
        let store = HookedStore::new(Arc::clone(&rig.shared.store) as _, hook);
        let policy = "allowed_tools = ['settled__pay', 'settled__once']";
        let slow = rig.shared.start(Arc::new(store), policy, rig.capabilities());
        {
            let (queue, id, grace) = (RunQueue::new(&slow), CallId::new("c1"), person("grace"));
            let mut settling = pin!(queue.settle("run-1", Some("acme"), Some("ada"), &id, Reconciled::Unknown, &grace));
            let mut left = polls;
            is_whole = poll_fn(|context| match settling.as_mut().poll(context) {
                Poll::Ready(settled) => Poll::Ready(settled.is_ok()),
                Poll::Pending => {
                    left -= 1;
                    if left == 0 { Poll::Ready(false) } else { Poll::Pending }
                }
            })
            .await;
        }
        tokio::task::yield_now().await;
        let is_open = rig.unsettled().await.len() == 1;
        let settles = |told: &&(DecisionKind, Option<String>, bool)| !told.2 && told.0 != DecisionKind::Reconcile;
        assert_eq!(rig.decisions().await.iter().filter(settles).count(), usize::from(!is_open), "{polls}");
        let next = rig.settle("run-1", "c1", Reconciled::Prevented, "heidi").await;
        assert_eq!(next, if is_open { Ok(Outcome::Cancelled) } else { Err("not_pending") }, "{polls}");
        assert_eq!(rig.decisions().await.iter().filter(settles).count(), 1, "{polls}");
        drop(rig.text().await);
        if is_whole {
            break;
        }
    }
    assert!(is_whole, "it ended at last");
}

/// The clock of the store goes back behind the call, and far ahead.
#[tokio::test]
async fn a_wrong_clock_settles_once() {
    for time in ["1970-01-01T00:00:00Z", "2025-12-31T23:59:59Z", "9999-12-30T00:00:00Z"] {
        for outcome in [Reconciled::TookEffect(r#"{"number":7,"inner":""}"#), Reconciled::Unknown] {
            let rig = Rig::new();
            rig.unknown("run-1", "settled__once", "c1").await;
            rig.bank.set(BankAnswer::Paid);
            rig.shared.clock.set(time.parse().expect("a time"));
            assert_eq!(rig.unsettled().await.len(), 1, "{time}: the unknown outcome is not forgotten");
            assert_eq!(rig.by_queue(outcome, &person("grace")).await, Ok(Outcome::Ok), "{time}");
            assert_eq!(rig.by_queue(Reconciled::Prevented, &person("grace")).await, Err("not_pending"), "{time}");
            drop(rig.text().await);
        }
    }
}

/// A process without the tool cannot state a result or reconcile. That it did not happen needs no tool.
#[tokio::test]
async fn a_process_without_the_tool_settles_what_it_can() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__once", "c1").await;
    let without = ToolRunner::builder(ToolCatalog::builder().build().expect("a catalog"), ToolPolicy::deny_all())
        .approvals(true)
        .clock(Arc::clone(&rig.shared.clock))
        .store(Arc::clone(&rig.shared.store))
        .build()
        .expect("a runner");
    let (queue, id, grace) = (RunQueue::new(&without), CallId::new("c1"), person("grace"));
    let settle = |outcome| queue.settle("run-1", Some("acme"), Some("ada"), &id, owned(outcome), &grace);
    let receipt = Reconciled::TookEffect(r#"{"number":7,"inner":"CANARY"}"#);
    assert_eq!(settle(receipt).await.expect("a result").outcome(), Outcome::ApprovalMismatch);
    assert_eq!(settle(Reconciled::Unknown).await.expect("a result").outcome(), Outcome::OutcomeUnknown);
    assert_eq!(rig.unsettled().await.len(), 1);
    assert_eq!(settle(Reconciled::Prevented).await.expect("a result").outcome(), Outcome::Cancelled);
    assert!(rig.unsettled().await.is_empty() && !rig.text().await.contains("CANARY"));
    rig.shared.clock.advance(Duration::from_secs(1));
    assert_eq!(exec(&rig, "run-1", "settled__once", "c1").await.outcome(), Outcome::Cancelled);
}
