//! [`LeasedRun`]: a run that an application continues itself, in place of a worker and under the same lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::RunQueue;
use super::lease::{Kept, Lease, Renewed};
use super::queue::transact;
use crate::agent::{Input, SavedConversation};
use crate::runner::{ResumeError, RunOptions};
use crate::store::runs::{self, Due, Next, Progress, Taking};
use crate::store::{DocumentKind, Key, RunLease, Store, StoreError, StoredRun, Transaction};

/// The duration of a lease without renewal.
const LEASE: Duration = Duration::from_secs(30);

/// A run that this process continues in place of a worker, under a lease that is renewed until the value is dropped.
///
/// [`RunQueue::take`] takes a run from the store, [`RunQueue::begin`] adds a new one. [`save`](Self::save) after each
/// step, so that another process continues there if this one dies: it takes the run once the lease has ended. A write
/// of this process after that fails with [`StoreError::Fenced`].
///
/// ```
/// use tool_runtime::agent::{Agent, Input, RunQueue, ScriptedModel, ScriptedTurn, Step};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let (agent, queue) = (Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello.")])), RunQueue::new(&runner));
/// let mut conversation = agent.converse(runner.run(RunOptions::new().run_id("run-1")));
/// conversation.accept(Input::from("Hi!")).await?;
/// queue.enqueue(&conversation.save().await?).await?;
///
/// let (leased, saved) = queue.take("run-1", None, None, "web").await?;
/// assert_eq!(queue.take("run-1", None, None, "web").await.unwrap_err().code(), "run_held");
/// let mut conversation = agent.restore(&runner, leased.options(RunOptions::new()), saved).await?;
/// while let Step::Asked | Step::Ran = conversation.step().await {
///     leased.save(&conversation.save().await?, "running", None).await?;
/// }
/// leased.save(&conversation.save().await?, "answered", None).await?;
/// leased.release("answered", None).await?;
/// # Ok(()) })
/// # }
/// ```
pub struct LeasedRun {
    lease: Lease,
    /// The principal and the tenant of the run.
    party: (Option<Arc<str>>, Option<Arc<str>>),
    /// The number of outside changes to the run when its post was last read.
    news: u64,
    _kept: Kept,
}

impl RunQueue {
    /// Takes a run that no other process has, due or not, in place of a worker, with its conversation after its last
    /// step. `owner` is a name for operators.
    ///
    /// # Errors
    /// The principal has no such run in the tenant; another process has it ([`ResumeError::Held`]); it lacks records
    /// since the store was restored from a backup ([`ResumeError::HeldBack`]); or the store failed.
    pub async fn take(
        &self,
        run_id: &str,
        tenant: Option<&str>,
        principal: Option<&str>,
        owner: &str,
    ) -> Result<(LeasedRun, SavedConversation), ResumeError> {
        let (run_id, owner): (Arc<str>, _) = (run_id.into(), owner_of(owner));
        let (principal, tenant) = (principal.map(str::to_owned), tenant.map(str::to_owned));
        let keys = vec![Key::run(Arc::clone(&run_id))];
        let change = move |transaction: &mut Transaction| {
            runs::take(transaction, &run_id, (principal.as_deref(), tenant.as_deref()), &owner, LEASE)
        };
        match transact(&**self.runner.store(), keys, change).await? {
            Taking::Unknown => Err(ResumeError::UnknownRun),
            Taking::Held => Err(ResumeError::Held),
            Taking::HeldBack => Err(ResumeError::HeldBack),
            Taking::Taken(lease, run) => {
                let leased = LeasedRun::new(Arc::clone(self.runner.store()), lease, &run);
                match SavedConversation::from_text(&run.document) {
                    Ok(saved) => Ok((leased, saved)),
                    Err(error) => {
                        // Another process, of a newer version perhaps, can read it.
                        leased.lease.put(&run.state, Due::Now, run.news, run.failures).await?;
                        Err(error.into())
                    }
                }
            }
        }
    }

