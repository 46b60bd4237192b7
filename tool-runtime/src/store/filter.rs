//! [`RecordFilter`]: which records to read.

use std::sync::Arc;

use crate::call::{CallId, ToolInvocationRecord};
use crate::store::audit::AuditRecord;

/// Which records to read. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordFilter {
    /// Of this run.
    pub run_id: Option<Arc<str>>,
    /// Of this call, and of what was decided on it.
    pub call_id: Option<CallId>,
    /// How many to leave out at the front, after the other conditions.
    pub skip: usize,
    /// How many at most.
    pub limit: Option<usize>,
}

impl RecordFilter {
    /// The records of one call.
    #[must_use]
    pub fn call(run_id: impl Into<Arc<str>>, call_id: CallId) -> Self {
        Self { run_id: Some(run_id.into()), call_id: Some(call_id), ..Self::default() }
    }

    /// The records of one run.
    #[must_use]
    pub fn run(run_id: impl Into<Arc<str>>) -> Self {
        Self { run_id: Some(run_id.into()), ..Self::default() }
    }

    /// Whether a record meets the conditions on run and call.
    #[must_use]
    pub fn matches(&self, record: &AuditRecord) -> bool {
        self.is_of(record.run_id(), record.call_id())
    }

    pub(super) fn matches_call(&self, record: &ToolInvocationRecord) -> bool {
        self.is_of(&record.run_id, &record.tool_call_id)
    }

    fn is_of(&self, run_id: &Arc<str>, call_id: &CallId) -> bool {
        self.run_id.as_ref().is_none_or(|wanted| wanted == run_id)
            && self.call_id.as_ref().is_none_or(|wanted| wanted == call_id)
    }
}
