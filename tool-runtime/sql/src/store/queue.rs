//! [`Queue`]: the bounded queue of writes. Writes that need the same lock keep their order.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tool_runtime::store::StoreError;

use crate::store::apply::Work;

/// The maximum number of writes that wait or run.
const MAX_OPEN: usize = 4096;

/// The least number of waiting writes for which a further worker starts.
const MANY: usize = 8;

/// A queued write.
pub(super) struct Job {
    number: u64,
    pub(super) locks: BTreeSet<String>,
    pub(super) work: Work,
    sender: oneshot::Sender<Result<(), StoreError>>,
}

/// The queue of writes.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// The locks of running writes.
    held: BTreeSet<String>,
    /// The numbers of the writes that wait or run.
    open: BTreeSet<u64>,
    next: u64,
    workers: usize,
    /// The failure of a write whose handle was dropped.
    lost: Option<StoreError>,
}

impl State {
    /// Removes a write that was not executed. If its handle was dropped, [`Queue::drained`] reports the loss.
    fn drop_job(&mut self, job: &Job) {
        self.open.remove(&job.number);
        if job.sender.is_closed() {
            self.lost = Some(StoreError::Lost);
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a write. `Err` returns the write if the queue is full.
    pub(super) fn push(&self, work: Work, sender: oneshot::Sender<Result<(), StoreError>>) -> Result<(), Work> {
        let locks = work.locks();
        let mut state = self.state();
        if state.open.len() >= MAX_OPEN {
            return Err(work);
        }
        state.next += 1;
        let number = state.next;
        state.open.insert(number);
        state.waiting.push_back(Job { number, locks, work, sender });
        Ok(())
    }

    /// Returns whether to start one more worker, up to `most`, and counts it. A few writes start no further worker;
    /// they wait for a running one, and share a transaction.
    pub(super) fn hire(&self, most: usize) -> bool {
        let mut state = self.state();
        let least = if state.workers == 0 { 1 } else { MANY };
        let hires = state.workers < most && state.waiting.len() >= least;
        state.workers += usize::from(hires);
        hires
    }

    /// Takes the first writes whose locks no running or skipped write needs. With `apart`, no two of them need the same
    /// lock. Returns `None` if there are no such writes, and then no longer counts the worker.
    pub(super) fn take(self: &Arc<Self>, most: usize, apart: bool) -> Option<Batch> {
        let mut state = self.state();
        let State { waiting, held, workers, .. } = &mut *state;
        let (mut taken, mut place) = (Vec::new(), 0);
        // The locks of skipped writes block later writes, so that writes under one lock keep their order.
        let mut before = held.clone();
        while taken.len() < most
            && let Some(job) = waiting.get(place)
        {
            if job.locks.is_disjoint(&before) {
                let Some(job) = waiting.remove(place) else { break };
                if apart {
                    before.extend(job.locks.iter().cloned());
                }
                taken.push(job);
            } else {
                before.extend(job.locks.iter().cloned());
                place += 1;
            }
        }
        if taken.is_empty() {
            *workers -= 1;
            return None;
        }
        held.extend(taken.iter().flat_map(|job| job.locks.iter().cloned()));
        drop(state);
        Some(Batch::new(Arc::clone(self), taken))
    }

    /// Handles a worker that ended early, because its runtime ended or it panicked. If it was the last worker, the
    /// waiting writes are lost.
    pub(super) fn abandoned(&self) {
        let mut state = self.state();
        state.workers -= 1;
        let lost = if state.workers == 0 { std::mem::take(&mut state.waiting) } else { VecDeque::new() };
        for job in &lost {
            state.drop_job(job);
        }
        drop(state);
        // Dropping the writes resolves their handles, which must happen outside the lock.
        drop(lost);
        self.ended.notify_waiters();
    }

    /// Waits until every write that was queued before this call has ended. Returns the last failure of a write whose
    /// handle was dropped, if there was one since the previous call.
    pub(super) async fn drained(&self) -> Result<(), StoreError> {
        let last = self.state().next;
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            {
                let mut state = self.state();
                if state.open.first().is_none_or(|first| *first > last) {
                    return state.lost.take().map_or(Ok(()), Err);
                }
            }
            ended.await;
        }
    }

    fn lost(&self, error: StoreError) {
        tracing::error!(code = error.code(), "a background write to the store failed");
        self.state().lost = Some(error);
    }
}

/// The writes that one worker executes. Dropping it releases their locks.
pub(super) struct Batch {
    queue: Arc<Queue>,
    pub(super) jobs: Vec<Job>,
    locks: BTreeSet<String>,
    numbers: Vec<u64>,
}

impl Batch {
    fn new(queue: Arc<Queue>, jobs: Vec<Job>) -> Self {
        let locks = jobs.iter().flat_map(|job| job.locks.iter().cloned()).collect();
        let numbers = jobs.iter().map(|job| job.number).collect();
        Self { queue, jobs, locks, numbers }
    }

    /// Splits the batch into one batch for each write. No two of them need the same lock.
    #[cfg(feature = "postgres")]
    pub(super) fn divided(mut self) -> Vec<Self> {
        let jobs = std::mem::take(&mut self.jobs);
        self.locks.clear();
        self.numbers.clear();
        jobs.into_iter().map(|job| Self::new(Arc::clone(&self.queue), vec![job])).collect()
    }

    /// Resolves the handles of the writes.
    pub(super) fn end(mut self, results: impl IntoIterator<Item = Result<(), StoreError>>) {
        for (job, result) in std::mem::take(&mut self.jobs).into_iter().zip(results) {
            // The handle was dropped. An error of the change is ignored; a failure of the database is reported later.
            if let Err(Err(error)) = job.sender.send(result)
                && error.is_failure()
            {
                self.queue.lost(error);
            }
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        for job in &self.jobs {
            state.drop_job(job);
        }
        state.held.retain(|lock| !self.locks.contains(lock));
        for number in &self.numbers {
            state.open.remove(number);
        }
        drop(state);
        self.queue.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues a write whose handle was dropped.
    fn pushed() -> Arc<Queue> {
        let queue = Arc::new(Queue::default());
        assert!(queue.push(Work::Update(Vec::new(), Box::new(|_| Ok(()))), oneshot::channel().0).is_ok());
        assert!(queue.hire(1));
        queue
    }

    #[tokio::test]
    async fn a_lost_write_without_a_handle_is_reported() {
        let waiting = pushed();
        waiting.abandoned();
        assert!(matches!(waiting.drained().await, Err(StoreError::Lost)));
        assert!(waiting.drained().await.is_ok(), "once");
        let running = pushed();
        drop(running.take(1, false));
        assert!(matches!(running.drained().await, Err(StoreError::Lost)));
    }
}
