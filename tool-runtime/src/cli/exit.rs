//! Exit codes, and the failure that a command ends with.

use std::process::ExitCode;

use serde::Serialize;

use crate::call::Outcome;
use crate::store::StoreError;

/// How a command ended. The order is the order of gravity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Done,
    ClientRequired,
    ApprovalRequired,
    Invalid,
    Denied,
    Failed,
    Usage,
}

impl Exit {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Denied => 3,
            Self::Invalid => 4,
            Self::ApprovalRequired => 5,
            Self::ClientRequired => 6,
        }
    }

    /// The exit for the outcome of a call.
    pub(super) const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Done,
            Outcome::ClientRequired => Self::ClientRequired,
            Outcome::ApprovalRequired => Self::ApprovalRequired,
            Outcome::InvalidJson | Outcome::ValidationError | Outcome::LimitExceeded => Self::Invalid,
            Outcome::Unavailable
            | Outcome::PolicyDenied
            | Outcome::ApprovalDenied
            | Outcome::ApprovalMismatch
            | Outcome::ApprovalExpired
            | Outcome::BudgetExceeded => Self::Denied,
            Outcome::InstantiateFailed
            | Outcome::IncompleteCall
            | Outcome::ConnectionUnavailable
            | Outcome::ConnectionFailed
            | Outcome::Timeout
            | Outcome::OutcomeUnknown
            | Outcome::Cancelled
            | Outcome::ExecutionError
            | Outcome::Panicked
            | Outcome::OutputInvalid
            | Outcome::RedactionFailed
            | Outcome::ResultTooLarge => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// A command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(super) exit: Exit,
    /// A stable word for programs.
    pub(super) code: &'static str,
    pub(crate) message: String,
}

impl Failure {
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, code: "usage", message: message.into() }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, code: "failed", message: message.into() }
    }

    /// The same failure under a more telling code.
    pub(super) fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// The failure as `--json` prints it.
    pub(super) fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            error: Error<'a>,
        }
        #[derive(Serialize)]
        struct Error<'a> {
            code: &'a str,
            message: &'a str,
        }
        let document = Document { error: Error { code: self.code, message: &self.message } };
        serde_json::to_string(&document).unwrap_or_default()
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::failed(error.to_string()).code(error.code())
    }
}
