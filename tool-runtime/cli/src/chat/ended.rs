//! Converts the end of a turn to an exit code and to text.

use tool_runtime::agent::{StopReason, TurnOutcome};
use tool_runtime::call::Suspension;
use tool_runtime::runner::ResumeError;

use crate::exit::{Exit, Failure};
use crate::terminal;

/// Returns the exit for the end of a turn.
pub(super) fn exit(ended: &TurnOutcome) -> Exit {
    match ended {
        TurnOutcome::Answered { .. } => Exit::Done,
        TurnOutcome::Waiting { calls } if calls.iter().any(|call| call.suspension == Suspension::Approval) => {
            Exit::ApprovalRequired
        }
        TurnOutcome::Waiting { .. } => Exit::ClientRequired,
        TurnOutcome::Stopped { reason, .. } => match reason {
            StopReason::AskUser => Exit::Invalid,
            StopReason::Budget(_) => Exit::Denied,
            _ => Exit::Failed,
        },
        _ => Exit::Failed,
    }
}

pub(super) fn report(reason: &StopReason) {
    terminal::message(&format!("{} {reason}", terminal::tone(terminal::Tone::Bad, "error:")));
    if let StopReason::Model(error) = reason {
        terminal::message(&format!("  {}", terminal::safe(error.detail())));
        if error.code() == "model_unreachable" {
            terminal::note("  check that the server runs and that the URL (`--model-url`) is right");
        }
    }
    if let StopReason::Incomplete { error: Some(error), .. } = reason
        && let Some(text) = &error.message
    {
        terminal::message(&format!("  {}", terminal::safe(text)));
    }
}

impl From<&ResumeError> for Failure {
    fn from(error: &ResumeError) -> Self {
        let exit = if matches!(error, ResumeError::NotAllowed(_)) { Exit::Denied } else { Exit::Failed };
        Self { exit, code: error.code(), message: error.to_string() }
    }
}

/// Returns the failure for a conversation or a run that cannot be restored.
pub(crate) fn unrestored(error: &ResumeError) -> Failure {
    let exit = if matches!(error, ResumeError::OtherPrincipal) { Exit::Denied } else { Exit::Failed };
    Failure { exit, code: error.code(), message: format!("the conversation cannot be continued: {error}") }
}
