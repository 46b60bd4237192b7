//! Returns documents without the values of a principal.

use crate::call::{JsonText, RecordedArguments, ToolInvocationRecord};
use crate::store::retention::guards::Party;
use crate::store::{Document, kept};
use crate::tool::Hash;

/// Whether a record belongs to a run that acts for a party.
pub(super) fn is_of(record: &ToolInvocationRecord, (principal, tenant): &Party) -> bool {
    record.principal == *principal && record.tenant == *tenant
}

/// Returns the record of a call without its arguments and its result, for an effect key. Its tenant and its principal
/// stay.
pub(super) fn result(record: &ToolInvocationRecord) -> ToolInvocationRecord {
    ToolInvocationRecord { principal: record.principal.clone(), ..kept::call(record) }
}

/// Whether the record of an effect key has neither arguments nor a result.
pub(super) fn has_no_result(record: &ToolInvocationRecord) -> bool {
    record.result.is_none() && is_nothing(&record.arguments)
}

fn is_nothing(arguments: &RecordedArguments) -> bool {
    arguments.shown().is_some_and(|shown| *shown == JsonText::null())
}

/// A document that contained data of a party.
pub(super) enum Without {
    /// The document without the data.
    Changed(Document),
    /// The whole document is removed.
    Nothing,
}

/// Returns a document without the data of a party. `None` if it contains no such data.
pub(super) fn without(document: &Document, party: &Party) -> Option<Without> {
    match document {
        // The run stays open, because other parties use it, too.
        Document::Call(entry) if entry.is_finished() && is_of(&entry.record, party) => {
            let mut entry = entry.clone();
            (*entry.record, entry.waited) = (kept::call(&entry.record), None);
            Some(Without::Changed(Document::Call(entry)))
        }
        Document::Grant(grant) if (&grant.principal, &grant.tenant) == (&party.0, &party.1) => {
            // A grant that covers calls of others is removed as well, because its conditions come from arguments of the
            // principal. Later calls need an approval again.
            Some(Without::Nothing)
        }
        // The sentence of a notice can contain arguments. A notice that is being delivered still arrives.
        Document::Notice(notice) if (&notice.principal, &notice.tenant) == (&party.0, &party.1) => {
            Some(Without::Nothing)
        }
        Document::Effect(effect) => {
            let mut effect = effect.clone();
            let held = effect.held.as_mut()?;
            let record = held.record.as_mut().filter(|record| is_of(record, party))?;
            **record = kept::call(record);
            // The key is a digest of values, and is not needed once the call has ended.
            held.key = Hash([0; 32]);
            Some(Without::Changed(Document::Effect(effect)))
        }
        _ => None,
    }
}
