//! [`RecordFilter`]: conditions on the records to read.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::{CallId, Decider, ToolInvocationRecord};
use crate::store::audit::AuditRecord;

/// Conditions on the records to read. Without conditions, all records are read. A record has to meet every condition
/// that is set.
///
/// ```
/// use tool_runtime::store::{MemoryStore, RecordFilter, Store};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let filter = RecordFilter {
///     principal: Some("ada".into()),
///     decisions: Some(true),
///     limit: Some(100),
///     ..RecordFilter::default()
/// };
/// let first = store.records(&filter).await?;
/// if let Some(last) = first.last() {
///     let next = store.records(&RecordFilter { after: last.position, ..filter }).await?;
/// #   drop(next);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordFilter {
    /// Records of this run.
    pub run_id: Option<Arc<str>>,
    /// The record of this call, and the decisions on it.
    pub call_id: Option<CallId>,
    /// `Some(true)` for decisions only, `Some(false)` for calls only.
    pub decisions: Option<bool>,
    /// Records of this tool's calls, and the decisions on them.
    pub tool: Option<Arc<str>>,
    /// Records with this [`AuditRecord::code`]: an outcome, a decision, or the act of a retention record.
    pub code: Option<Arc<str>>,
    /// Records of runs that act for this principal.
    pub principal: Option<Arc<str>>,
    /// Records of runs of this tenant.
    pub tenant: Option<Arc<str>>,
    /// Decisions by this principal.
    pub decider: Option<Arc<str>>,
    /// Records whose [`AuditRecord::at`] is at or after this time. Times are compared in whole microseconds.
    pub since: Option<Timestamp>,
    /// Records whose [`AuditRecord::at`] is before this time.
    pub until: Option<Timestamp>,
    /// Records after this [`SealedRecord::position`](crate::store::SealedRecord::position).
    pub after: u64,
    /// The maximum number of records. `None` for all.
    pub limit: Option<usize>,
}

impl RecordFilter {
    /// Creates a filter for the records of one call.
    #[must_use]
    pub fn call(run_id: impl Into<Arc<str>>, call_id: CallId) -> Self {
        Self { run_id: Some(run_id.into()), call_id: Some(call_id), ..Self::default() }
    }

    /// Creates a filter for the records of one run.
    #[must_use]
    pub fn run(run_id: impl Into<Arc<str>>) -> Self {
        Self { run_id: Some(run_id.into()), ..Self::default() }
    }

    /// Whether a record meets every condition, except those for paging, `after` and `limit`.
    #[must_use]
    pub fn matches(&self, record: &AuditRecord) -> bool {
        match record {
            AuditRecord::Call(record) => self.matches_call(record),
            AuditRecord::Decision(record) => {
                self.decisions != Some(false)
                    && self.is_of(&record.run_id, &record.call_id)
                    && is(self.tool.as_deref(), Some(record.tool.as_str()))
                    && is(self.code.as_deref(), Some(record.decision.code()))
                    && self.acts_for(record.principal.as_deref(), record.tenant.as_deref())
                    && is(self.decider.as_deref(), record.decider.as_ref().map(Decider::principal))
                    && self.is_in(record.at)
            }
            AuditRecord::Retention(retention) => {
                self.decisions.is_none()
                    && self.is_of(&retention.run_id, record.call_id())
                    && is(self.tool.as_deref(), Some(record.tool()))
                    && is(self.code.as_deref(), Some(retention.code()))
                    && self.acts_for(
                        record.principal().map(|principal| &**principal),
                        record.tenant().map(|tenant| &**tenant),
                    )
                    && self.decider.is_none()
                    && self.is_in(retention.at)
            }
            AuditRecord::Erased(record) => self.matches(record),
        }
    }

    /// Whether the open or closed record of a call meets every condition, except those for paging.
    pub(super) fn matches_call(&self, record: &ToolInvocationRecord) -> bool {
        self.is_of(&record.run_id, &record.tool_call_id)
            && self.decisions != Some(true)
            && self.decider.is_none()
            && is(self.tool.as_deref(), Some(&record.name))
            && is(self.code.as_deref(), Some(record.outcome.code()))
            && self.acts_for(record.principal.as_deref(), record.tenant.as_deref())
            && self.is_in(record.ended_at.unwrap_or(record.started_at))
    }

    fn is_of(&self, run_id: &Arc<str>, call_id: &CallId) -> bool {
        self.run_id.as_ref().is_none_or(|wanted| wanted == run_id)
            && self.call_id.as_ref().is_none_or(|wanted| wanted == call_id)
    }

    fn acts_for(&self, principal: Option<&str>, tenant: Option<&str>) -> bool {
        is(self.principal.as_deref(), principal) && is(self.tenant.as_deref(), tenant)
    }

    fn is_in(&self, at: Timestamp) -> bool {
        let at = at.as_microsecond();
        self.since.is_none_or(|since| since.as_microsecond() <= at)
            && self.until.is_none_or(|until| at < until.as_microsecond())
    }
}

fn is(wanted: Option<&str>, word: Option<&str>) -> bool {
    wanted.is_none() || wanted == word
}
