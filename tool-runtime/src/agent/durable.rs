//! [`Durable`]: an engine that keeps what each step of a conversation made, and [`drive`], the loop over it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agent::unit::{Next, Unit};
use crate::agent::{ClientAnswer, Incoming, SavedConversation, WaitingCall};
use crate::call::Suspension;

/// An engine that keeps what each step of a conversation made, so that another process continues after the last one that
/// was kept: a journal of its own, Restate, Temporal.
///
/// Every engine repeats the unit that was cut: it was done, and what it made was not kept. That is safe because of the
/// ledger, so the runner needs a [`Store`](crate::store::Store) that all processes share.
///
/// ```
/// use tool_runtime::agent::{Agent, Durable, Incoming, ScriptedModel, ScriptedTurn, Stepped, Unit, UnitError, drive};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// /// Keeps nothing: every unit is done here and now, and nobody decides anything.
/// struct Now(Agent, ToolRunner);
///
/// impl Durable for Now {
///     type Error = UnitError;
///
///     async fn unit(&mut self, unit: Unit) -> Result<Stepped, UnitError> {
///         unit.perform(&self.0, &self.1, RunOptions::new().run_id("run-1")).await
///     }
///
///     async fn wait(&mut self, _: &Stepped) -> Result<Option<Incoming>, UnitError> {
///         Ok(None)
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let agent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello.")]));
/// let ended = drive(&mut Now(agent, runner), Unit::begin(Incoming::from("Hi!"))).await?;
/// assert_eq!((ended.code(), ended.text()), ("answered", "Hello."));
/// # Ok(()) })
/// # }
/// ```
pub trait Durable: Send {
    /// What ends the loop early: the engine failed, or a unit cannot be done.
    type Error: Send;

    /// Has a unit done, here ([`Unit::perform`]) or elsewhere, and keeps what it made. If a unit was kept in this place
    /// before, returns what was kept, and nothing is done.
    fn unit(&mut self, unit: Unit) -> impl Future<Output = Result<Stepped, Self::Error>> + Send;

    /// Waits until somebody brings something to one of the calls that wait ([`Stepped::waiting`]), or until
    /// [`Stepped::expires_in`] is over, which brings [`Stepped::expired`]. `None` ends the loop: somebody else continues
    /// once there is something.
    fn wait(&mut self, stepped: &Stepped) -> impl Future<Output = Result<Option<Incoming>, Self::Error>> + Send;
}

/// Has one unit after the other done until the conversation ends, or until the engine does not wait any longer.
///
/// It decides by what the units made and by nothing else, so an engine can run it again from its journal.
///
/// # Errors
/// What the engine returns.
pub async fn drive<D: Durable>(durable: &mut D, first: Unit) -> Result<Stepped, D::Error> {
    let mut stepped = durable.unit(first).await?;
    loop {
        let unit = match stepped.next {
            Next::Step => Unit::step(stepped.conversation),
            Next::End => return Ok(stepped),
            Next::Wait { .. } => match durable.wait(&stepped).await? {
                Some(incoming) => Unit::accept(stepped.conversation, incoming),
                None => return Ok(stepped),
            },
        };
        stepped = durable.unit(unit).await?;
    }
}

/// What a unit made: a document that engines keep. It holds the whole conversation, so keep it where clients cannot read
/// or change it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stepped {
    pub(super) code: String,
    pub(super) next: Next,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
    pub(super) conversation: SavedConversation,
}

impl Stepped {
    /// Returns a stable word for what was done: `accepted`, `refused`, `asked`, `ran`, or the code of an
    /// [`Ended`](crate::agent::Ended).
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the answer, or the last text of the model if the conversation stopped; empty before its end.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the conversation as it was then.
    #[must_use]
    pub const fn conversation(&self) -> &SavedConversation {
        &self.conversation
    }

    /// Returns whether there was an end: nothing happens before a new message.
    #[must_use]
    pub const fn is_end(&self) -> bool {
        matches!(self.next, Next::End)
    }

    /// Returns the calls that wait for a client or a person.
    pub fn waiting(&self) -> impl Iterator<Item = &WaitingCall> {
        self.conversation.waiting()
    }

    /// Returns the time after which the first of the calls that wait is too late, as it was when the unit was done. `None`
    /// if none waits.
    #[must_use]
    pub fn expires_in(&self) -> Option<Duration> {
        match self.next {
            Next::Wait { seconds } => seconds.map(Duration::from_secs),
            Next::Step | Next::End => None,
        }
    }

    /// Returns what to bring when that time is over: nobody decided on the calls whose time it is, or no client answered.
    pub fn expired(&self) -> Incoming {
        let first = self.waiting().filter_map(|call| call.expires_at).min();
        let late = self.waiting().filter(|call| call.expires_at == first);
        late.fold(Incoming::new(), |incoming, call| match call.suspension {
            Suspension::Approval => incoming.expire(call.id.clone()),
            Suspension::Client => incoming.answer(ClientAnswer::failed(call.id.clone())),
        })
    }
}

// The conversation and the answer stay out of logs.
impl fmt::Debug for Stepped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stepped").field("code", &self.code).finish_non_exhaustive()
    }
}

/// Why a unit cannot be done.
pub struct UnitError {
    pub(super) code: &'static str,
    pub(super) retryable: bool,
    pub(super) source: Box<dyn Error + Send + Sync>,
}

impl UnitError {
    /// Returns a stable word: that of the error that caused it, or `still_running` if another process still executes a
    /// call of the run.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// Returns whether the same unit may succeed later: the store or the model could not be reached, or another process
    /// still executes a call.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.retryable
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.source, self.code)
    }
}

// What caused it can quote what was stored.
impl fmt::Debug for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, retryable) = (self.code, self.retryable);
        f.debug_struct("UnitError").field("code", &code).field("retryable", &retryable).finish_non_exhaustive()
    }
}

impl Error for UnitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}
