//! A call that this process refuses may have begun in another one, which had the same run.

use crate::call::{Cause, Outcome, ToolExecResult};
use crate::contain::discard;
use crate::runner::ending::{Ending, Stop};
use crate::runner::open::OpenCall;
use crate::runner::state::Taken;
use crate::runner::telemetry;
use crate::tool::ToolEffect;

impl OpenCall {
    /// Whether the ledger may know the call, and was not asked.
    pub(super) fn may_be_known(&self, stop: &Stop) -> bool {
        self.attempt.is_none()
            && !self.draft.executed()
            && self.taken == Taken::First
            && self.draft.effect() != Some(ToolEffect::ReadOnly)
            && stop.outcome != Outcome::OutcomeUnknown
            && self.run.state().is_continued()
    }

    /// What is said of a call that ends. One that is refused before the ledger is asked about it is not said to have
    /// failed, or to be cancelled, while another process may have begun it: then its record is not ours to write.
    pub(super) async fn look(&self, stop: Stop) -> Result<Ending, Stop> {
        match self.run.unfinished_of(&self.draft.id, Some(self.draft.name())).await {
            Ok(false) => Err(stop),
            Ok(true) => {
                let (id, unknown) = (self.draft.id.clone(), Outcome::OutcomeUnknown);
                let result = ToolExecResult::unfinished(id, unknown, true, unknown.safe_message());
                Ok(Ending::Elsewhere(Box::new(result)))
            }
            Err(error) => {
                discard(telemetry::store_unread(&self.run, error));
                Err(if is_certain(stop.outcome) { stop } else { lost() })
            }
        }
    }
}

/// Whether a call could not have begun in any process: what is wrong is in the call itself.
const fn is_certain(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::InvalidJson | Outcome::ValidationError | Outcome::LimitExceeded | Outcome::IncompleteCall
    )
}

/// Nobody can say whether the call began.
fn lost() -> Stop {
    let mut stop = Stop::new(Outcome::OutcomeUnknown);
    stop.cause = Some(Cause::Lost);
    stop
}
