//! [`AnswerError`]: the reason why there is no typed answer.

use std::fmt;

use crate::agent::{StopReason, WaitingCall};
use crate::error::Problem;
use crate::runner::ResumeError;

/// The reason why [`Conversation::ask`](crate::agent::Conversation::ask) returned no answer. `Display` is safe to show.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use tool_runtime::agent::{Agent, AnswerError};
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct City {
///     /// Its name.
///     name: String,
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let model = ScriptedModel::new([ScriptedTurn::refuses("I cannot help with that.")]);
/// let mut conversation = Agent::new(model).converse(runner.run(RunOptions::new()));
/// match conversation.ask::<City>("What is the capital of France?").await {
///     Ok(city) => println!("{}", city.name),
///     Err(AnswerError::Waiting(calls)) => println!("{} calls wait for a decision", calls.len()),
///     Err(error) => assert_eq!(error.to_string(), "the model refused"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[non_exhaustive]
pub enum AnswerError {
    /// Calls wait for the client or for a person. Call `ask` again with the answers and decisions.
    Waiting(Vec<WaitingCall>),
    /// The request ended without an answer that matches the schema.
    Stopped {
        /// The reason.
        reason: StopReason,
        /// The text, as in [`TurnOutcome::Stopped`](crate::agent::TurnOutcome::Stopped).
        text: String,
    },
    /// The input was refused, and the conversation keeps its state. Contains the error of
    /// [`Conversation::receive`](crate::agent::Conversation::receive), such as a call that does not wait, a decider who
    /// may not decide, or a failure of the store.
    NotWaiting(ResumeError),
    /// The type of the answer has no usable schema. Contains all problems of the schema.
    Schema(Vec<Problem>),
}

// Text that the model wrote stays out of logs.
impl fmt::Debug for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(calls) => f.debug_tuple("Waiting").field(calls).finish(),
            Self::Stopped { reason, text } => {
                f.debug_struct("Stopped").field("reason", reason).field("bytes", &text.len()).finish_non_exhaustive()
            }
            Self::NotWaiting(error) => f.debug_tuple("NotWaiting").field(error).finish(),
            Self::Schema(problems) => f.debug_tuple("Schema").field(problems).finish(),
        }
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(calls) => write!(f, "{} calls wait for the client or for a person", calls.len()),
            Self::Stopped { reason, .. } => reason.fmt(f),
            Self::NotWaiting(error) => error.fmt(f),
            Self::Schema(problems) => {
                f.write_str("the type of the answer has no usable schema")?;
                problems.iter().try_for_each(|problem| write!(f, "; {problem}"))
            }
        }
    }
}

impl std::error::Error for AnswerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotWaiting(error) => Some(error),
            Self::Schema(problems) => problems.first().map(|problem| problem as _),
            Self::Waiting(_) | Self::Stopped { .. } => None,
        }
    }
}
