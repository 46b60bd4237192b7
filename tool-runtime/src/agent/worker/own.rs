//! [`OwnRun`]: a run that an application continues itself, in the place of a worker and under the same lease.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::RunQueue;
use super::hold::{Hold, Kept, Renewed};
use super::queue::transact;
use crate::agent::{Incoming, QueueError, SavedConversation};
use crate::store::runs::{self, Due, Next, Progress, Taking};
use crate::store::{Key, RunLease, Store, StoreError, StoredRun, Transaction};

/// How long a run counts as this process's without a sign of life.
const LEASE: Duration = Duration::from_secs(30);

/// A run that this process has until it releases it, or dies: then a worker continues it when the lease ends.
pub(crate) struct OwnRun {
    hold: Hold,
    /// How often something from outside had happened to the run when its post was read last.
    news: u64,
    _kept: Kept,
}

/// What somebody gets who wants to continue a run.
pub(crate) enum Take {
    /// The principal has no such run in this tenant.
    Unknown,
    /// Another process has it.
    Held,
    /// Its records end before an exported anchor, and it has not been released.
    HeldBack,
    /// It is theirs, as it was after its last step.
    Taken(OwnRun, Box<SavedConversation>),
}

impl RunQueue {
    /// Takes a run that no process has, due or not.
    pub(crate) async fn take(
        &self,
        run_id: &str,
        party: (Option<&str>, Option<&str>),
        owner: &str,
    ) -> Result<Take, QueueError> {
        let (run_id, owner): (Arc<str>, _) = (run_id.into(), owner_of(owner));
        let (principal, tenant) = (party.0.map(str::to_owned), party.1.map(str::to_owned));
        let keys = vec![Key::run(Arc::clone(&run_id))];
        let change = move |transaction: &mut Transaction| {
            runs::take(transaction, &run_id, (principal.as_deref(), tenant.as_deref()), &owner, LEASE)
        };
        Ok(match transact(&**self.runner.store(), keys, change).await? {
            Taking::Unknown => Take::Unknown,
            Taking::Held => Take::Held,
            Taking::HeldBack => Take::HeldBack,
            Taking::Taken(lease, run) => {
                let own = OwnRun::new(Arc::clone(self.runner.store()), lease, run.news);
                match SavedConversation::from_text(&run.document) {
                    Ok(saved) => Take::Taken(own, Box::new(saved)),
                    Err(error) => {
                        own.release(&run.state, None).await?;
                        return Err(error.into());
                    }
                }
            }
        })
    }

    /// Puts a new conversation in that this process continues itself.
    pub(crate) async fn begin(&self, conversation: &SavedConversation, owner: &str) -> Result<OwnRun, QueueError> {
        let run = conversation.run();
        let mut stored = StoredRun::new(run.run_id(), conversation.to_text()?);
        (stored.principal, stored.tenant) = (run.principal().cloned(), run.tenant().cloned());
        let (keys, owner) = (vec![Key::run(run.run_id())], owner_of(owner));
        let change = move |transaction: &mut Transaction| runs::enqueue_held(transaction, &stored, &owner, LEASE);
        let lease = transact(&**self.runner.store(), keys, change).await?;
        Ok(OwnRun::new(Arc::clone(self.runner.store()), lease, 0))
    }
}

fn owner_of(name: &str) -> Arc<str> {
    format!("{name}-{}", uuid::Uuid::new_v4().simple()).into()
}

impl OwnRun {
    fn new(store: Arc<dyn Store>, lease: RunLease, news: u64) -> Self {
        // Whether it is lost, the next write says.
        let hold = Hold { store, lease, patience: Duration::ZERO, renewed: Arc::new(Renewed::now()) };
        let kept = hold.keep(LEASE, CancellationToken::new());
        Self { hold, news, _kept: kept }
    }

    /// Returns the lease, for [`RunOptions::held`](crate::RunOptions).
    pub(crate) fn lease(&self) -> RunLease {
        self.hold.lease.clone()
    }

    /// Returns the oldest of the run's post, which [`save`](Self::save) takes out. `None` if there is none.
    pub(crate) async fn post(&mut self) -> Result<Option<(Key, Incoming)>, StoreError> {
        // Read before the post, so that nothing can come in between unseen.
        self.news = self.hold.news().await?;
        self.hold.post().await
    }

    /// Keeps the conversation, and takes out what of its post has its effect in it.
    pub(crate) async fn save(
        &self,
        conversation: &SavedConversation,
        state: &str,
        taken: Option<Key>,
    ) -> Result<(), StoreError> {
        let (document, state) = (Some(conversation.to_text()?), state.into());
        self.hold.write(Progress { document, state, taken, failures: 0, next: Next::Keep }).await
    }

    /// Hands the run back: to workers when its next call expires, and sooner if something was posted to it.
    pub(crate) async fn release(&self, state: &str, expires: Option<Timestamp>) -> Result<(), StoreError> {
        self.hold.put(state, expires.map_or(Due::Never, Due::At), self.news, 0).await
    }
}
