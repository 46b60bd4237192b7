//! [`Engine`]: an implementation of [`Durable`] with the journal of a Restate workflow.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use restate_sdk::context::{
    ContextPromises, ContextSideEffects, ContextTimers, ContextWriteState, DurableFuture, DurableFuturesUnordered,
    RunFuture, WorkflowContext,
};
use restate_sdk::errors::{HandlerError, HandlerResult, TerminalError};
use restate_sdk::serde::Json;
use serde::{Deserialize, Serialize};
use tool_runtime::RunOptions;
use tool_runtime::agent::{Conversation, Durable, Input, SavedConversation, StepError, StepFuture, WaitingCall};
use tool_runtime::call::Question;
use tool_runtime::runner::ResumeError;
use tool_runtime::store::StoreError;

use crate::Journal;
use crate::delta::Delta;
use crate::entry::{Entry, is_terminal, store, terminal};
use crate::promises::{Brought, Delivered, Promises, RUN, WAITING, Waiting, close, promise, without_effect};

/// The maximum size of a conversation's document. Restate's servers refuse messages of 32 MiB by default.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// The reason why a step has no result.
pub(crate) enum Cut {
    /// The decision or answer was refused; the conversation is unchanged.
    Refused,
    /// The conversation cannot continue; the text is the code of the reason.
    Stopped(String),
    /// The workflow ends with this error, for example after a cancellation.
    Ends(TerminalError),
    /// The attempt ends with this error, and Restate makes another one.
    Retried(HandlerError),
}

impl From<StepError> for Cut {
    fn from(unfinished: StepError) -> Self {
        let unfinished = match unfinished {
            StepError::Store(error) | StepError::Refused(ResumeError::Store(error)) => return error.into(),
            unfinished => unfinished,
        };
        match Entry::unfinished(unfinished) {
            Ok(Entry::Refused) => Self::Refused,
            Ok(Entry::Stopped(code)) => Self::Stopped(code),
            // Unreachable: the entry of a step without a result is never `Kept`.
            Ok(Entry::Kept(_)) => Self::Stopped(String::new()),
            Err(error) => Self::Retried(error),
        }
    }
}

impl From<StoreError> for Cut {
    fn from(error: StoreError) -> Self {
        if is_terminal(&error) { Self::Ends(terminal(500, error.code())) } else { Self::Retried(store(error)) }
    }
}

impl From<TerminalError> for Cut {
    fn from(error: TerminalError) -> Self {
        Self::Ends(error)
    }
}

impl From<Cut> for HandlerError {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Refused => terminal(500, "refused").into(),
            Cut::Stopped(code) => terminal(500, &code).into(),
            Cut::Ends(error) => error.into(),
            Cut::Retried(error) => error,
        }
    }
}

/// The operations of a workflow that a conversation's loop needs. Tests have another implementation.
pub(crate) trait Workflow: Durable<Error = Cut> {
    /// Waits until one of the calls gets a decision or an answer, or expires. `brought` has the number of resolved
    /// promises of each question.
    fn wait(
        &self,
        calls: &[WaitingCall],
        brought: &HashMap<Question, u32>,
    ) -> impl Future<Output = Result<Arrived, TerminalError>> + Send;

    /// Closes the unanswered questions at the end of the workflow; each has the number of its resolved promises.
    /// Decisions that were delivered but not processed are recorded as late, because their handlers reported success.
    fn close(&self, open: &[(Question, u32)]) -> impl Future<Output = Result<(), TerminalError>> + Send;
}

/// The journal of a workflow, during one attempt.
pub(crate) struct Engine<'e> {
    journal: &'e Journal<'e>,
    run_id: String,
    /// The options with this attempt's lease of the run. With it, an earlier attempt that still runs cannot write.
    leased: RunOptions,
    /// The last document of the conversation.
    before: Mutex<Arc<str>>,
}

