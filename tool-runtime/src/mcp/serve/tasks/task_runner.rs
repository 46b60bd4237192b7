//! The task runner of a run: it carries out decisions that were posted to the store, and expires calls.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::agent::Input;
use crate::call::{Decider, Question};
use crate::contain::discard;
use crate::mcp::serve::tasks::left::is_recorded;
use crate::mcp::serve::tasks::run_tasks::RunTasks;
use crate::mcp::serve::{McpServer, Served};
use crate::runner::{ApprovalDecision, ResumeError};
use crate::runner::{ServedRun, ServedRuns};
use crate::store::{Key, Post, StoreError};

/// How long to wait before a failed attempt is repeated.
const AGAIN: Duration = Duration::from_secs(1);

/// Starts the task runner. It ends when the run has no more tasks, or with the server.
pub(super) fn start(server: &McpServer, run_tasks: &Arc<RunTasks>) {
    tokio::spawn(keep(Arc::downgrade(&server.0), Arc::clone(run_tasks)));
}

async fn keep(server: Weak<Served>, run_tasks: Arc<RunTasks>) {
    // A posted message stays in the store until it has had its effect. A separate tokio task carries it out.
    let (mut deciding, mut taken) = (JoinSet::new(), HashSet::new());
    let (mut owner, mut failed_posts, mut failed_calls) = (None, LastFailure::default(), LastFailure::default());
    let mut failed_removals = LastFailure::default();
    loop {
        let Some(served) = server.upgrade() else { return };
        let owner = owner.get_or_insert_with(|| ServedRuns(&served.runner).owner());
        if served.calls.closing().is_cancelled() {
            break;
        }
        // The run stays while it has posted messages: each decision gets a record, even if its call is over.
        let mut has_posts = true;
        match ServedRuns(&served.runner).posted_to(&run_tasks.run).await {
            Ok(posts) => {
                failed_posts = LastFailure::default();
                has_posts = !posts.is_empty();
                for (key, post) in posts {
                    if taken.contains(key.id()) {
                        continue;
                    }
                    let (now, left) = now_and_left(&served, &run_tasks, &post, &mut failed_calls).await;
                    // An unreadable message has no decisions, and is dropped.
                    if (left.is_empty() || !now.is_empty()) && taken.insert(key.id().clone()) {
                        let (served, owner) = (Arc::clone(&served), Arc::clone(owner));
                        let message = Message { key, posted: post, now, left };
                        deciding.spawn(carry_out(served, Arc::clone(&run_tasks), owner, message));
                    }
                }
            }
            Err(error) => failed_posts.report(&run_tasks, &error, "decisions on tasks could not be read"),
        }
        let (is_empty, failed) = run_tasks.tidy(&served.runner).await;
        match failed {
            Some(error) => failed_removals.report(&run_tasks, &error, "a finished call could not be removed"),
            None => failed_removals = LastFailure::default(),
        }
        if is_empty && !has_posts && deciding.is_empty() && served.tasks.leave(&run_tasks) {
            run_tasks.forget(&served.runner).await;
            return;
        }
        let (store, closing) = (Arc::clone(served.runner.store()), served.calls.closing().clone());
        drop(served);
        tokio::select! {
            Some(ended) = deciding.join_next(), if !deciding.is_empty() => {
                if let Ok(post) = ended {
                    taken.remove(&post);
                }
            }
            () = store.changed() => {}
            () = run_tasks.changed.notified() => {}
            () = closing.cancelled() => break,
        }
    }
    // Closing the server waits for these tasks, and cancels calls that take too long.
    while deciding.join_next().await.is_some() {}
}

