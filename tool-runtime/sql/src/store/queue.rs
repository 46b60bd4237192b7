//! [`Queue`]: writes that were handed over, in order under each lock, bounded.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tool_runtime::store::StoreError;

use crate::store::apply::Work;

/// How many writes may wait or run.
const MAX_OPEN: usize = 4096;

/// A write that was handed over.
pub(super) struct Job {
    number: u64,
    locks: BTreeSet<String>,
    pub(super) work: Work,
    sender: oneshot::Sender<Result<(), StoreError>>,
}

/// Writes that were handed over.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// The locks of what runs.
    held: BTreeSet<String>,
    /// The numbers of what waits or runs.
    open: BTreeSet<u64>,
    next: u64,
    workers: usize,
    /// The failure of a write that nobody waited for.
    lost: Option<StoreError>,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a write. Returns it if too many are open.
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

    /// Whether one more worker has something to do. It counts as working from now on.
    pub(super) fn hire(&self, most: usize) -> bool {
        let mut state = self.state();
        let hires = state.workers < most && !state.waiting.is_empty();
        state.workers += usize::from(hires);
        hires
    }

    /// Takes the first writes that nothing before them or running locks out. A worker that gets none is dismissed.
    pub(super) fn take(&self, most: usize) -> Option<Batch<'_>> {
        let mut state = self.state();
        let State { waiting, held, workers, .. } = &mut *state;
        let (mut taken, mut locks, mut place) = (Vec::new(), BTreeSet::new(), 0);
        // Locks of writes that are left waiting: what comes behind them waits, too.
        let mut before = held.clone();
        while taken.len() < most
            && let Some(job) = waiting.get(place)
        {
            if job.locks.is_disjoint(&before) {
                let Some(job) = waiting.remove(place) else { break };
                locks.extend(job.locks.iter().cloned());
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
        held.extend(locks.iter().cloned());
        let numbers = taken.iter().map(|job| job.number).collect();
        Some(Batch { queue: self, jobs: taken, locks, numbers })
    }

    /// A worker ended in the middle: with its runtime, or by a panic. Nobody may be left to do what waits.
    pub(super) fn abandoned(&self) {
        let mut state = self.state();
        state.workers -= 1;
        let lost = if state.workers == 0 { std::mem::take(&mut state.waiting) } else { VecDeque::new() };
        for job in &lost {
            state.open.remove(&job.number);
        }
        drop(state);
        // Their receipts resolve outside the lock.
        drop(lost);
        self.ended.notify_waiters();
    }

    /// Resolves once everything that was taken before has ended.
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
        tracing::error!(code = error.code(), "a write failed that nobody waited for");
        self.state().lost = Some(error);
    }
}

/// Writes that one worker does. Their locks are free again when it is dropped.
pub(super) struct Batch<'q> {
    queue: &'q Queue,
    pub(super) jobs: Vec<Job>,
    locks: BTreeSet<String>,
    numbers: Vec<u64>,
}

impl Batch<'_> {
    /// Resolves the receipts.
    pub(super) fn end(mut self, results: impl IntoIterator<Item = Result<(), StoreError>>) {
        for (job, result) in std::mem::take(&mut self.jobs).into_iter().zip(results) {
            // A change that refused is an answer; a database that failed is a loss.
            if let Err(Err(error)) = job.sender.send(result)
                && error.is_failure()
            {
                self.queue.lost(error);
            }
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.held.retain(|lock| !self.locks.contains(lock));
        for number in &self.numbers {
            state.open.remove(number);
        }
        drop(state);
        self.queue.ended.notify_waiters();
    }
}
