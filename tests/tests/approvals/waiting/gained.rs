//! A run gains labels while a call waits. A decision is compared with the number of deciders that the call needs now.

use std::sync::atomic::{AtomicUsize, Ordering};

use tests::world::{HookAction, HookedStore};
use tokio::sync::Notify;
use tool_runtime::agent::{Input, RunQueue};
use tool_runtime::call::DecisionError;
use tool_runtime::runner::Grant;
use tool_runtime::store::{DecisionRecord, GrantScope, PendingCall};

use super::*;

/// What changes something needs two deciders once the run has read untrusted data.
fn labelled() -> String {
    format!(
        "{POLICY}\nrequire_approval_for_effects = [\"state_change\"]\n\
         [approvals.rules.\"labels.untrusted.require_approval_for_effects\"]\nrequired = 2\n"
    )
}

fn heidi() -> Decider {
    Decider::new("heidi").tenant("acme")
}

/// A run whose call waits for one decider, and that has read a page since.
async fn gained(store: &Arc<MemoryStore>) -> Run {
    let run = runner(&labelled(), store).run(ada());
    let waits = run.exec(ToolCall::text("person", "waiting__change", r#"{"to":3}"#)).await;
    assert_eq!((waits.outcome(), pending(&run).await.approvals().1), (Outcome::ApprovalRequired, 1));
    run.exec(ToolCall::text("reader", "waiting__page", "{}")).await;
    run
}

async fn pending(run: &Run) -> PendingCall {
    run.pending(&CallId::new("person")).await.expect("a store").expect("it waits")
}

async fn decisions_of(store: &MemoryStore) -> Vec<(String, Option<(u32, u32)>, Option<DecisionError>)> {
    let told = |decision: &DecisionRecord| {
        let decider = decision.decider.as_ref().map(|decider| decider.principal().to_owned()).unwrap_or_default();
        (decider, decision.approvals, decision.mismatch())
    };
    let records = store.records(&RecordFilter::run("run-1")).await.expect("records");
    records.iter().filter_map(|sealed| sealed.record.as_decision()).map(told).collect()
}

#[tokio::test]
async fn an_approval_counts_by_the_labels_of_now() {
    let store = Arc::new(MemoryStore::new());
    let run = gained(&store).await;
    let question = run.question("person").await;
    let first = run.resume(&question, ApprovalDecision::Approve, &grace()).await.expect("it counts");
    assert_eq!(
        (first.outcome(), first.executed(), first.approvals()),
        (Outcome::ApprovalRequired, false, Some((1, 2)))
    );
    // The arguments are those that were shown, so the question stays, and the approval with it.
    assert_eq!(pending(&run).await.question(), question);
    let (given, required) = (pending(&run).await.approvals().0.len(), pending(&run).await.approvals().1);
    assert_eq!((given, required), (1, 2));
    let again = run.resume(&question, ApprovalDecision::Approve, &grace()).await;
    assert!(matches!(again, Err(ResumeError::NotAllowed(DecisionError::SameDecider))), "{again:?}");
    // Another process, which has not read the page.
    let last = runner(&labelled(), &store).run(ada()).resume(&question, ApprovalDecision::Approve, &heidi()).await;
    assert_eq!(last.expect("it counts").outcome(), Outcome::Ok);
    let expected = [
        ("grace".to_owned(), Some((1, 2)), None),
        ("grace".to_owned(), None, Some(DecisionError::SameDecider)),
        ("heidi".to_owned(), Some((2, 2)), None),
    ];
    assert_eq!(decisions_of(&store).await, expected);
}

/// Neither an answer in the tool's place nor a grant is one of several approvals.
#[tokio::test]
async fn what_one_person_gives_alone_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let run = gained(&store).await;
    let question = run.question("person").await;
    let answered = run.resume(&question, ApprovalDecision::Respond("66".into()), &grace()).await.expect("it waits");
    assert_eq!(answered.error().and_then(|error| error.mismatch), Some(DecisionError::SeveralDeciders));
    let grant = Grant::allow(GrantScope::Principal).any_arguments();
    let granted = run.remember(&question, grant, &grace()).await;
    assert!(matches!(granted, Err(ResumeError::NotAllowed(DecisionError::SeveralDeciders))), "{granted:?}");
    let denied = run.resume(&question, ApprovalDecision::Deny(None), &grace()).await.expect("it waits");
    assert_eq!(denied.outcome(), Outcome::ApprovalDenied);
}

/// A message would abandon the call that waits for another decider.
#[tokio::test]
async fn a_conversation_asks_again() {
    let store = Arc::new(MemoryStore::new());
    let calls = ScriptedTurn::call("person", "waiting__change", r#"{"to":3}"#);
    let calls = calls.and_call("reader", "waiting__page", "{}");
    let agent = Agent::new(ScriptedModel::new([calls, ScriptedTurn::text("Done.")]));
    let mut conversation = agent.converse(runner(&labelled(), &store).run(ada()));
    let TurnOutcome::Waiting { calls } = conversation.send("Go.").await else { panic!("it waits") };
    let input = |by: &Decider| Input::new().decide(&calls[0].question, ApprovalDecision::Approve, by);
    let with_message = conversation.check(&input(&grace()).text("And then?")).await;
    assert!(matches!(with_message, Err(ResumeError::NotAllowed(DecisionError::WithMessage))), "{with_message:?}");
    let first = conversation.receive(input(&grace())).await.expect("it counts");
    let TurnOutcome::Waiting { calls: after } = first else { panic!("{first:?}") };
    assert_eq!((after[0].required, after[0].approvals.len()), (2, 1));
    let ended = conversation.receive(input(&heidi())).await.expect("it counts");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
}

/// A shell has neither the run nor a document of it: only the waiting call knows that the run gained a label.
#[tokio::test]
async fn a_process_without_the_run_knows_its_labels() {
    let store = Arc::new(MemoryStore::new());
    let run = gained(&store).await;
    let question = run.question("person").await;
    let queue = RunQueue::new(&runner(&labelled(), &store));
    let alone = queue.remember("run-1", &question, Grant::allow(GrantScope::Principal).any_arguments(), &grace()).await;
    assert!(matches!(alone, Err(ResumeError::NotAllowed(DecisionError::SeveralDeciders))), "{alone:?}");
    let mut given = Vec::new();
    for decider in [grace(), heidi()] {
        let (question, store) = (question.clone(), Arc::clone(&store));
        let queue = RunQueue::new(&runner(&labelled(), &store));
        let decided = queue.decide("run-1", &question, ApprovalDecision::Approve, &decider).await;
        assert!(decided.is_ok(), "{decided:?}");
        given.push(decisions_of(&store).await.pop().and_then(|(_, approvals, _)| approvals));
    }
    assert_eq!(given, [Some((1, 2)), Some((2, 2))]);
    assert_eq!(record(&store, "person").await.outcome, Outcome::Ok);
}

/// The store receives the call after the label came.
#[tokio::test]
async fn a_label_that_comes_during_the_suspension_is_kept() {
    let (entered, left) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (updates, hook) = (AtomicUsize::new(0), (Arc::clone(&entered), Arc::clone(&left)));
    let store = HookedStore::new(Arc::new(MemoryStore::new()), move |method| {
        // The first update makes the digest key.
        if method != "update" || updates.fetch_add(1, Ordering::SeqCst) != 1 {
            return HookAction::Pass;
        }
        let (entered, left) = hook.clone();
        HookAction::After(Box::pin(async move {
            entered.notify_one();
            left.notified().await;
        }))
    });
    let policy = ToolPolicy::from_toml(&labelled()).expect("a policy");
    let runner = ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy).approvals(true).store(store);
    let run = runner.build().expect("a runner").run(ada());
    let waiting = tokio::spawn(run.exec(ToolCall::text("person", "waiting__change", r#"{"to":3}"#)));
    entered.notified().await;
    run.exec(ToolCall::text("reader", "waiting__page", "{}")).await;
    left.notify_one();
    assert_eq!(waiting.await.expect("it ends").outcome(), Outcome::ApprovalRequired);
    let call = serde_json::to_value(pending(&run).await).expect("JSON");
    assert_eq!((&call["labels"], &call["gained"]), (&serde_json::json!([]), &serde_json::json!(["untrusted"])));
}

/// The tool runs in another process, after the approval. This run reads the result, so it gets the label, too.
#[tokio::test]
async fn a_result_of_another_process_labels_the_run_that_reads_it() {
    let store = Arc::new(MemoryStore::new());
    let run = runner(POLICY, &store).run(ada());
    let waits = run.exec(ToolCall::text("person", "waiting__change", r#"{"to":3}"#)).await;
    assert_eq!(waits.outcome(), Outcome::ApprovalRequired);
    let question = run.question("person").await;
    let other = runner(POLICY, &store).run(ada());
    let ran = other.resume(&question, ApprovalDecision::Approve, &grace()).await.expect("it runs");
    assert_eq!(ran.outcome(), Outcome::Ok);
    let read = run.recorded(&CallId::new("person")).await.expect("a store").expect("it ended");
    assert_eq!((read.outcome(), read.value().is_some()), (Outcome::Ok, true));
    let sent = run.exec(ToolCall::text("far", "waiting__hang", "{}")).await;
    assert_eq!(sent.outcome(), Outcome::PolicyDenied, "untrusted data was read");
}

/// The future is dropped while the label is written to the calls that wait.
#[tokio::test]
async fn a_result_that_was_not_returned_may_have_begun() {
    let (entered, listed) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (reached, lists) = (Arc::clone(&entered), Arc::clone(&listed));
    let store = HookedStore::new(Arc::new(MemoryStore::new()), move |method| {
        // The first list shows whether an earlier process had calls of the run.
        if method != "list" || lists.fetch_add(1, Ordering::SeqCst) < 2 {
            return HookAction::Pass;
        }
        reached.notify_one();
        HookAction::After(Box::pin(std::future::pending()))
    });
    let policy = ToolPolicy::from_toml(&POLICY.replace("require_approval_for_tools", "# "));
    let policy = policy.expect("a policy");
    let runner = ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy).approvals(true).store(store);
    let run = runner.build().expect("a runner").run(ada());
    listed.store(1, Ordering::SeqCst);
    let call = ToolCall::text("changes", "waiting__change", r#"{"to":3}"#);
    tokio::select! {
        result = run.exec(call) => panic!("{result:?}"),
        () = entered.notified() => {}
    }
    assert!(run.may_have_begun(&CallId::new("changes")));
}
