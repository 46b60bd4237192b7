//! Recordable: stops a call whose record cannot be kept, under a policy that requires records.

use crate::call::Outcome;
use crate::contain::discard;
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::OpenCall;
use crate::runner::report::telemetry;
use crate::store::RecordFilter;
use crate::store::Store as _;

/// Checks that the store answers, by a read of the call's records. If the store later fails to write the record, the
/// result is withheld.
pub(in crate::runner) async fn recordable(open: &OpenCall) -> Result<(), Stop> {
    let run = open.run();
    // A read replaces a test write, which would leave a record.
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
