//! Conversations of [tool-runtime](https://docs.rs/tool-runtime) as workflows of
//! [Restate](https://docs.rs/restate-sdk).
//!
//! Each turn of the model and each call is a journaled step, and a waiting call is a durable promise. The workflow's
//! `run` handler passes the user's message to a [`Journal`]. Shared handlers deliver decisions with [`decide`], and
//! clients' answers with [`answer`].
//!
//! ```no_run
//! use restate_sdk::prelude::*;
//! use tool_runtime::agent::{Agent, Input};
//! use tool_runtime::call::{Decider, Question};
//! use tool_runtime::runner::ApprovalDecision;
//! use tool_runtime::{RunOptions, ToolRunner};
//! use tool_runtime_restate::{Journal, decide};
//!
//! struct Chat {
//!     agent: Agent,
//!     // Its store is shared by all processes.
//!     runner: ToolRunner,
//! }
//!
//! #[workflow]
//! impl Chat {
//!     #[handler]
//!     async fn run(&self, ctx: WorkflowContext<'_>, message: String) -> HandlerResult<String> {
//!         let options = RunOptions::new().run_id(ctx.key()).principal("ada").tenant("acme");
//!         let journal = Journal::new(&ctx, self.agent.clone(), self.runner.clone(), options);
//!         Ok(journal.converse(Input::from(message)).await?.text)
//!     }
//!
//!     #[handler]
//!     async fn approve(&self, ctx: SharedWorkflowContext<'_>, Json(question): Json<Question>) -> HandlerResult<()> {
//!         // The person whom the application authenticated.
//!         let decider = Decider::new("grace").tenant("acme");
//!         decide(&ctx, &self.runner, &question, ApprovalDecision::Approve, &decider).await
//!     }
//! }
//! ```
//!
//! Restate repeats an interrupted step, although its effect may have happened before its result was journaled. The
//! ledger in the runner's store prevents a second effect, so the store has to be a database that all processes share.
//! An attempt at a workflow first waits for a call with effects that the previous process may still execute, for at
//! most the runner's [`lease`](tool_runtime::runner::RunnerBuilder::lease). Then it leases the run. After that, an
//! earlier process that still runs can write nothing more, not even the record of a `read_only` call.
//!
//! Restate retries a step if another process still executes a call, if the model cannot be reached, times out or
//! answers with the status 408, 429 or 500 and above, and after most errors of the store. Any other failure of the
//! model ends the conversation, with its code in [`Finished::code`]. The remaining failures are a
//! [`TerminalError`](restate_sdk::errors::TerminalError): 413 for a conversation that is too large, 403 for a saved
//! conversation of another principal, tenant or caller, and 500 otherwise. Errors of the store that a retry cannot
//! remove also get a 500: damaged data, a purged run, or a run that the store has under another principal or tenant
//! (`store_duplicate`).

mod delta;
mod engine;
mod entry;
mod promises;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use restate_sdk::context::{RunRetryPolicy, WorkflowContext};
use restate_sdk::errors::HandlerError;
use tool_runtime::agent::{Agent, Conversation, Durable, Input, SavedConversation, Step, TurnOutcome};
use tool_runtime::call::Question;
use tool_runtime::{RunOptions, ToolRunner};

use crate::engine::{Cut, Engine, Workflow};

pub use promises::{answer, decide, questions};

/// A conversation in a workflow. The results of its steps are in the workflow's journal.
///
/// Each result is stored as the difference from the previous document of the conversation. A document of more than 16
/// MiB ends the workflow, because Restate's servers refuse messages of 32 MiB by default.
#[must_use]
pub struct Journal<'ctx> {
    context: &'ctx WorkflowContext<'ctx>,
    agent: Agent,
    runner: ToolRunner,
    options: RunOptions,
    retries: Option<RunRetryPolicy>,
}

/// The end of a conversation in a workflow.
#[derive(Clone)]
#[non_exhaustive]
pub struct Finished {
    /// The code of the outcome ([`TurnOutcome::code`]): `answered`, or the reason for a missing answer.
    pub code: String,
    /// The answer. Without one, the text of [`TurnOutcome::Stopped`], such as an incomplete text of the model; it can
    /// be empty.
    pub text: String,
    /// The conversation. Another workflow can continue it with [`Journal::resume`].
    pub conversation: SavedConversation,
}

// Not derived, so that the conversation and the answer stay out of logs.
impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finished").field("code", &self.code).finish_non_exhaustive()
    }
}

