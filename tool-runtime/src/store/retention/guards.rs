//! The conditions of removals: legal holds, runs in progress, and time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::ToolInvocationRecord;
use crate::store::{Document, HoldScope, Key, StoreError, StoredRun, Transaction};

/// How many documents are read at a time. The number is small because a run can have a long conversation.
pub(super) const BATCH: usize = 64;

/// A principal and a tenant for which a run acts.
pub(in crate::store) type Party = (Option<Arc<str>>, Option<Arc<str>>);

/// Returns the party of a run.
pub(super) fn party_of(run: &StoredRun) -> Party {
    (run.principal.clone(), run.tenant.clone())
}

/// Returns the run from which a document comes, and the party of the run. `None` for a document that a legal hold does
/// not cover: a mark, an account, or a document by which a server recognizes a repeated call of a client.
pub(in crate::store) fn subject_of(document: &Document) -> Option<(Arc<str>, Party)> {
    let of_record =
        |record: &ToolInvocationRecord| (Arc::clone(&record.run_id), (record.principal.clone(), record.tenant.clone()));
    match document {
        Document::Call(entry) => Some(of_record(&entry.record)),
        Document::Effect(effect) => effect.held.as_ref()?.record.as_deref().map(of_record),
        Document::Grant(grant) => {
            Some((Arc::clone(&grant.origin.run_id), (grant.principal.clone(), grant.tenant.clone())))
        }
        Document::Notice(notice) => {
            Some((Arc::clone(&notice.run_id), (notice.principal.clone(), notice.tenant.clone())))
        }
        Document::Run(run) if !run.is_name() => Some((Arc::clone(&run.run_id), party_of(run))),
        _ => None,
    }
}

/// Returns the keys of the holds that cover a document.
pub(in crate::store) fn holds_on(document: &Document) -> Vec<Key> {
    subject_of(document).map(|(run_id, party)| hold_keys(Some(&run_id), [&party])).unwrap_or_default()
}

/// Returns the keys of the holds that cover a run of these parties.
pub(in crate::store) fn hold_keys<'p>(
    run_id: Option<&Arc<str>>,
    parties: impl IntoIterator<Item = &'p Party>,
) -> Vec<Key> {
    let of_run = run_id.map(|run| HoldScope::Run(Arc::clone(run)));
    let of_parties = parties.into_iter().flat_map(|(principal, tenant)| {
        // A hold on a principal without a tenant covers the principal in every tenant.
        let of_principal = principal.iter().flat_map(|principal| {
            let of = |tenant| HoldScope::Principal { principal: Arc::clone(principal), tenant };
            [of(tenant.clone()), of(None)]
        });
        of_principal.chain(tenant.clone().map(HoldScope::Tenant))
    });
    let mut keys: Vec<_> = of_run.into_iter().chain(of_parties).map(|scope| Key::hold(&scope)).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Returns [`StoreError::OnHold`] if one of these documents has a legal hold.
pub(super) fn refuse_held(transaction: &Transaction, holds: &[Key]) -> Result<(), StoreError> {
    if holds.iter().any(|key| is_held(transaction.get(key))) { Err(StoreError::OnHold) } else { Ok(()) }
}

/// Whether a document has a legal hold.
pub(in crate::store) fn is_held(document: Option<&Document>) -> bool {
    matches!(document, Some(Document::Holds(holds)) if !holds.is_empty())
}

/// Returns the moment that is this long before another one.
pub(super) fn before(now: Timestamp, duration: Duration) -> Timestamp {
    now.saturating_sub(duration).unwrap_or(Timestamp::MIN)
}

/// Whether a process has the run, or there is work to do in it.
pub(super) fn is_in_progress(run: &StoredRun, now: Timestamp) -> bool {
    if run.is_served() {
        // The lease of a server never ends. Its messages are for waiting calls, and a run with a waiting call is kept
        // anyway.
        return run.held_back;
    }
    // The lease of an engine never ends, so its open calls and the time of its last write decide.
    let is_driven = run.is_driven();
    run.held_back || run.posts > 0 || (!is_driven && (run.is_held(now) || run.due.is_some()))
}