/// The end of a wait: a decision or an answer for a waiting call, or the expiry of calls.
pub(crate) struct Arrived {
    /// The questions whose promises are resolved. If a call waits with one of them again, it needs another promise.
    pub(crate) resolved: Vec<Question>,
    /// The name of the journaled step that applies `input`.
    pub(crate) name: String,
    pub(crate) input: Input,
}

/// Questions that expire together, each with the number of its resolved promises.
type Expiring = Vec<(Question, u32)>;

/// The journaled form of the waiting calls.
#[derive(Serialize, Deserialize)]
struct Asked {
    questions: Vec<(Question, u32)>,
    /// The time until the first calls expire, and these calls.
    late: Option<(Duration, Expiring)>,
}

type Arriving<'a> = Pin<Box<dyn DurableFuture<Output = Result<Option<Json<Delivered>>, TerminalError>> + Send + 'a>>;

impl<'e> Engine<'e> {
    /// Begins an attempt: waits for calls that the previous process may still execute, then leases the run.
    pub(crate) async fn begin(journal: &'e Journal<'e>, run_id: &str) -> Result<Self, HandlerError> {
        let leased =
            journal.runner.engine_lease(run_id, journal.options.clone()).await.map_err(|error| match error {
                StoreError::Fenced => "another process still executes a call of the run (still_running)".into(),
                error => store(error),
            })?;
        // Handlers need the id of the run to record late decisions, also after the workflow's end.
        let context: &WorkflowContext<'_> = journal.context;
        context.set(RUN, run_id.to_owned());
        Ok(Self { journal, run_id: run_id.to_owned(), leased, before: Mutex::new("".into()) })
    }

    /// Returns the options of the run in this attempt.
    pub(crate) fn options(&self) -> RunOptions {
        self.leased.clone()
    }

    fn before(&self) -> Arc<str> {
        Arc::clone(&self.before.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the journaled result of `work`, or runs `work` and journals its result.
    async fn journaled<T: Serialize + for<'de> Deserialize<'de> + 'static>(
        &self,
        name: &str,
        work: impl Future<Output = HandlerResult<T>> + Send,
    ) -> Result<T, TerminalError> {
        let context: &WorkflowContext<'_> = self.journal.context;
        let step = context.run(move || async move { work.await.map(Json) }).name(name);
        let step = match &self.journal.retries {
            Some(policy) => step.retry_policy(policy.clone()),
            None => step,
        };
        step.await.map(Json::into_inner)
    }

    fn asked(&self, calls: &[WaitingCall], brought: &HashMap<Question, u32>) -> Asked {
        let asked =
            |call: &WaitingCall| (call.question.clone(), brought.get(&call.question).copied().unwrap_or_default());
        let first = calls.iter().filter_map(|call| call.expires_at).min();
        let late = first.map(|first| {
            let left = self.journal.runner.time_until(first).unwrap_or_default();
            let late = calls.iter().filter(|call| call.expires_at == Some(first));
            (left, late.map(asked).collect())
        });
        Asked { questions: calls.iter().map(asked).collect(), late }
    }
}

impl Arrived {
    /// Creates the end of a wait that ended because `question` got an answer. `closed` are the questions that were
    /// closed before.
    pub(crate) fn brought(closed: Vec<Question>, question: Question, refused: u32, brought: Brought) -> Self {
        let name = format!("decision {}", promise(&question, refused));
        let input = brought.to(&question);
        Self { resolved: closed.into_iter().chain([question]).collect(), name, input }
    }
}

/// Closes the questions of calls that have expired, in order. If one of them already has an answer, that answer is
/// applied first: the gate decides by its time whether the answer still has an effect, and records it. The questions
/// that were closed before the answered one expire in the next round.
pub(crate) async fn too_late(context: &impl Promises, late: Expiring) -> Result<Arrived, TerminalError> {
    let (mut closed, mut input) = (Vec::new(), Input::new());
    for (question, refused) in late {
        if let Some(brought) = close(context, &question, refused).await? {
            return Ok(Arrived::brought(closed, question, refused, brought));
        }
        input = input.expire(&question);
        closed.push(question);
    }
    Ok(Arrived { resolved: closed, name: "too late".to_owned(), input })
}

impl Workflow for Engine<'_> {
    async fn wait(&self, calls: &[WaitingCall], brought: &HashMap<Question, u32>) -> Result<Arrived, TerminalError> {
        let asked = self.journaled("waits", async { Ok(self.asked(calls, brought)) }).await?;
        let names: Vec<String> =
            asked.questions.iter().map(|(question, refused)| promise(question, *refused)).collect();
        let context: &WorkflowContext<'_> = self.journal.context;
        context.set(WAITING, Json(asked.questions.iter().cloned().collect::<Waiting>()));
        let mut arriving = DurableFuturesUnordered::<Arriving<'_>>::new();
        for name in &names {
            arriving.push(Box::pin(context.promise::<Json<Delivered>>(name).map_ok(Some)));
        }
        if let Some((late, _)) = &asked.late {
            arriving.push(Box::pin(context.sleep(*late).map_ok(|()| None)));
        }
        let arrived = arriving.next().await;
        drop(arriving);
        // While the input is applied, and after a cancellation, no question is open, so a second answer gets a 404.
        context.set(WAITING, Json(Waiting::new()));
        let (at, brought) = arrived?.ok_or_else(|| terminal(500, "not_pending"))?;
        if let (Some(Json(Delivered { brought: Some(brought), .. })), Some((question, refused))) =
            (brought?, asked.questions.into_iter().nth(at))
        {
            return Ok(Arrived::brought(Vec::new(), question, refused, brought));
        }
        too_late(context, asked.late.map(|(_, late)| late).unwrap_or_default()).await
    }

