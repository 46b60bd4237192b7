//! Preconditions that fail: each is a typed refusal, and none asks forever or lets the call run.

use std::task::Poll;

use tool_runtime::runner::Failure;
use tool_runtime::{ToolCatalog, ToolPolicy};

use super::*;

/// A tool whose precondition states too much.
#[tool(name = "world__much", effect = read_only, redact = ["$"], precondition = much())]
fn states_much() -> Result<u8, ToolError> {
    Ok(1)
}

#[expect(clippy::unused_async, reason = "a precondition is asynchronous")]
async fn much() -> Result<Precondition, ToolError> {
    Ok((0..9).fold(Precondition::default(), |stated, at| stated.and(format!("n{at}"), at)))
}

/// A tool whose precondition has a time limit.
#[tool(name = "world__slow", effect = state_change, redact = ["$"], timeout = "1s", precondition = charged)]
async fn slow(
    /// Which account.
    account: String,
    accounts: &dyn Accounts,
) -> Result<i64, ToolError> {
    accounts.balance(&account).await
}

const SLOW: &str = "require_approval_for_tools = ['world__pay', 'world__slow', 'world__much']";

fn run(rig: &Rig) -> Run {
    rig.process(SLOW).run(of("run-1"))
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_world_cannot_be_read_does_not_wait() {
    for (answer, outcome, code, message) in [
        (Answer::Error, Outcome::ExecutionError, Some("no_account"), "There is no account a-1."),
        (Answer::Panic, Outcome::Panicked, None, "could not be read"),
        (Answer::Hang, Outcome::Timeout, None, "could not be read"),
    ] {
        let rig = Rig::new();
        rig.accounts.answer(answer);
        for tool in ["world__pay", "world__slow"] {
            let result = rig.process(SLOW).run(of(tool)).exec(call(tool)).await;
            assert_eq!((result.outcome(), result.executed()), (outcome, false));
            let error = result.error().expect("an error");
            assert_eq!(error.tool_code.as_deref(), code);
            assert!(error.safe_message.contains(message), "{}", error.safe_message);
            assert!(!result.to_model().contains("CANARY"));
        }
        let records = rig.shared.closed().await;
        assert!(records.iter().all(|record| record.outcome == outcome && !record.executed));
        assert!(!serde_json::to_string(&records).expect("JSON").contains("CANARY"));
        let waiting = tests::pending_calls(&*rig.shared.store, &RecordFilter::default()).await;
        assert_eq!((waiting.len(), rig.shared.effects()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_does_not_count_while_the_world_cannot_be_read() {
    for answer in [Answer::Error, Answer::Panic, Answer::Hang] {
        let rig = Rig::new();
        let question = asked(&run(&rig).exec(call("world__pay")).await);
        rig.accounts.answer(answer);
        of_another_world(&approve(&run(&rig), &question).await);
        let pending = rig.waiting().await;
        let summary = pending.summary.as_deref().expect("a sentence");
        assert!(
            summary.starts_with("An approval did not count, because the precondition of the call could not be read.")
        );
        assert!(summary.ends_with("“balance” is “120”."), "{summary}");
        assert_ne!(pending.question(), question);
        let decisions = rig.decisions().await;
        assert_eq!(decisions[0].statements_at_begin().map(pairs), None);
        assert!(!serde_json::to_string(&decisions).expect("JSON").contains("CANARY"));
        // The world that was shown is still the one that is compared.
        rig.accounts.answer(Answer::Balance);
        assert_eq!(approve(&run(&rig), &pending.question()).await.outcome(), Outcome::Ok);
    }
}

#[tokio::test]
async fn a_world_that_can_never_be_read_ends_the_call() {
    let rig = Rig::new();
    let mut question = asked(&run(&rig).exec(call("world__pay")).await);
    rig.accounts.answer(Answer::Panic);
    for _ in 0..3 {
        of_another_world(&approve(&run(&rig), &question).await);
        question = rig.waiting().await.question();
    }
    let ended = approve(&run(&rig), &question).await;
    assert_eq!((ended.outcome(), rig.shared.effects()), (Outcome::Cancelled, 0));
    assert_eq!(rig.refused().await, [DecisionError::World; 4]);
}

#[tokio::test]
async fn too_many_statements_are_a_refusal() {
    let rig = Rig::new();
    let result = rig.process(SLOW).run(of("run-1")).exec(ToolCall::text("c1", "world__much", "{}")).await;
    assert_eq!((result.outcome(), result.executed()), (Outcome::ExecutionError, false));
    assert!(result.to_model().contains("could not be read"), "{}", result.to_model());
}

/// The caller gives up while the world is read: the call still waits, with the same question.
#[tokio::test]
async fn a_dropped_decision_changes_nothing() {
    let rig = Rig::new();
    let question = asked(&run(&rig).exec(call("world__pay")).await);
    rig.accounts.answer(Answer::Hang);
    let (resumed, grace) = (run(&rig), grace());
    {
        let mut deciding = Box::pin(resumed.resume(&question, ApprovalDecision::Approve, &grace));
        while rig.accounts.reads() < 2 {
            let polled = std::future::poll_fn(|cx| Poll::Ready(deciding.as_mut().poll(cx).is_pending())).await;
            assert!(polled, "the world cannot be read yet");
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(rig.waiting().await.question(), question);
    rig.accounts.answer(Answer::Balance);
    assert_eq!(approve(&run(&rig), &question).await.outcome(), Outcome::Ok);
    assert_eq!(rig.shared.effects(), 1);
}

/// Operators read why the world could not be read, wherever that was.
#[tokio::test]
async fn operators_learn_why_a_world_could_not_be_read() {
    let rig = Rig::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let run = |required| {
        let told = Arc::clone(&told);
        let rules = format!("allowed_tools = ['world__pay']\n{ASKED}\n[approvals]\nrequired = {required}\n");
        let policy = ToolPolicy::from_toml(&rules).expect("a policy");
        ToolRunner::builder(ToolCatalog::builder().tool::<Pay>().build().expect("a catalog"), policy)
            .capabilities(rig.capabilities())
            .approvals(true)
            .clock(Arc::clone(&rig.shared.clock))
            .store(Arc::clone(&rig.shared.store))
            .failures(move |failure: &Failure<'_>| told.lock().unwrap().push(failure.code.to_owned()))
            .build()
            .expect("a runner")
            .run(of("run-1"))
    };
    let told = || std::mem::take(&mut *told.lock().unwrap());
    asked(&run(1).exec(call("world__pay")).await);
    assert!(told().is_empty());
    for (answer, code) in [(Answer::Error, "execution_error"), (Answer::Panic, "panicked")] {
        rig.accounts.answer(answer);
        // The call is made again while it waits.
        asked(&run(1).exec(call("world__pay")).await);
        assert_eq!(told(), [code]);
        // It is approved.
        of_another_world(&approve(&run(1), &rig.waiting().await.question()).await);
        assert_eq!(told(), [code]);
    }
    let denied = run(1).resume(&rig.waiting().await.question(), ApprovalDecision::Deny(None), &grace()).await;
    assert_eq!(denied.expect("it waits").outcome(), Outcome::ApprovalDenied);
    // It is edited, and needs another approval.
    rig.accounts.answer(Answer::Balance);
    let second = asked(&run(2).exec(ToolCall::text("c2", "world__pay", r#"{"account":"a-1","cents":50}"#)).await);
    rig.accounts.answer(Answer::Panic);
    let edited = ApprovalDecision::ApproveEdited(r#"{"account":"other","cents":50}"#.into());
    of_another_world(&run(2).resume(&second, edited, &grace()).await.expect("it waits"));
    assert_eq!(told(), ["panicked"]);
}

const ASKED: &str = "require_approval_for_tools = ['world__pay']";
