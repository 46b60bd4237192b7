//! What is left in documents when the values that came from a principal are removed.

use std::sync::Arc;

use crate::call::{JsonText, RecordedArguments, ToolInvocationRecord};
use crate::store::retention::guards::Party;
use crate::store::{Document, kept};
use crate::tool::Hash;

/// Whether a record is of a run that acts for a party.
pub(super) fn is_of(record: &ToolInvocationRecord, (principal, tenant): &Party) -> bool {
    record.principal == *principal && record.tenant == *tenant
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

/// Returns the run that a document came from.
pub(super) fn run_of(document: &Document) -> Option<Arc<str>> {
    match document {
        Document::Call(entry) => Some(Arc::clone(&entry.record.run_id)),
        Document::Grant(grant) => Some(Arc::clone(&grant.origin.run_id)),
        Document::Effect(effect) => effect.held.as_ref().map(|held| Arc::clone(&held.run_id)),
        Document::Notice(notice) => Some(Arc::clone(&notice.run_id)),
        _ => None,
    }
}

/// A document that had data of a party.
pub(super) enum Without {
    /// The document without the data.
    Changed(Document),
    /// Nothing of it stays.
    Nothing,
}

/// Returns a document without the data of a party. `None` if it has none.
pub(super) fn without(document: &Document, party: &Party) -> Option<Without> {
    match document {
        // Of a run that other parties use, too: it stays open.
        Document::Call(entry) if entry.is_finished() && is_of(&entry.record, party) => {
            let mut entry = entry.clone();
            (*entry.record, entry.waited) = (kept::call(&entry.record), None);
            Some(Without::Changed(Document::Call(entry)))
        }
        Document::Grant(grant) if (&grant.principal, &grant.tenant) == (&party.0, &party.1) => {
            // Also one that covers calls of others: its conditions come from arguments of the principal. Later calls
            // need an approval again.
            Some(Without::Nothing)
        }
        // Its sentence can contain arguments. One that is being delivered now still arrives.
        Document::Notice(notice) if (&notice.principal, &notice.tenant) == (&party.0, &party.1) => {
            Some(Without::Nothing)
        }
        Document::Effect(effect) => {
            let mut effect = effect.clone();
            let held = effect.held.as_mut()?;
            let record = held.record.as_mut().filter(|record| is_of(record, party))?;
            **record = kept::call(record);
            // It is a digest of values, and of no use once the call has ended.
            held.key = Hash([0; 32]);
            Some(Without::Changed(Document::Effect(effect)))
        }
        _ => None,
    }
}
