//! What is left in documents when the values that came from a principal are removed.

use crate::call::{JsonText, RecordedArguments, ToolInvocationRecord};
use crate::store::kept;
use crate::store::retention::guards::Party;

/// Whether a record is of a run that acts for a party.
pub(super) fn is_of(record: &ToolInvocationRecord, (principal, tenant): &Party) -> bool {
    record.principal == *principal && record.tenant == *tenant
}

/// Whether nothing is left to remove from the record of a call.
pub(super) fn is_done(record: &ToolInvocationRecord) -> bool {
    record.principal.is_none() && record.result.is_none() && is_nothing(&record.arguments)
}

/// Returns the record of a call without its arguments and its result, for an effect key that keeps its tenant and its
/// principal.
pub(super) fn result(record: &ToolInvocationRecord) -> ToolInvocationRecord {
    ToolInvocationRecord { principal: record.principal.clone(), ..kept::call(record) }
}

/// Whether an effect key keeps neither arguments nor a result.
pub(super) fn has_no_result(record: &ToolInvocationRecord) -> bool {
    record.result.is_none() && is_nothing(&record.arguments)
}

fn is_nothing(arguments: &RecordedArguments) -> bool {
    arguments.shown().is_some_and(|shown| *shown == JsonText::null())
}
