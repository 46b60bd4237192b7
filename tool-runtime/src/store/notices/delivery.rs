//! The deliveries of a notice. One process at a time has the notice, and each attempt is recorded.

use std::sync::Arc;
use std::time::Duration;

use crate::store::document::Holder;
use crate::store::ledger::after;
use crate::store::{Document, Key, NoticeAttempt, StoreError, StoredNotice, Transaction};

/// The waits after failed attempts. If the attempt after the last wait fails, the notice is given up.
pub(crate) const WAITS: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(5 * 3600),
    Duration::from_secs(10 * 3600),
    Duration::from_secs(14 * 3600),
    Duration::from_secs(20 * 3600),
    Duration::from_secs(24 * 3600),
];

/// The maximum number of attempts that a notice lists. A person can request more attempts.
const LISTED: usize = 32;

/// The result of an attempt to deliver a notice.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) attempt: NoticeAttempt,
    /// The wait before the next attempt. `None` after a delivery, or if no other attempt follows.
    pub(crate) wait: Option<Duration>,
}

/// The code of an attempt whose result is unknown.
const INTERRUPTED: &str = "interrupted";

/// Leases a due notice to a process for one attempt, so that no other process sends it meanwhile. `None` if the notice
/// is not due.
pub(crate) fn claim(
    transaction: &mut Transaction,
    key: &Key,
    owner: &Arc<str>,
    lease: Duration,
) -> Result<Option<StoredNotice>, StoreError> {
    let now = transaction.now();
    let Some(Document::Notice(notice)) = transaction.get(key) else { return Ok(None) };
    if notice.next.is_none() || now < notice.due() {
        return Ok(None);
    }
    let mut notice = (**notice).clone();
    if let Some(holder) = notice.holder.take() {
        // The process of the last attempt did not record the result. The receiver may have the notice.
        let at = holder.until.min(now);
        list(&mut notice, NoticeAttempt { at, status: None, code: Some(INTERRUPTED.into()) });
    }
    let tried = usize::try_from(notice.tried).unwrap_or(usize::MAX);
    if tried > WAITS.len() {
        (notice.next, notice.ended_at) = (None, Some(now));
        transaction.set(key, Document::Notice(Box::new(notice)))?;
        return Ok(None);
    }
    // If the process ends before it records the result, the next attempt comes after the wait that follows a failure.
    notice.next = Some(after(now, WAITS.get(tried).copied().unwrap_or_default()));
    notice.since = now;
    notice.tried += 1;
    notice.holder = Some(Holder { owner: Arc::clone(owner), until: after(now, lease) });
    transaction.set(key, Document::Notice(Box::new(notice.clone())))?;
    Ok(Some(notice))
}

/// Records the result of an attempt. Nothing is recorded if the lease has ended and another process has the notice.
pub(crate) fn settle(
    transaction: &mut Transaction,
    key: &Key,
    owner: &Arc<str>,
    tried: &Tried,
) -> Result<(), StoreError> {
    let now = transaction.now();
    let Some(Document::Notice(notice)) = transaction.get(key) else { return Ok(()) };
    if notice.holder.as_ref().is_none_or(|holder| holder.owner != *owner) {
        return Ok(());
    }
    let mut notice = (**notice).clone();
    notice.holder = None;
    notice.next = tried.wait.map(|wait| after(now, wait));
    notice.ended_at = notice.next.is_none().then_some(now);
    list(&mut notice, tried.attempt.clone());
    transaction.set(key, Document::Notice(Box::new(notice)))
}

/// Adds an attempt to the list.
fn list(notice: &mut StoredNotice, attempt: NoticeAttempt) {
    notice.attempts.push(attempt);
    let dropped = notice.attempts.len().saturating_sub(LISTED);
    notice.attempts.drain(..dropped);
}
