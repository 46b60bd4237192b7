//! [`Exit`] and [`Failure`]: the exit code and the failure of a command.

use std::process::ExitCode;

use serde::Serialize;
use tool_runtime::Outcome;
use tool_runtime::store::StoreError;

/// The exit code of a command. The order of the variants is by severity, from success to unusable input.
///
/// ```
/// use tool_runtime::Outcome;
/// use tool_runtime_cli::Exit;
///
/// assert_eq!(Exit::of(Outcome::PolicyDenied).code(), 3);
/// assert!(Exit::Denied > Exit::of(Outcome::Ok));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: the command did its work.
    Done,
    /// 6: a call waits for its client.
    ClientRequired,
    /// 5: a call waits for an approval.
    ApprovalRequired,
    /// 4: the arguments are invalid, or exceed a limit on their size or depth.
    Invalid,
    /// 3: the policy, a budget or a person denied a call; a call names a tool that the run does not have; or the
    /// approval came too late or does not fit the call.
    Denied,
    /// 1: the tool, the model or the command failed.
    Failed,
    /// 2: wrong usage, or input, settings, a policy or a store that cannot be used.
    Usage,
}

impl Exit {
    /// Returns the exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
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

    /// Returns the exit for the outcome of a call.
    #[must_use]
    pub const fn of(outcome: Outcome) -> Self {
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

/// Why a command could not do its work. The command line prints it on stderr, with `--json` as one JSON object.
#[derive(Debug)]
pub struct Failure {
    pub(crate) exit: Exit,
    /// The stable code for programs.
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Failure {
    /// Creates a failure for wrong usage or for input that cannot be used: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, code: "usage", message: message.into() }
    }

    /// Creates a failure of the command itself: exit code 1.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, code: "failed", message: message.into() }
    }

    /// Sets the stable code for programs; `usage` or `failed` by default.
    #[must_use]
    pub fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// Sets the exit code for unreadable input, for a command in which exit code 1 has another meaning.
    pub(crate) fn unread(self) -> Self {
        Self { exit: Exit::Usage, ..self }
    }

    /// Returns the failure as `--json` prints it.
    pub(crate) fn to_json(&self) -> String {
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
