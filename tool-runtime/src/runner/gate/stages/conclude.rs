//! Conclude: delivers an output that passed the allowlist, or suspends the call for its client or for the person that
//! its graph waits for.

use crate::call::{Delivered, JsonText, Outcome, PendingGraph};
use crate::hydrate::Hydrated;
use crate::runner::gate::deliver::deliver;
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::bind::Bound;
use crate::runner::gate::stages::reserve::Reserved;
use crate::runner::gate::stages::run::Left;
use crate::tool::Execution;

/// The next step of a call whose tool ran.
pub(in crate::runner) enum Concluded {
    /// The model gets the output.
    Delivered(Delivered),
    /// The client gets the payload and executes the call.
    NeedsClient(Box<Hydrated>, JsonText),
    /// A graph waits for a person.
    GraphWaits(Box<Hydrated>, Box<PendingGraph>),
}

/// Chooses the next step by the place of execution. A client never gets a truncated payload.
#[inline]
pub(in crate::runner) fn conclude(open: &mut OpenCall, bound: Bound, left: Left) -> Result<Concluded, Stop> {
    let Reserved { hydrated, warning, .. } = bound.reserved;
    let projected = match left {
        Left::Output(projected) => projected,
        Left::Waits(pending) => {
            // Needed if the call then cannot wait, because calls of its graph may have had effects.
            open.has_acted = pending.begun;
            open.had_no_effect();
            return Ok(Concluded::GraphWaits(Box::new(hydrated), pending));
        }
    };
    match hydrated.frozen.entry.spec.execution {
        // A client would execute a truncated payload as if it were complete.
        Execution::Client if !projected.left_out().is_none() => Err(Stop::new(Outcome::ResultTooLarge)),
        // The tool ran here only to prepare the payload; the effect happens at the client.
        Execution::Client => {
            open.had_no_effect();
            Ok(Concluded::NeedsClient(Box::new(hydrated), projected.shown))
        }
        Execution::Server => Ok(Concluded::Delivered(deliver(open.run(), &hydrated.frozen.entry, projected, warning))),
    }
}
