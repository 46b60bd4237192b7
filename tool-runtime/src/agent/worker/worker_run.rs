//! One run of a worker, from the lease to its release.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::agent::worker::lease::{Lease, RUNNING};
use crate::agent::worker::{Leased, WorkerState};
use crate::agent::{Conversation, Durable, SavedConversation, Step, StepError, StepFuture};
use crate::runner::ResumeError;
use crate::store::runs::{AfterUpdate, Due, RunUpdate};
use crate::store::{Key, StoreError, StoredRun};

/// The number of consecutive failures of the model after which its run is not retried until a message is posted.
const ATTEMPTS: u32 = 6;
/// The wait before a call that runs in another process is checked again.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// The reason why a worker releases a run.
enum Down {
    /// Another process has the run.
    Lost,
    /// The run can be tried again later.
    Later(&'static str),
    /// A decision or an answer does not fit. Another attempt with the same decision or answer would end the same way.
    Refused(&'static str),
    /// The model gave no answer. The worker asks it again a limited number of times.
    Model(&'static str),
    /// Another attempt would end the same way.
    Never(&'static str),
}

impl From<StepError> for Down {
    fn from(unfinished: StepError) -> Self {
        match unfinished {
            StepError::Store(StoreError::Fenced) | StepError::Refused(ResumeError::Store(StoreError::Fenced)) => {
                Self::Lost
            }
            StepError::Refused(ResumeError::Store(error)) | StepError::Store(error) => Self::Later(error.code()),
            StepError::Refused(refused) => Self::Refused(refused.code()),
            StepError::Model(error) => Self::Model(error.code()),
            unfinished => Self::Later(unfinished.code()),
        }
    }
}

impl From<StoreError> for Down {
    fn from(error: StoreError) -> Self {
        StepError::Store(error).into()
    }
}

/// A run that this worker has leased.
struct WorkerRun<'d> {
    worker: &'d WorkerState,
    lease: Lease,
    stored: StoredRun,
    /// The number of consecutive failures to continue the run.
    failures: AtomicU32,
    /// The post that the next unit applies. Its save removes the post.
    taking: Mutex<Option<Key>>,
}

impl WorkerState {
    /// Continues a run until it waits or ends, another process takes it, or the worker stops.
    pub(super) async fn work(self: Arc<Self>, Leased { lease, run: stored, requested_at, slots }: Leased) {
        let run = Arc::clone(&stored.run_id);
        let lost = CancellationToken::new();
        let (store, patience) = (Arc::clone(self.runner.store()), self.taker.lease_duration);
        let renewed = Arc::new(requested_at);
        let lease = Lease { store, run: lease, slots, patience, renewed };
        let _kept = lease.keep(self.taker.lease_duration, lost.clone());
        let failures = AtomicU32::new(stored.failures);
        let leased = WorkerRun { worker: &self, lease, stored, failures, taking: Mutex::default() };
        // On the heap: the whole conversation is one future.
        let down = lost.run_until_cancelled(Box::pin(leased.proceed())).await.unwrap_or(Err(Down::Lost));
        let put = match down {
            Ok(()) => Ok(()),
            Err(Down::Lost) => Err(StoreError::Fenced),
            Err(Down::Later(code) | Down::Refused(code)) => leased.later(code, u32::MAX).await,
            Err(Down::Model(code)) => leased.later(code, ATTEMPTS).await,
            Err(Down::Never(code)) => leased.put(code, Due::Never).await,
        };
        match put {
            Ok(()) => {}
            Err(StoreError::Fenced) => tracing::warn!(run = &*run, "the lease ended; the run is left to other workers"),
            Err(error) => tracing::warn!(run = &*run, error = error.code(), "the run could not be released"),
        }
    }
}

impl WorkerRun<'_> {
    async fn proceed(&self) -> Result<(), Down> {
        let saved = SavedConversation::from_text(&self.stored.document).map_err(|error| Down::Never(error.code()))?;
        let mut conversation = self.restore(saved).await?;
        loop {
            let running = conversation.turns.is_idle() && conversation.turns.refresh().await?;
            let step = conversation.step_on(self).await?;
            if self.worker.stop.is_cancelled() {
                return Ok(self.put(step.code(), Due::Now).await?);
            }
            if matches!(step, Step::Asked | Step::Ran) {
                continue;
            }
            // Read the number before the posts, so that a post between the two reads makes the run due.
            let news = self.lease.news().await?;
            if self.take_post(&mut conversation).await? || self.expire(&mut conversation).await? {
                continue;
            }
            let expires = conversation.waiting().filter_map(|call| call.expires_at).min();
            let due = match expires {
                _ if running => Due::In(ELSEWHERE),
                // The call has expired, but its expiry was refused, so try again later.
                Some(expires) if expires <= self.worker.runner.store_time().await? => Due::In(ELSEWHERE),
                Some(expires) => Due::At(expires),
                None => Due::Never,
            };
            let next = AfterUpdate::Release { due, news };
            return Ok(self.write(&conversation.save().await?, step.code(), None, next).await?);
        }
    }

    /// Takes the oldest post. Returns whether there was one.
    async fn take_post(&self, conversation: &mut Conversation) -> Result<bool, Down> {
        let Some((key, input)) = self.lease.post().await? else { return Ok(false) };
        let name = format!("post {}", key.id());
        *self.taking.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        let refused = match conversation.accept_on(self, &name, input).await {
            // `accept_on` has emitted the error.
            Err(Down::Refused(code)) => code,
            accepted => return accepted.map(|()| true),
        };
        let run = &*self.lease.run.run_id;
        // Each refused decision has a record. Drop the post, because it would block the posts after it.
        tracing::warn!(run, error = refused, "a posted message does not fit; it is dropped");
        let saved = async { conversation.save().await.map_err(StepError::Store) };
        self.unit(&name, Box::pin(saved)).await?;
        Ok(true)
    }

    /// Finishes the calls that have expired. Returns whether any call ended.
    async fn expire(&self, conversation: &mut Conversation) -> Result<bool, Down> {
        if conversation.waiting().all(|call| call.expires_at.is_none()) {
            return Ok(false);
        }
        let expired = conversation.turns.expire(self.worker.runner.store_time().await?).await;
        let expired = expired.map_err(|error| Down::from(StepError::Refused(error)))?;
        if expired {
            self.write(&conversation.save().await?, RUNNING, None, AfterUpdate::Keep).await?;
        }
        Ok(expired)
    }

    /// Releases the run until a later attempt. The wait grows with each failure; after `most` failures in a row there
    /// is no further attempt.
    async fn later(&self, code: &'static str, most: u32) -> Result<(), StoreError> {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        // 2, 4, 8 and so on, up to 256 seconds.
        let due = if failures < most { Due::In(Duration::from_secs(1 << failures.min(8))) } else { Due::Never };
        self.put(code, due).await
    }

    /// Releases the run with this state. Its conversation is that of the last unit.
    async fn put(&self, state: &str, due: Due) -> Result<(), StoreError> {
        self.lease.put(Some(state), due, self.stored.news, self.failures.load(Ordering::Relaxed)).await
    }

    async fn write(
        &self,
        saved: &SavedConversation,
        state: &str,
        taken: Option<Key>,
        next: AfterUpdate,
    ) -> Result<(), StoreError> {
        let (document, version) = (Some(saved.to_text()?), saved.version());
        let failures = self.failures.load(Ordering::Relaxed);
        self.lease.write(RunUpdate { document, state: Some(state.into()), version, taken, failures, next }).await
    }
}

#[async_trait]
impl Durable for WorkerRun<'_> {
    type Error = Down;

    async fn unit(&self, _name: &str, work: StepFuture<'_>) -> Result<SavedConversation, Down> {
        let saved = self.lease.attend(self.worker.taker.lease_duration, work).await??;
        let taken = self.taking.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.failures.store(0, Ordering::Relaxed);
        self.write(&saved, RUNNING, taken, AfterUpdate::Keep).await?;
        Ok(saved)
    }

    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, Down> {
        let options = saved.run().options();
        let options = match &self.worker.prepare {
            Some(prepare) => prepare(&self.stored, options),
            None => options,
        };
        let options = options.held(self.lease.run.clone());
        self.worker.agent.restore(&self.worker.runner, options, saved).await.map_err(|error| match error {
            ResumeError::Store(error) => error.into(),
            error => Down::Never(error.code()),
        })
    }
}
