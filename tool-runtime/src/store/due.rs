//! [`DueRun`] and [`QueueDepth`]: the list and the count of the runs that workers share, without their texts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::store::lane::tenant_of;
use crate::store::{DocumentKind, Query, Store, StoreError, StoredDocument};

/// A run that workers share, in the list of due runs, without its text.
///
/// ```
/// use tool_runtime::store::{Key, MemoryStore, Store, StoredDocument, Transaction};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let run = StoredDocument::example("run-1", "{}", Some("2026-01-01T00:00:00Z".parse()?));
/// let put = move |transaction: &mut Transaction| transaction.put(run.clone());
/// store.update(vec![Key::run("run-1")], Box::new(put)).await?;
///
/// let now = store.now().await?;
/// let due = store.due_runs(now, None, 16).await?;
/// assert_eq!((&*due[0].run_id, due.len()), ("run-1", 1));
/// // The lanes after this one.
/// assert!(store.lanes(now, &due[0].lane, 16).await?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRun {
    /// The run.
    pub run_id: Arc<str>,
    /// The lane of the run ([`StoredDocument::lane`]).
    pub lane: Arc<str>,
    /// The time from which a worker may take the run.
    pub due: Timestamp,
}

/// How many runs wait for workers, and for how long they have waited.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::agent::RunQueue;
/// use tool_runtime::store::MemoryStore;
/// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all());
/// let runner = runner.store(Arc::new(MemoryStore::new())).build()?;
/// let depth = RunQueue::new(&runner).depth().await?;
/// assert_eq!((depth.due, depth.oldest, depth.leased, depth.waiting), (0, None, 0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// The number of runs that are due and under no lease. It includes runs that workers may not take because of their
    /// version or their tenant's limit. A database leaves out runs that the migration of its tables could not read.
    pub due: u64,
    /// How long the oldest due run has been due. `None` if no run is due.
    pub oldest: Option<Duration>,
    /// The number of runs that are under a lease.
    pub leased: u64,
    /// The number of runs that become due later, when a waiting call expires or a failed step is retried.
    pub waiting: u64,
}

impl QueueDepth {
    /// Counts one run. `due` is the time from which it is due, `leased_until` the end of its lease.
    fn add(&mut self, now: Timestamp, due: Timestamp, leased_until: Option<Timestamp>) {
        if due <= now {
            self.due += 1;
            let age = now.duration_since(due).unsigned_abs();
            self.oldest = Some(self.oldest.map_or(age, |oldest| oldest.max(age)));
        } else if leased_until.is_some_and(|until| now < until) {
            self.leased += 1;
        } else {
            self.waiting += 1;
        }
    }

    /// Counts these runs.
    pub(super) fn of<'d>(now: Timestamp, runs: impl IntoIterator<Item = &'d StoredDocument>) -> Self {
        let mut depth = Self::default();
        for document in runs {
            if let Some(due) = document.due() {
                depth.add(now, due, document.leased_until());
            }
        }
        depth
    }
}

impl StoredDocument {
    /// Returns the run for the list of due runs. `None` for other documents, and for a run that has no due time.
    pub(super) fn due_run(&self) -> Option<DueRun> {
        Some(DueRun { run_id: Arc::clone(self.key.scope()), lane: self.lane()?, due: self.due()? })
    }
}

/// The default implementation of [`Store::due_runs`], which reads all due runs.
pub(super) async fn due_runs<S: Store + ?Sized>(
    store: &S,
    now: Timestamp,
    lane: Option<&str>,
    limit: usize,
) -> Result<Vec<DueRun>, StoreError> {
    let mut runs = Vec::new();
    let mut query = Query { due: Some(now), ..Query::new(DocumentKind::Run) };
    while let Some(page) = query.next_page(store).await? {
        let listed = page.iter().filter_map(StoredDocument::due_run);
        runs.extend(listed.filter(|run| lane.is_none_or(|lane| *run.lane == *lane)));
    }
    runs.sort_by_key(|run| run.due);
    runs.truncate(limit);
    Ok(runs)
}

/// The default implementation of [`Store::lanes`], which reads all due runs.
pub(super) async fn lanes<S: Store + ?Sized>(
    store: &S,
    now: Timestamp,
    after: &str,
    limit: usize,
) -> Result<Vec<DueRun>, StoreError> {
    let mut lanes: BTreeMap<Arc<str>, DueRun> = BTreeMap::new();
    let mut query = Query { due: Some(now), ..Query::new(DocumentKind::Run) };
    while let Some(page) = query.next_page(store).await? {
        for run in page.iter().filter_map(StoredDocument::due_run).filter(|run| *run.lane > *after) {
            let first = lanes.entry(Arc::clone(&run.lane)).or_insert_with(|| run.clone());
            if run.due < first.due {
                *first = run;
            }
        }
    }
    Ok(lanes.into_values().take(limit).collect())
}

/// The default implementation of [`Store::depth`], which reads all runs.
pub(super) async fn depth<S: Store + ?Sized>(
    store: &S,
    now: Timestamp,
    tenant: Option<&str>,
) -> Result<QueueDepth, StoreError> {
    let (mut depth, mut query) = (QueueDepth::default(), Query::new(DocumentKind::Run));
    while let Some(page) = query.next_page(store).await? {
        for document in &page {
            let Some(run) = document.due_run() else { continue };
            if tenant.is_none_or(|tenant| tenant_of(&run.lane) == tenant) {
                depth.add(now, run.due, document.leased_until());
            }
        }
    }
    Ok(depth)
}
