//! [`Worker`]: continues the conversations that are queued in a store.

mod decide;
mod lease;
mod leased;
mod post;
mod queue;
mod tenant_rotation;
mod worker_run;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Level;

pub use leased::LeasedRun;
pub use queue::RunQueue;

use crate::agent::Agent;
use crate::runner::{LeaseTime, METRICS, RunOptions, ToolRunner};
use crate::store::runs::Taker;
use crate::store::{Document, DocumentKind, Key, POLL, RunLease, Store, StoreError, StoredRun, Transaction, transact};
use tenant_rotation::TenantRotation;

/// The interval at which the records of all runs are anchored (the hash of the last record of each run with new records
/// is stored, so that a later removal is detected), and obsolete documents are removed.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// The maximum of [`Worker::runs_per_tenant`], because each lease and renewal writes the whole list of the tenant's
/// leases.
const MOST_PER_TENANT: usize = 256;

type Prepare = Arc<dyn Fn(&StoredRun, RunOptions) -> RunOptions + Send + Sync>;

/// Continues the conversations that a [`RunQueue`] holds. Any number of workers, in any number of processes, can share
/// one store.
///
/// A worker leases a run, takes its steps, and saves the conversation after each step, so that a model's answer is
/// saved before its calls run. If the worker does not renew the lease, another worker takes the run. Each write checks
/// the lease in the same transaction, so a worker that was suspended for longer than its lease writes nothing. The next
/// worker reconciles or repeats a call that had begun, or ends it as `outcome_unknown`, depending on its tool.
///
/// ```no_run
/// use tool_runtime::agent::{Agent, ModelClient, Worker};
/// use tool_runtime::ToolRunner;
/// use tool_runtime::store::StoreError;
///
/// /// Works until `ended` resolves. Then it saves the runs that are not complete, and another worker takes them.
/// async fn work(model: impl ModelClient + 'static, runner: ToolRunner) -> Result<(), StoreError> {
///     let ended = async { std::future::pending::<()>().await };
///     Worker::new(Agent::new(model), runner).name("worker-1").concurrency(8).run(ended).await
/// }
/// ```
///
/// [`RunQueue`] has an example with both sides.
#[must_use]
pub struct Worker {
    agent: Agent,
    runner: ToolRunner,
    name: Arc<str>,
    concurrency: usize,
    lease: Duration,
    patience: Duration,
    runs_per_tenant: Option<usize>,
    leaves_others: bool,
    prepare: Option<Prepare>,
}

impl Worker {
    /// Creates a worker on the runner's store with the defaults: eight runs at a time, leases of 30 seconds, and a wait
    /// of up to 30 seconds for an unreachable store at the start.
    pub fn new(agent: Agent, runner: ToolRunner) -> Self {
        let half_a_minute = Duration::from_secs(30);
        Self {
            agent,
            runner,
            name: "worker".into(),
            concurrency: 8,
            lease: half_a_minute,
            patience: half_a_minute,
            runs_per_tenant: None,
            leaves_others: false,
            prepare: None,
        }
    }

    /// Sets a name for operators. It need not be unique: each start adds a random suffix to it.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the maximum number of runs that the worker continues at the same time; at least one.
    pub fn concurrency(mut self, runs: usize) -> Self {
        self.concurrency = runs.max(1);
        self
    }