/// The last failure of a read that the task runner makes in each round. A failure that repeats, such as an unreadable
/// message of a newer server, is logged only once.
#[derive(Default)]
struct LastFailure(Option<&'static str>);

impl LastFailure {
    /// Logs a failure, unless the previous round failed in the same way.
    fn report(&mut self, run_tasks: &RunTasks, error: &StoreError, what: &'static str) {
        if self.is_new(error) {
            tracing::warn!(run = run_tasks.run.id(), error = error.code(), "{what}");
        }
    }

    fn is_new(&mut self, error: &StoreError) -> bool {
        self.0.replace(error.code()) != Some(error.code())
    }
}

/// A decision of a message, with its question and its decider.
type Decision = (Question, ApprovalDecision, Decider);

/// A message, with the decisions to carry out now and the decisions to leave in the store.
struct Message {
    key: Key,
    posted: Post,
    now: Vec<Decision>,
    left: Vec<Decision>,
}

/// Returns the decisions of a message to carry out now, and the decisions to leave in the store.
async fn now_and_left(
    served: &Served,
    run_tasks: &RunTasks,
    post: &Post,
    failed_calls: &mut LastFailure,
) -> (Vec<Decision>, Vec<Decision>) {
    let (mut now, mut left) = (Vec::new(), Vec::new());
    match serde_json::from_str::<Input>(&post.body) {
        Ok(input) => {
            for (question, decision, decider) in input.into_decisions() {
                let is_denial = matches!(decision, ApprovalDecision::Deny(_));
                let is_left = !is_denial && is_left(served, run_tasks, &question, failed_calls).await;
                if is_left { &mut left } else { &mut now }.push((question, decision, decider));
            }
        }
        Err(_) => tracing::warn!(run = run_tasks.run.id(), "a posted decision cannot be read; it is dropped"),
    }
    (now, left)
}

/// Whether an approval has to stay in the store, because the client of its call has gone away. It is carried out when
/// the client repeats the call, so that no effect happens without a client that waits for it.
async fn is_left(served: &Served, run_tasks: &RunTasks, question: &Question, failed_calls: &mut LastFailure) -> bool {
    // The call may have come to another server since this one read the run.
    let id = question.call_id();
    if !run_tasks.has(id) {
        if let Err(error) = run_tasks.learn(&served.runner).await {
            failed_calls.report(run_tasks, &error, "the calls of a run could not be read");
            return true;
        }
        *failed_calls = LastFailure::default();
        if !run_tasks.has(id) && asks(served, run_tasks, question).await {
            return true;
        }
    }
    run_tasks.is_left(id) || is_left_to_others(served, run_tasks, question).await
}

/// Whether a call that is missing from the run's document waits with this question. A server that was killed while it
/// stored two calls can leave such a document. No client waits for the call until one repeats it, which adds it to the
/// document.
async fn asks(served: &Served, run_tasks: &RunTasks, question: &Question) -> bool {
    let now = ServedRuns(&served.runner).now();
    match run_tasks.run.pending(question.call_id()).await {
        Ok(call) => call.is_some_and(|call| call.question() == *question && !call.is_expired(now)),
        Err(error) => {
            discard(error);
            true
        }
    }
}

/// Whether another server can carry out an approval that this one would refuse.
async fn is_left_to_others(served: &Served, run_tasks: &RunTasks, question: &Question) -> bool {
    let left = async {
        match run_tasks.run.pending(question.call_id()).await? {
            Some(call) if call.question() == *question => run_tasks.rules(&served.runner).leave_to_others(&call).await,
            _ => Ok(false),
        }
    };
    left.await.unwrap_or_else(|error: StoreError| {
        discard(error);
        true
    })
}

/// Carries out the decisions of a message that are due now, and removes them from the store. Returns the id of the
/// message.
async fn carry_out(served: Arc<Served>, run_tasks: Arc<RunTasks>, owner: Arc<str>, message: Message) -> Arc<str> {
    let (key, id) = (message.key.clone(), Arc::clone(message.key.id()));
    let is_done = match served.calls.begin() {
        // Another server that has the run may carry out the message.
        Ok(_running) => {
            let carried = was_carried_out(&served, &run_tasks, &owner, message);
            ServedRuns(&served.runner).claimed(&key, &owner, Box::pin(carried)).await.unwrap_or(false)
        }
        Err(_) => false,
    };
    if !is_done {
        // The message is tried again after this pause.
        tokio::time::sleep(AGAIN).await;
    }
    id
}

/// Carries out the decisions of a message that are due now. Returns whether it did, so that the message need not be
/// tried again.
async fn was_carried_out(served: &Served, run_tasks: &RunTasks, owner: &Arc<str>, message: Message) -> bool {
    let Message { key, posted, now, left } = message;
    for (at, (question, decision, decider)) in now.into_iter().enumerate() {
        if at > 0 && !ServedRuns(&served.runner).claim(&key, owner).await {
            return false;
        }
        // A store that cannot be read does not show that the decision was carried out.
        let Ok(call) = run_tasks.run.pending(question.call_id()).await else { return false };
        let asks = call.is_some_and(|call| call.question() == question);
        if !asks
            && let Ok(true) =
                is_recorded(served, ServedRun(&run_tasks.run).stored_id(), &question, &decider, &posted).await
        {
            continue;
        }
        // A refused decision is done: it has a record.
        if let Err(ResumeError::Store(error)) =
            Box::pin(run_tasks.decide((&served.runner, served.calls.stopped()), &question, decision, &decider)).await
        {
            tracing::warn!(run = run_tasks.run.id(), error = error.code(), "a decision could not be carried out yet");
            return false;
        }
    }
    if !left.is_empty() && !ServedRuns(&served.runner).claim(&key, owner).await {
        return false;
    }
    let Ok(rest) = rest(&left) else { return false };
    let taken = ServedRuns(&served.runner).took(key, rest).await;
    if let Err(error) = &taken {
        tracing::warn!(run = run_tasks.run.id(), error = error.code(), "a decision could not be removed");
    }
    taken.is_ok()
}

/// Returns the body of a message with these decisions, and the questions that they answer. `None` if there are none.
fn rest(left: &[Decision]) -> serde_json::Result<Option<(Arc<str>, Vec<Question>)>> {
    if left.is_empty() {
        return Ok(None);
    }
    let decide =
        |input: Input, (question, decision, decider): &Decision| input.decide(question, decision.clone(), decider);
    let body = serde_json::to_string(&left.iter().fold(Input::new(), decide))?;
    Ok(Some((body.into(), left.iter().map(|(question, ..)| question.clone()).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_lasts_is_reported_once() {
        let (mut reported, damaged) = (LastFailure::default(), StoreError::Corrupt("a newer server wrote it".into()));
        assert!(reported.is_new(&damaged));
        assert!((0..100).all(|_| !reported.is_new(&damaged)));
        assert!(reported.is_new(&StoreError::Unavailable("down".into())) && reported.is_new(&damaged));
    }
}