    async fn close(&self, open: &[(Question, u32)]) -> Result<(), TerminalError> {
        let runner = &self.journal.runner;
        let context: &WorkflowContext<'_> = self.journal.context;
        for (question, decision, decider) in without_effect(context, open).await? {
            let note = async { runner.record_late(&self.run_id, &question, &decision, &decider).await.map_err(store) };
            self.journaled("late decision", note).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Durable for Engine<'_> {
    type Error = Cut;

    async fn unit(&self, name: &str, work: StepFuture<'_>) -> Result<SavedConversation, Cut> {
        let before = self.before();
        let entry = self.journaled(name, async {
            let saved = match self.journal.runner.under_lease(&self.leased, work).await.map_err(store)? {
                Ok(saved) => saved,
                Err(unfinished) => return Entry::unfinished(unfinished),
            };
            let after = serde_json::to_string(&saved).map_err(|_| terminal(500, "conversation_unwritable"))?;
            if after.len() > MAX_DOCUMENT_BYTES {
                return Err(terminal(413, "conversation_too_large").into());
            }
            Ok(Entry::Kept(Delta::between(&before, &after)))
        });
        let delta = match entry.await? {
            Entry::Kept(delta) => delta,
            Entry::Refused => return Err(Cut::Refused),
            Entry::Stopped(code) => return Err(Cut::Stopped(code)),
        };
        let after = delta.after(&before, MAX_DOCUMENT_BYTES).ok_or_else(|| terminal(413, "conversation_too_large"))?;
        let saved = serde_json::from_str(&after).map_err(|_| terminal(500, "journal_unreadable"))?;
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = after.into();
        Ok(saved)
    }

    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, Cut> {
        let Journal { agent, runner, .. } = self.journal;
        agent.restore(runner, self.options(), saved).await.map_err(|error| match error {
            ResumeError::Store(error) => error.into(),
            error @ (ResumeError::OtherPrincipal | ResumeError::OtherCaller) => terminal(403, error.code()).into(),
            error => terminal(500, error.code()).into(),
        })
    }
}