    /// Sets the duration of a lease without renewal; at least one second. A running worker renews its leases.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_secs(1));
        self
    }

    /// Sets how long a starting worker waits for a store that it cannot reach. If the store fails after the start, the
    /// worker waits without a limit.
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Limits how many runs of one tenant all workers of the store continue at the same time. The value is clamped to
    /// between 1 and 256. By default there is no limit.
    ///
    /// The limit holds across processes: the transaction that leases a run counts the tenant's leases. Set the same
    /// limit for all workers, because the runs of a worker without a limit are not counted. Runs that wait for a person
    /// and [`LeasedRun`]s are not counted either. Runs without a tenant are counted by principal, and runs with neither
    /// are counted together.
    ///
    /// With or without a limit, the tenants take turns: a tenant with many due runs does not hold up the others.
    pub fn runs_per_tenant(mut self, runs: usize) -> Self {
        self.runs_per_tenant = Some(runs.clamp(1, MOST_PER_TENANT));
        self
    }

    /// Sets whether the worker skips runs of another version; `false` by default.
    ///
    /// The version of a run is a hash that is computed at the model's first answer. It covers the instructions of the
    /// agent and of the catalog's graphs, whether the catalog's guidance follows them, the definitions that the catalog
    /// was built with, and the policy. A run has no version before that answer, or if an earlier release of this
    /// library began it; every worker continues such a run. A skipped run stays due for workers of its version. If such
    /// runs wait, the worker reports this to operators once, with the code `other_version`.
    ///
    /// The worker does not touch the calls of a skipped run either. The store treats a call whose worker died as
    /// running until a worker of its version takes the run. Until then the call cannot be settled, and calls with the
    /// same effect key are refused. Waiting calls of a skipped run do not expire.
    pub const fn leave_other_versions(mut self, leave: bool) -> Self {
        self.leaves_others = leave;
        self
    }

    /// Sets a function that changes the options of a run before the worker continues it, for example to add connections
    /// or an event sink, or to remove tools. The function receives the options from the last save: the principal,
    /// tenant, caller, roles and attributes. It cannot give the run more rights than the run had.
    pub fn prepare(mut self, prepare: impl Fn(&StoredRun, RunOptions) -> RunOptions + Send + Sync + 'static) -> Self {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// Continues runs until `shutdown` resolves; then finishes the steps that have begun, and releases the leases.
    /// Every minute, and at the end, the worker anchors the records of all runs: it stores the hash of the last record
    /// of each run with new records ([`anchor`](trait@Store#method.anchor)). Every minute it also removes obsolete
    /// documents ([`ToolRunner::sweep`]) and emits [`RunQueue::depth`] as metrics.
    ///
    /// If the store fails after the start, the worker retries every second. Poll the future inside a tokio runtime with
    /// an enabled timer.
    ///
    /// # Errors
    /// At the start, the store cannot be reached within the [`patience`](Self::patience), or permanently refuses
    /// writes, like a read-only replica. A full disk or a held lock is not an error: the worker starts and retries.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), StoreError> {
        let owner = format!("{}-{}", self.name, uuid::Uuid::new_v4().simple()).into();
        let Self { agent, runner, concurrency, lease, patience, prepare, .. } = self;
        let version = agent.version(runner.version());
        let taker = Taker {
            owner,
            lease_duration: lease,
            version: self.leaves_others.then_some(version),
            per_tenant: self.runs_per_tenant,
        };
        let worker = Arc::new(WorkerState { agent, runner, taker, prepare, stop: CancellationToken::new() });
        tracing::info!(owner = &*worker.taker.owner, version = %version, "the worker starts");
        let mut tidying = JoinSet::new();
        tidying.spawn(keep_anchored(worker.runner.clone(), worker.stop.clone()));
        tidying.spawn(keep_tidy(worker.runner.clone(), worker.stop.clone()));
        let mut shutdown = pin!(shutdown);
        let mut running = JoinSet::new();
        let until = Instant::now() + patience;
        while let Err(error) = writable(&**worker.runner.store(), &worker.taker.owner).await {
            match error {
                StoreError::Unavailable(_) | StoreError::Panicked if Instant::now() < until => {}
                StoreError::DiskFull(_) | StoreError::Locked(_) | StoreError::Busy | StoreError::Full => break,
                error => return Err(error),
            }
            tracing::warn!(error = error.code(), "the store cannot be reached; the worker waits for it");
            if wait(None, POLL, &mut running, shutdown.as_mut()).await {
                return Ok(());
            }
        }
        let mut rotation = TenantRotation::new();
        loop {
            let (taken, polled) = worker.take(&mut rotation, concurrency.saturating_sub(running.len())).await;
            for leased in taken {
                running.spawn(Arc::clone(&worker).work(leased));
            }
            if let Err(error) = polled {
                tracing::warn!(error = error.code(), "the due runs of the store cannot be taken");
            }
            let (store, before) = (Some(&**worker.runner.store()), running.len());
            if wait(store, rotation.until_poll(), &mut running, shutdown.as_mut()).await {
                break;
            }
            if running.len() < before {
                rotation.search_all_tenants();
            }
        }
        worker.stop.cancel();
        tracing::info!(runs = running.len(), "the worker is stopping; it finishes the steps that have begun");
        while running.join_next().await.is_some() {}
        // Wait for the sweep: if it were interrupted during a call, the call would end as `outcome_unknown`.
        while tidying.join_next().await.is_some() {}
        anchor_now(&**worker.runner.store()).await;
        worker.runner.store().flush().await.or_else(|error| {
            tracing::warn!(error = error.code(), "the store did not confirm its last writes");
            Ok(())
        })
    }
}

