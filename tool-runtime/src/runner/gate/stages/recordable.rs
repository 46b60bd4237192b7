//! Recordable: with a policy that requires records, a call does not run if no record of it can be kept.

use crate::call::Outcome;
use crate::contain::discard;
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::OpenCall;
use crate::runner::report::telemetry;
use crate::store::RecordFilter;

/// Asks the store for the records of the call, where the policy wants one of each: a store that can be read may still keep
/// nothing, and then the result is withheld.
pub(in crate::runner) async fn recordable(open: &OpenCall) -> Result<(), Stop> {
    let run = open.run();
    let filter = RecordFilter { limit: Some(1), ..RecordFilter::call(run.id(), open.draft.id.clone()) };
    match run.shared().store.records(&filter).await {
        Ok(_) => Ok(()),
        Err(error) => {
            telemetry::not_entered(run, &open.draft, &error);
            discard(error);
            Err(Stop::new(Outcome::Cancelled).message("No record of this call could be kept. It did not run."))
        }
    }
}
