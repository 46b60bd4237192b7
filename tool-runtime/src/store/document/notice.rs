//! [`StoredNotice`]: a notice about a call, and its deliveries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::CallId;
use crate::store::document::Holder;

/// A notice about a call, for a webhook: its payload, and the attempts to deliver it.
///
/// The policy's table `notices` enables notices, and the transaction that changes a call writes them. A
/// `tool_runtime::agent::http::Notifier` (feature `http`) sends them. The store's sweep removes a notice a week after
/// it was delivered or given up. If no process sends a notice, the sweep removes it a week after it was written or last
/// tried.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::store::{MemoryStore, Store, StoredNotice};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// for notice in StoredNotice::all(&*store, None).await?.into_iter().flatten() {
///     println!("{} {} {}", notice.id, notice.event, notice.state());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StoredNotice {
    /// The id of the notice, which every attempt sends as `webhook-id`.
    pub id: Arc<str>,
    /// The event: `call.waiting`, `call.decided`, `call.expired` or `call.unknown`.
    pub event: Arc<str>,
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The id of the call.
    pub call_id: CallId,
    /// The tool.
    pub tool: Arc<str>,
    /// The principal that the run acts for. `None` if the run has no principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<str>>,
    /// The tenant of the run. `None` if the run has no tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Arc<str>>,
    /// When the event happened.
    pub created_at: Timestamp,
    /// When the notice is sent next. `None` if it was delivered or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// The bytes that are signed and sent.
    pub(crate) payload: Arc<str>,
    /// The time from which a notice that no process sends is kept for a week: its creation, the start of the last
    /// attempt, or the last request to send it again.
    pub(crate) since: Timestamp,
    /// How many attempts began since the last request to send the notice again, or in all if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) tried: u32,
    /// The process that is sending the notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<Holder>,
    /// When the notice was delivered or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Timestamp>,
    /// The last attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attempts: Vec<NoticeAttempt>,
    /// When a sweep last found the notice expired but under a legal hold, so that it stays for another week. `None`
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on_hold: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An attempt to deliver a notice.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoticeAttempt {
    /// When the attempt began.
    pub(crate) at: Timestamp,
    /// The HTTP status of the answer. `None` if no answer came in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// The code of the failure. `None` if the notice was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<Arc<str>>,
}

/// How long a notice is kept after its end, or if no process sends it.
const KEPT: Duration = Duration::from_secs(7 * 86_400);

impl StoredNotice {
    /// Returns `pending`, `delivered` or `given_up`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match (self.next, self.attempts.last()) {
            (Some(_), _) => "pending",
            (None, Some(NoticeAttempt { code: None, .. })) => "delivered",
            (None, _) => "given_up",
        }
    }

    /// Returns the last 32 attempts to deliver the notice, oldest first: when the attempt began, the HTTP status of the
    /// answer (`None` if no answer came in time), and the reason of a failure.
    ///
    /// The reason is `connect`, `timeout`, `redirect` (a 3xx status), `gone` (status 410), `status` (any other status
    /// that is not 2xx), or `interrupted` (the process ended or could not record the result, and the time is the end of
    /// its lease). `None` if the notice was delivered.
    #[must_use]
    pub fn attempts(&self) -> impl ExactSizeIterator<Item = (Timestamp, Option<u16>, Option<&str>)> {
        self.attempts.iter().map(|attempt| (attempt.at, attempt.status, attempt.code.as_deref()))
    }

    /// Returns the payload: the JSON text that is signed and sent.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// Returns when a process may send the notice. Once it was delivered or given up, returns when it may be removed.
    pub(in crate::store) fn due(&self) -> Timestamp {
        let until = self.holder.as_ref().map_or(Timestamp::MIN, |holder| holder.until);
        self.next.map_or_else(|| self.over(), |next| next.max(until))
    }

    /// Returns when the notice may be removed.
    pub(in crate::store) fn over(&self) -> Timestamp {
        let from = self.ended_at.unwrap_or(self.since).max(self.on_hold.unwrap_or(Timestamp::MIN));
        from.saturating_add(KEPT).unwrap_or(Timestamp::MAX)
    }
}

// The payload can contain arguments, so `Debug` omits it.
impl fmt::Debug for StoredNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredNotice")
            .field("id", &self.id)
            .field("event", &self.event)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