/// Writes and removes a test document, because a worker that can only read would silently take no runs.
async fn writable(store: &dyn Store, owner: &Arc<str>) -> Result<(), StoreError> {
    // A document of kind `Decided`, because a sweep removes it if this process dies between the two writes.
    let key = Key::from_parts(DocumentKind::Decided, "worker", Arc::clone(owner));
    for is_there in [true, false] {
        let named = key.clone();
        let mark = move |transaction: &mut Transaction| {
            if is_there {
                transaction.set(&named, Document::Decided { until: transaction.now() })
            } else {
                transaction.remove(&named)
            }
        };
        transact(store, vec![key.clone()], mark).await?;
    }
    Ok(())
}

/// Emits the metrics of the queue and anchors the records of all runs, every minute. Several workers can do this at the
/// same time.
async fn keep_anchored(runner: ToolRunner, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(TIDY_EVERY)).await.is_some() {
        measure(&runner).await;
        anchor_now(&**runner.store()).await;
    }
}

/// Sweeps the store every minute. This is a separate task, because a sweep waits for tools and can take long.
async fn keep_tidy(runner: ToolRunner, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(TIDY_EVERY)).await.is_some() {
        if let Err(error) = runner.sweep_until(&stop).await {
            tracing::warn!(error = error.code(), "expired documents could not be removed");
        }
    }
}

/// Emits [`RunQueue::depth`] as gauges, if a subscriber records the target [`METRICS`].
async fn measure(runner: &ToolRunner) {
    if !tracing::enabled!(target: METRICS, Level::DEBUG) {
        return;
    }
    match RunQueue::new(runner).depth().await {
        Ok(depth) => tracing::event!(
            target: METRICS,
            Level::DEBUG,
            gauge.tool_runtime.queue.due = depth.due,
            gauge.tool_runtime.queue.age = depth.oldest.unwrap_or_default().as_secs_f64(),
            gauge.tool_runtime.queue.leased = depth.leased,
            gauge.tool_runtime.queue.waiting = depth.waiting,
        ),
        Err(error) => tracing::warn!(error = error.code(), "the runs of the store cannot be counted"),
    }
}

async fn anchor_now(store: &dyn Store) {
    if let Err(error) = store.anchor(|_| {}).await {
        tracing::warn!(error = error.code(), "the records of the runs could not be anchored");
    }
}

/// Waits for at most `longest`, until the store reports a due run (if `store` is `Some`), a run of this worker ends, or
/// `shutdown` resolves. Returns `true` only for `shutdown`.
async fn wait(
    store: Option<&dyn Store>,
    longest: Duration,
    running: &mut JoinSet<()>,
    mut shutdown: std::pin::Pin<&mut impl Future<Output = ()>>,
) -> bool {
    let mut news = pin!(tokio::time::timeout(longest, async {
        match store {
            Some(store) => store.changed().await,
            None => std::future::pending().await,
        }
    }));
    poll_fn(|context| {
        if shutdown.as_mut().poll(context).is_ready() {
            return Poll::Ready(true);
        }
        // The end of a run frees a place.
        if !running.is_empty()
            && let Poll::Ready(ended) = running.poll_join_next(context)
        {
            if let Some(Err(error)) = ended {
                tracing::error!(panicked = error.is_panic(), "a run failed; it is continued when its lease ends");
            }
            return Poll::Ready(false);
        }
        news.as_mut().poll(context).map(|_| false)
    })
    .await
}

/// The state that all runs of one worker share.
struct WorkerState {
    agent: Agent,
    runner: ToolRunner,
    taker: Taker,
    prepare: Option<Prepare>,
    stop: CancellationToken,
}

/// A run that this worker has just leased.
struct Leased {
    lease: RunLease,
    run: StoredRun,
    /// The time at which the lease was requested, from which this process counts the lease.
    requested_at: LeaseTime,
    /// The document that counts the leased runs of the tenant. `None` without a limit.
    slots: Option<Key>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).field("lease", &self.lease).finish_non_exhaustive()
    }
}