impl<'ctx> Journal<'ctx> {
    /// Creates the journal of a workflow. A [`run_id`](RunOptions::run_id) in the options must be the same in every
    /// attempt, because idempotency keys depend on it. By default it is the workflow's key.
    pub const fn new(
        context: &'ctx WorkflowContext<'ctx>,
        agent: Agent,
        runner: ToolRunner,
        options: RunOptions,
    ) -> Self {
        Self { context, agent, runner, options, retries: None }
    }

    /// Sets the intervals and the number of retries of a step. By default the server's policy applies.
    pub fn retries(mut self, policy: RunRetryPolicy) -> Self {
        self.retries = Some(policy);
        self
    }

    /// Begins a conversation with a message of the user, and continues until it ends.
    ///
    /// # Errors
    /// A retryable error, after which Restate makes another attempt, or a terminal error.
    pub async fn converse(&self, input: Input) -> Result<Finished, HandlerError> {
        let run_id = self.options.id().unwrap_or_else(|| self.context.key());
        let engine = Engine::begin(self, run_id).await?;
        let conversation = self.agent.converse(self.runner.run(engine.options()));
        proceed(&engine, conversation, input).await
    }

    /// Continues a conversation that another workflow finished, with a message of the user.
    ///
    /// # Errors
    /// The same as those of [`converse`](Self::converse).
    pub async fn resume(&self, saved: SavedConversation, input: Input) -> Result<Finished, HandlerError> {
        let engine = Engine::begin(self, saved.run().run_id()).await?;
        let conversation = engine.restore(saved).await.map_err(HandlerError::from)?;
        proceed(&engine, conversation, input).await
    }
}

/// Continues a conversation with an input until it ends. When the workflow ends, also with a terminal error, all open
/// questions are closed, and decisions that were delivered but have no effect are recorded. After a retryable error,
/// the questions stay open.
async fn proceed(
    engine: &impl Workflow,
    mut conversation: Conversation,
    input: Input,
) -> Result<Finished, HandlerError> {
    let mut open = Vec::new();
    let (code, text) = match turns(engine, &mut conversation, input, &mut open).await {
        Ok(ended) => {
            engine.close(&open).await?;
            ended
        }
        Err(Cut::Ends(error)) => {
            // The workflow failed or was cancelled. A failure of `close` must not replace that error.
            drop(engine.close(&open).await);
            return Err(error.into());
        }
        // The questions stay open, because the next attempt waits for the same promises.
        Err(cut) => return Err(cut.into()),
    };
    let conversation = conversation.save().await.map_err(Cut::from)?;
    Ok(Finished { code, text, conversation })
}

/// Runs the steps of a conversation until it ends, and returns the code of the end and the text. `open` receives the
/// unanswered questions of the last wait, each with the number of its resolved promises.
async fn turns(
    engine: &impl Workflow,
    conversation: &mut Conversation,
    input: Input,
    open: &mut Vec<(Question, u32)>,
) -> Result<(String, String), Cut> {
    let (mut name, mut input) = ("message".to_owned(), Some(input));
    // The number of resolved promises of each question. After a refused answer, or one of several approvals, the call
    // waits with the same question again. A promise can be resolved only once, so each round has its own promise.
    let mut brought: HashMap<Question, u32> = HashMap::new();
    loop {
        let stepped = match input.take() {
            Some(input) => match conversation.accept_on(engine, &name, input).await {
                Ok(()) | Err(Cut::Refused) => continue,
                Err(cut) => Err(cut),
            },
            None => conversation.step_on(engine).await,
        };
        match stepped {
            Ok(Step::Waits(calls)) => {
                let refused = |question: &Question| brought.get(question).copied().unwrap_or_default();
                *open = calls.iter().map(|call| (call.question.clone(), refused(&call.question))).collect();
                let arrived = engine.wait(&calls, &brought).await?;
                name = arrived.name;
                open.retain(|(question, _)| !arrived.resolved.contains(question));
                for question in arrived.resolved {
                    *brought.entry(question).or_default() += 1;
                }
                input = Some(arrived.input);
            }
            Ok(Step::Ended(ended)) => {
                let code = ended.code().to_owned();
                let (TurnOutcome::Answered { text } | TurnOutcome::Stopped { text, .. }) = ended else { continue };
                return Ok((code, text));
            }
            // The model answered or calls ran: the next step is due.
            Ok(_) => {}
            // The stop is in the journal, so a replay ends with the same code.
            Err(Cut::Stopped(code)) => return Ok((code, String::new())),
            Err(cut) => return Err(cut),
        }
    }
}
