//! [`Decision`] and [`By`]: a person's decision or a client's answer, and who made it.

use std::time::Duration;

use clap::Args;
use tool_runtime::Outcome;
use tool_runtime::runner::ApprovalDecision;

use crate::exit::Exit;
use crate::session::DeciderArgs;
use crate::values;

/// The decider, and the time to wait for the result of the call.
#[derive(Debug, Args)]
pub(crate) struct By {
    #[command(flatten)]
    pub(crate) who: DeciderArgs,
    /// For a run of the store: wait this long for its worker, for example 30s, and exit with the code of the call
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) wait: Option<Duration>,
}

/// A person's decision, or a client's answer.
pub(super) enum Decision {
    Approval(ApprovalDecision),
    /// The result of the call, from a person or the client.
    Answer(String),
}

impl Decision {
    pub(super) const fn denies(&self) -> bool {
        matches!(self, Self::Approval(ApprovalDecision::Deny(_)))
    }
}

/// Returns the exit for a decided call. A denial that took effect is [`Exit::Done`].
pub(super) const fn exit_of(denies: bool, outcome: Outcome) -> Exit {
    if denies && matches!(outcome, Outcome::ApprovalDenied) { Exit::Done } else { Exit::of(outcome) }
}
