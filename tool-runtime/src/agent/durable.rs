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

/// One unit of work: a step, or the content of a request. Its result is the conversation after it.
///
/// [`Durable`] has an example.
pub type StepFuture<'w> = Pin<Box<dyn Future<Output = Result<SavedConversation, StepError>> + Send + 'w>>;

/// Storage for the results of steps: a store that workers share, or the journal of an engine for durable execution.
///
/// The loop is the same for all of them: [`Conversation::step_on`] passes each step to [`unit`](Self::unit), with a
/// name that is the same whenever the step is taken again. An engine returns the result in its journal under that name,
/// or does the work and journals its result: a document that serialises as JSON. An engine that interrupts a unit does
/// its work again; the gate's ledger then shows which calls have begun, so the runner needs a store that outlives the
/// process. Decisions and answers come from outside the loop, as an engine's signal or promise, and
/// [`Conversation::accept_on`] takes them.
///
/// ```
/// use async_trait::async_trait;
/// use tool_runtime::agent::{Agent, Conversation, Durable, Input, SavedConversation, Step, StepError, StepFuture};
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// /// Keeps nothing.
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

    /// Returns the result kept under the name, or does the work and keeps its result before it returns it.
    ///
    /// # Errors
    /// The work failed, or its result could not be kept. The step can be taken again.
    async fn unit(&self, name: &str, work: StepFuture<'_>) -> Result<SavedConversation, Self::Error>;

    /// Continues a conversation that another process saved, with [`Agent::restore`](crate::agent::Agent::restore).
    ///
    /// # Errors
    /// It cannot be continued.
    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, Self::Error>;
}

impl Conversation {
    /// As [`step`](Self::step), as a unit of an engine. A step that would make no progress (because calls wait, or the
    /// request has ended) is not a unit.
    ///
    /// # Errors
    /// The unit has no result. An error of the model is not kept, so that the model can be asked again.
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

    /// As [`accept`](Self::accept), as a unit of an engine with this name. If an earlier attempt at the unit replaced
    /// the question that a decision answers, and was cut before the engine kept its result, the result is the
    /// conversation with the new question.
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
                // An earlier attempt at this unit replaced the question, and was cut before the engine kept it. The new
                // question is the result of the unit: a replay reads it there.
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

/// Restores the document of a unit that the engine has. Its calls are queued, or ask the questions of the document,
/// although later units may have suspended them or replaced the questions: a replay has to repeat what the first
/// attempt did.
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
    /// The decision or answer does not match the conversation, which is unchanged.
    Refused(ResumeError),
    /// The store failed.
    Store(StoreError),
    /// Anything else.
    Other(Box<dyn Error + Send + Sync>),
}

impl StepError {
    /// Any other error.
    #[must_use]
    pub fn other(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    /// Converts an end that can be retried to its error; any other end is the end of the request, in `stopped`.
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
