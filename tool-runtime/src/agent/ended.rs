//! [`Ended`]: how a turn of a conversation ended.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::agent::ModelError;
use crate::call::CallId;
use crate::policy::BudgetExceeded;
use crate::store::Suspension;
use crate::wire::{Finish, WireError};

/// How a turn of a conversation ended. The history is one that every provider accepts, whatever it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ended {
    /// The model answered.
    Answered {
        /// Its text.
        text: String,
    },
    /// Calls wait for the client or for a person. Their siblings' results are kept.
    Waiting {
        /// Those that wait, in the order of the model.
        calls: Vec<WaitingCall>,
    },
    /// The turn ended before there was an answer.
    Stopped {
        /// Why.
        reason: StopReason,
        /// What the model wrote last, as far as it came.
        text: String,
    },
}

impl Ended {
    /// The stable word that the `done` event carries.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Waiting { calls } if calls.iter().any(|call| call.suspension == Suspension::Client) => {
                "client_required"
            }
            Self::Waiting { .. } => "approval_required",
            Self::Stopped { reason, .. } => reason.code(),
        }
    }
}

/// A call that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitingCall {
    /// The id of the call.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// Whom it waits for.
    pub suspension: Suspension,
    /// What the client is to execute, prepared by the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Arc<RawValue>>,
}

/// Why a turn ended without an answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum StopReason {
    /// The model asked for more turns than the agent allows.
    TurnLimit,
    /// Tokens or cost of the run are used up.
    Budget(BudgetExceeded),
    /// The model got one tool's arguments wrong three turns running: the user has to help.
    AskUser,
    /// The model gave no answer.
    Model(ModelError),
    /// The answer broke off, was filtered or refused.
    Incomplete {
        /// How it ended.
        finish: Finish,
        /// What broke it off.
        error: Option<WireError>,
    },
    /// The run was cancelled.
    Cancelled,
}

impl StopReason {
    /// A stable word.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TurnLimit => "turn_limit",
            Self::Budget(exceeded) => exceeded.code(),
            Self::AskUser => "ask_user",
            Self::Model(error) => error.code(),
            Self::Incomplete { finish, .. } => match finish {
                Finish::Length => "length",
                Finish::ContentFilter => "content_filter",
                Finish::Refusal => "refusal",
                Finish::Truncated => "truncated",
                Finish::Pause => "pause",
                Finish::Error | Finish::ToolCalls | Finish::Stop => "model_error",
            },
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TurnLimit => f.write_str("the model asked for more turns than allowed"),
            Self::Budget(exceeded) => exceeded.fmt(f),
            Self::AskUser => f.write_str("the model got the same tool's arguments wrong again and again; say it again"),
            Self::Model(error) => error.fmt(f),
            Self::Incomplete { error: Some(error), .. } => error.fmt(f),
            Self::Incomplete { finish, error: None } => f.write_str(match finish {
                Finish::Length => "the answer was cut off at the output limit",
                Finish::ContentFilter => "a filter of the provider stopped the answer",
                Finish::Refusal => "the model refused",
                Finish::Pause => "the provider paused the turn without a result",
                _ => "the answer broke off",
            }),
            Self::Cancelled => f.write_str("the run was cancelled"),
        }
    }
}

/// No call of this conversation waits for this answer; nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotWaiting {
    /// The id that was answered.
    pub id: CallId,
}

impl NotWaiting {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        "not_pending"
    }
}

impl fmt::Display for NotWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no call of this conversation waits for such an answer; it may have been given already")
    }
}

impl std::error::Error for NotWaiting {}
