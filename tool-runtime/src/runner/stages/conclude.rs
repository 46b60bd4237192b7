//! Conclude: delivers a projected output, or suspends the call for its client.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::call::Delivered;
use crate::hydrate::Hydrated;
use crate::runner::deliver::deliver;
use crate::runner::open::OpenCall;
use crate::runner::stages::run::Ran;
use crate::tool::Execution;

/// The output goes to the model, or the prepared payload of a client tool to the client.
pub(in crate::runner) enum Concluded {
    Delivered(Delivered),
    NeedsClient(Box<Hydrated>, Arc<RawValue>),
}

/// Decides by where the tool executes.
pub(in crate::runner) fn conclude(open: &mut OpenCall, ran: Ran) -> Concluded {
    let Ran { hydrated, projected, warning } = ran;
    match hydrated.entry.spec.execution {
        Execution::Client => {
            open.had_no_effect();
            Concluded::NeedsClient(Box::new(hydrated), projected.shown)
        }
        Execution::Server => Concluded::Delivered(deliver(open.run(), &hydrated.entry, projected, warning)),
    }
}
