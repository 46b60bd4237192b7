//! [`Durable`]: storage for the results of steps, so that a step is not taken twice.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use async_trait::async_trait;

use crate::agent::{Conversation, Input, ModelError, SavedConversation, Step, StopReason, TurnOutcome};
use crate::call::{DecisionError, Question};
use crate::runner::ResumeError;
use crate::store::StoreError;

/// The future of one unit of work: a step, or the acceptance of an input. It resolves to the conversation after the
/// unit.
///
/// [`Durable`] has an example.
pub type StepFuture<'w> = Pin<Box<dyn Future<Output = Result<SavedConversation, StepError>> + Send + 'w>>;

/// Storage for the results of steps: a store that workers share, or the journal of an engine for durable execution (a
/// workflow engine that records the result of each step).
///
/// [`Conversation::step_on`] passes each step to [`unit`](Self::unit), under a name that is the same whenever the step
/// is repeated. An engine that has a result of that name in its journal returns it. Otherwise it does the work and
/// journals the result, a document that serialises as JSON. After an interruption, an engine repeats the unit. The
/// ledger (the list of begun calls in the runner's store) then shows which calls have begun, so the store has to
/// outlive the process. Decisions and answers arrive as signals or promises of the engine, and
/// [`Conversation::accept_on`] takes them.
///
/// ```
/// use async_trait::async_trait;
/// use tool_runtime::agent::{Agent, Conversation, Durable, Input, SavedConversation, Step, StepError, StepFuture};
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// /// An engine without a journal: it does the work of each unit at once.
/// struct Here {
///     agent: Agent,
///     runner: ToolRunner,
/// }
///
/// #[async_trait]
/// impl Durable for Here {
///     type Error = StepError;
///
///     async fn unit(&self, _name: &str, work: StepFuture<'_>) -> Result<SavedConversation, StepError> {
///         work.await
///     }
///
///     async fn restore(&self, saved: SavedConversation) -> Result<Conversation, StepError> {
///         self.agent.restore(&self.runner, RunOptions::new(), saved).await.map_err(StepError::other)
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let engine = Here { agent: Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello.")])), runner };
/// let mut conversation = engine.agent.converse(engine.runner.run(RunOptions::new()));
/// conversation.accept_on(&engine, "message", Input::from("Hi!")).await?;
/// while let Step::Asked | Step::Ran = conversation.step_on(&engine).await? {}
/// assert_eq!(conversation.turns().len(), 1);
/// # Ok(()) })
/// # }
/// ```
#[async_trait]
pub trait Durable: Send + Sync {
    /// The reason why a unit has no result: the work failed, or the engine did.
    type Error: From<StepError> + Send;

    /// Returns the stored result of this name. If there is none, does the work, stores its result, and returns it.
    ///
    /// # Errors
    /// The work failed, or its result could not be stored. The step can be taken again.
    async fn unit(&self, name: &str, work: StepFuture<'_>) -> Result<SavedConversation, Self::Error>;

    /// Continues a conversation that another process saved, with [`Agent::restore`](crate::agent::Agent::restore).
    ///
    /// # Errors
    /// The conversation cannot be restored.
    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, Self::Error>;
}

impl Conversation {
    /// Takes a step as [`step`](Self::step) does, as a unit of an engine. A step that makes no progress, because calls
    /// wait or the request has ended, does not reach the engine.
    ///
    /// # Errors
    /// The unit has no result. An error of the model is not stored, so that the model can be asked again.
    pub async fn step_on<D: Durable + ?Sized>(&mut self, engine: &D) -> Result<Step, D::Error> {
        if self.turns.is_idle() {
            return Ok(self.step().await);
        }
        let (name, runs) = self.turns.next_unit();
        let (mut here, mut stopped) = (false, None);
        let work = async {
            let step = self.step().await;
            if let Step::Ended(ended) = step {
                return Err(StepError::of(ended, &mut stopped));
            }
            let saved = self.save().await.map_err(StepError::Store)?;
            here = true;
            Ok(saved)
        };
        let kept = engine.unit(&name, Box::pin(work)).await;
        if let Some(ended) = stopped {
            return Ok(Step::Ended(ended));
        }
        let saved = kept?;
        if !here {
            *self = replayed(engine, saved).await?;
        }
        Ok(if runs { Step::Ran } else { Step::Asked })
    }

    /// Takes an input as [`accept`](Self::accept) does, as a unit of an engine with this name. An attempt at the unit
    /// can replace the question that a decision answers, and be interrupted before the engine stores its result. The
    /// result of the next attempt is then the conversation with the new question.
    ///
    /// # Errors
    /// The unit has no result.
    pub async fn accept_on<D: Durable + ?Sized>(
        &mut self,
        engine: &D,
        name: &str,
        input: Input,
    ) -> Result<(), D::Error> {
        let mut here = false;
        let work = async {
            let before = self.questions();
            match self.accept(input).await {
                // An interrupted attempt at this unit replaced the question. The new question is the result of the
                // unit, so that a replay reads it too.
                Err(ResumeError::NotAllowed(DecisionError::Question)) if self.questions() != before => {}
                accepted => accepted.map_err(StepError::Refused)?,
            }
            let saved = self.save().await.map_err(StepError::Store)?;
            here = true;
            Ok(saved)
        };
        let saved = engine.unit(name, Box::pin(work)).await?;
        if !here {
            *self = replayed(engine, saved).await?;
        }
        Ok(())
    }

    fn questions(&self) -> Vec<Question> {
        self.waiting().map(|call| call.question.clone()).collect()
    }
}

/// Restores the stored document of a unit. Its calls keep the progress and the questions of the document, even if later
/// units have suspended the calls or replaced the questions, because a replay has to repeat the first attempt.
async fn replayed<D: Durable + ?Sized>(engine: &D, saved: SavedConversation) -> Result<Conversation, D::Error> {
    let open = saved.state.open.clone();
    let mut conversation = engine.restore(saved).await?;
    for (slot, kept) in conversation.turns.state.open.iter_mut().zip(open) {
        if slot.id == kept.id && kept.waiting().is_some() {
            slot.progress = kept.progress;
        } else if slot.id == kept.id && kept.queued_call().is_some() && slot.waiting().is_some() {
            *slot = kept;
            slot.fresh = false;
        }
    }
    Ok(conversation)
}

/// The reason why a unit of work has no result.
///
/// [`Durable`] has an example.
#[derive(Debug)]
#[non_exhaustive]
pub enum StepError {
    /// The model gave no answer.
    Model(ModelError),
    /// The input was not accepted. Contains the error of [`Conversation::accept`].
    Refused(ResumeError),
    /// The store failed.
    Store(StoreError),
    /// Any other error, such as an error of the engine.
    Other(Box<dyn Error + Send + Sync>),
}

impl StepError {
    /// Creates any other error.
    #[must_use]
    pub fn other(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    /// Converts an end that can be retried to its error. Any other end is put in `stopped`, because it ends the
    /// request.
    fn of(ended: TurnOutcome, stopped: &mut Option<TurnOutcome>) -> Self {
        match ended {
            TurnOutcome::Stopped { reason: StopReason::Model(error), .. } => Self::Model(error),
            TurnOutcome::Stopped { reason: StopReason::Unsettled(ResumeError::Store(error)), .. } => Self::Store(error),
            ended => {
                let code = ended.code();
                *stopped = Some(ended);
                Self::Other(code.into())
            }
        }
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Model(error) => error.code(),
            Self::Refused(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Other(_) => "unfinished",
        }
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => error.fmt(f),
            Self::Refused(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Other(_) => f.write_str("the unit of work was not finished"),
        }
    }
}

impl Error for StepError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Model(error) => error.source(),
            Self::Refused(error) => error.source(),
            Self::Store(error) => error.source(),
            Self::Other(error) => Some(&**error),
        }
    }
}
