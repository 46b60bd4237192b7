//! [`RetentionReport`]: the result of a purge or an erasure.

use std::sync::Arc;

use crate::store::Finding;

/// The maximum number of kept runs that a report names.
const MOST_KEPT: usize = 1000;

/// The result of a purge or an erasure: the counts of removed data, and the runs that were kept.
///
/// [`Retention`](crate::store::Retention) has an example.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetentionReport {
    /// How many runs were purged, or contained data that was erased.
    pub runs: u64,
    /// How many records were removed, or erased.
    pub records: u64,
    /// How many other documents were removed or erased: grants, notices, results that effect keys keep, calls in runs
    /// that stay open for other principals, and documents by which a server recognizes a repeated call of a client.
    pub documents: u64,
    /// The first 1,000 runs that were kept, each with the reason. A purge names only runs that were old enough. The
    /// reasons are `legal_hold`; `in_progress` (a call is open or waits, a process has the run, or the run is due now
    /// or later, has unreceived messages or was held back); `unsettled` (the outcome of a call is unknown); `broken`
    /// (its chain does not verify, and a removal would hide that, or a document of the run cannot be read);
    /// `many_parties` (its records belong to more than 64 principals or tenants); `not_erasable` (an earlier version
    /// sealed some of its records in one part, and only a purge can remove these). An effect or a grant that cannot be
    /// read is named by the [owner](crate::store::Key::scope) of the document, because only its text names the run.
    pub kept: Vec<(Arc<str>, &'static str)>,
    /// How many runs were kept for one of these reasons. Exact up to 1,000, and then an upper limit: of the runs that
    /// are not named, one that is found again is counted again.
    pub kept_runs: u64,
}

impl RetentionReport {
    /// Adds the run of a defect to the kept runs, because its removal would hide the defect.
    pub(super) fn keep_broken(&mut self, finding: &Finding) {
        if let Some(run_id) = finding.scope() {
            self.keep(run_id, "broken");
        }
    }

    pub(super) fn keep(&mut self, run_id: &Arc<str>, why: &'static str) {
        if self.kept.iter().any(|(kept, _)| kept == run_id) {
            return;
        }
        self.kept_runs += 1;
        if self.kept.len() < MOST_KEPT {
            self.kept.push((Arc::clone(run_id), why));
        }
    }
}