    /// Adds a new conversation that this process continues itself. `owner` is a name for operators.
    ///
    /// # Errors
    /// A run with this id exists already ([`StoreError::Duplicate`]), or the store failed.
    pub async fn begin(&self, conversation: &SavedConversation, owner: &str) -> Result<LeasedRun, ResumeError> {
        let run = conversation.run();
        let mut stored = StoredRun::new(run.run_id(), conversation.to_text()?);
        (stored.principal, stored.tenant) = (run.principal().cloned(), run.tenant().cloned());
        let (keys, owner) = (vec![Key::run(run.run_id())], owner_of(owner));
        let stored = Arc::new(stored);
        let new = Arc::clone(&stored);
        let change = move |transaction: &mut Transaction| runs::enqueue_held(transaction, &new, &owner, LEASE);
        let lease = transact(&**self.runner.store(), keys, change).await?;
        Ok(LeasedRun::new(Arc::clone(self.runner.store()), lease, &stored))
    }
}

fn owner_of(name: &str) -> Arc<str> {
    format!("{name}-{}", uuid::Uuid::new_v4().simple()).into()
}

impl LeasedRun {
    fn new(store: Arc<dyn Store>, lease: RunLease, run: &StoredRun) -> Self {
        // A lost lease shows at the next write.
        let lease = Lease { store, run: lease, patience: Duration::ZERO, renewed: Arc::new(Renewed::now()) };
        let kept = lease.keep(LEASE, CancellationToken::new());
        let party = (run.principal.clone(), run.tenant.clone());
        Self { lease, party, news: run.news, _kept: kept }
    }

    /// Returns options with the lease, for [`Agent::restore`](crate::agent::Agent::restore): each write of the run is
    /// checked against it.
    pub fn options(&self, options: RunOptions) -> RunOptions {
        options.held(self.lease.run.clone())
    }

    /// Returns the oldest post to the run, with the key for [`save`](Self::save), which removes it; `None` if there is
    /// none.
    ///
    /// # Errors
    /// The lease has ended or another process has the run ([`StoreError::Fenced`]), or the store failed.
    pub async fn post(&mut self) -> Result<Option<(Key, Input)>, StoreError> {
        self.lease.check().await?;
        // Read before the post, so that later news is never missed.
        self.news = self.lease.news().await?;
        self.lease.post().await
    }

    /// Saves the conversation, and removes the post whose effect it contains. `state` is a stable word for the last
    /// step.
    ///
    /// # Errors
    /// Another process has the run, or the conversation or the post is one of another run ([`StoreError::Fenced`]); or
    /// the store failed.
    pub async fn save(
        &self,
        conversation: &SavedConversation,
        state: &str,
        taken: Option<Key>,
    ) -> Result<(), StoreError> {
        let (run, saved) = (&self.lease.run.run_id, conversation.run());
        let is_own = |key: &Key| key.kind() == DocumentKind::Post && key.scope() == run;
        let party = (self.party.0.as_ref(), self.party.1.as_ref());
        let is_same = *saved.run_id() == **run && (saved.principal(), saved.tenant()) == party;
        if !is_same || !taken.as_ref().is_none_or(is_own) {
            return Err(StoreError::Fenced);
        }
        let (document, state) = (Some(conversation.to_text()?), state.into());
        self.lease.write(Progress { document, state, taken, failures: 0, next: Next::Keep }).await
    }

    /// Releases the run. A worker takes it when its next call expires, and as soon as a message is posted to it.
    ///
    /// # Errors
    /// Another process has the run ([`StoreError::Fenced`]), or the store failed.
    pub async fn release(&self, state: &str, expires: Option<Timestamp>) -> Result<(), StoreError> {
        self.lease.put(state, expires.map_or(Due::Never, Due::At), self.news, 0).await
    }
}

impl fmt::Debug for LeasedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedRun").field("run_id", &self.lease.run.run_id).finish_non_exhaustive()
    }
}
