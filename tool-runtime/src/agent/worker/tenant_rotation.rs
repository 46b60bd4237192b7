//! [`TenantRotation`]: lets the tenants take turns when a worker takes due runs.
//!
//! A lane is the group of the runs of one tenant and one version (a hash of instructions, catalog and policy). Runs
//! without a tenant are grouped by their principal.
//!
//! A poll first lists the runs that have been due for the longest time. If they do not fill a page of 256 runs, these
//! are all due runs. Otherwise the poll walks through the lanes, beginning where the last poll ended, so that a tenant
//! with many due runs does not delay the other tenants. A poll lists a bounded number of rows, even if it can take none
//! of the runs. After a walk that took nothing, the worker walks again after [`POLL`], or when one of its runs has
//! ended. The file is long because of its tests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::agent::worker::{Leased, POLL, TIDY_EVERY, WorkerState};
use crate::runner::LeaseTime;
use crate::store::lane::tenant_of;
use crate::store::runs::{self, Leasing};
use crate::store::transact;
use crate::store::{Document, DueRun, Key, Store, StoreError};

/// The maximum number of runs or lanes in one listing.
const PAGE: usize = 256;

/// The maximum number of lanes through which a poll walks, in pages.
const PAGES: u32 = 8;

/// How many runs of a lane are listed when the worker can take more than the first.
const DEEP: usize = 32;

/// The maximum number of unreadable runs that a worker remembers.
const MOST_UNREADABLE: usize = 1024;

/// The number of first runs from which a worker picks one at random to begin with, so that workers with the same list
/// try different runs.
const SPREAD: usize = 8;

/// The state of the rotation between the polls of a worker.
pub(super) struct TenantRotation {
    /// The next turns begin after this lane. It is the last lane of the previous walk, or the end of the lanes of the
    /// tenant that had the last turn.
    last: Arc<str>,
    /// Whether the worker has reported to operators that runs of another version wait.
    is_reported: bool,
    unreadable: Unreadable,
    /// The time until which the worker does not walk through the lanes, after a walk that took nothing.
    rest: Option<Instant>,
}

impl TenantRotation {
    /// Creates a rotation that begins at a random tenant, so that workers that start together begin with different
    /// tenants.
    pub(super) fn new() -> Self {
        Self {
            last: uuid::Uuid::new_v4().simple().to_string().into(),
            is_reported: false,
            unreadable: Unreadable::default(),
            rest: None,
        }
    }

    /// Lets the next poll walk through the lanes, because a run of this worker was taken or has ended.
    pub(super) const fn search_all_tenants(&mut self) {
        self.rest = None;
    }

    /// Returns the longest time until the next poll.
    pub(super) fn until_poll(&self) -> Duration {
        let rest = self.rest.map(|end| end.saturating_duration_since(Instant::now()));
        rest.filter(|rest| !rest.is_zero()).map_or(POLL, |rest| rest.min(POLL))
    }
}

/// Due runs that could not be read, by lane. For a minute, polls skip them, and list as many more runs.
#[derive(Default)]
struct Unreadable {
    lanes: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    count: usize,
    since: Option<Instant>,
}

impl Unreadable {
    fn in_lane(&self, lane: &str) -> usize {
        self.lanes.get(lane).map_or(0, BTreeSet::len)
    }

    fn has(&self, run: &DueRun) -> bool {
        self.lanes.get(&run.lane).is_some_and(|runs| runs.contains(&run.run_id))
    }

    fn add(&mut self, run: DueRun) {
        if self.count < MOST_UNREADABLE {
            self.since.get_or_insert_with(Instant::now);
            self.count += usize::from(self.lanes.entry(run.lane).or_default().insert(run.run_id));
        }
    }

    /// Forgets the runs after a minute, because another process might have repaired them.
    fn forget(&mut self) {
        if self.since.is_some_and(|since| since.elapsed() >= TIDY_EVERY) {
            *self = Self::default();
        }
    }
}

/// The due runs of a tenant, in the order in which they are tried.
#[derive(Default)]
struct Candidates {
    runs: VecDeque<DueRun>,
    /// The lanes whose first run is listed and whose other runs are not.
    lanes: Vec<Arc<str>>,
    /// How many more runs to skip if another worker has taken the next run.
    stride: usize,
}

impl Candidates {
    fn add(&mut self, runs: impl IntoIterator<Item = DueRun>) {
        let random = usize::from(uuid::Uuid::new_v4().as_bytes()[0]);
        self.runs.extend(runs);
        self.runs.rotate_left(random % self.runs.len().clamp(1, SPREAD));
    }

    /// Moves on after a run that another worker has taken. The distance doubles with each such run in a row, because
    /// workers that wake together read the same list. The skipped runs are tried last.
    fn skip(&mut self) {
        self.runs.rotate_left(self.stride.min(self.runs.len()));
        self.stride = (2 * self.stride + 1).min(PAGE);
    }
}

/// Returns a text that sorts after all lanes of a tenant and before the next tenant: `0` is the character after `/`,
/// which follows the tenant in a lane.
fn behind(tenant: &str) -> Arc<str> {
    format!("{tenant}0").into()
}

type Tenants = BTreeMap<Arc<str>, Candidates>;

/// A walk through the lanes, of at most [`PAGES`] pages: from the lane after `start` to the end, and then from the
/// beginning to `start`.
struct Walk {
    start: Arc<str>,
    after: Arc<str>,
    /// Whether the walk has reached the end and continues from the beginning.
    is_around: bool,
    is_over: bool,
    pages: u32,
}

/// The state of one poll.
struct Poll<'w> {
    worker: &'w WorkerState,
    rotation: &'w mut TenantRotation,
    now: Timestamp,
    /// How many more runs the worker can take.
    free: usize,
    taken: Vec<Leased>,
    tried: BTreeSet<Arc<str>>,
    /// The tenants whose runs the poll skips: the tenant has reached its limit, or the store did not grant a lock.
    full: BTreeSet<Arc<str>>,
    /// Whether the store did not grant a lock in this poll.
    is_locked: bool,
}

impl WorkerState {
    /// Leases up to `free` runs that are due. After an error of the store, returns the runs that are already leased
    /// with the error.
    pub(super) async fn take(
        &self,
        rotation: &mut TenantRotation,
        free: usize,
    ) -> (Vec<Leased>, Result<(), StoreError>) {
        if free == 0 {
            return (Vec::new(), Ok(()));
        }
        let now = match self.runner.store_time().await {
            Ok(now) => now,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let (taken, tried, full) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut poll = Poll { worker: self, rotation, now, free, taken, tried, full, is_locked: false };
        let polled = poll.run().await;
        if !poll.taken.is_empty() {
            poll.rotation.search_all_tenants();
        }
        (poll.taken, polled)
    }
}

impl Poll<'_> {
    async fn run(&mut self) -> Result<(), StoreError> {
        self.rotation.unreadable.forget();
        let oldest = self.worker.runner.store().due_runs(self.now, None, PAGE).await?;
        let is_all = oldest.len() < PAGE;
        let mut by_age = Tenants::new();
        for run in oldest {
            if let Some(candidates) = self.candidates(&mut by_age, &run) {
                candidates.runs.push_back(run);
            }
        }
        // A message to a tenant at its limit wakes all workers. It must not make them walk through the lanes again.
        if is_all || self.rotation.rest.is_some_and(|end| Instant::now() < end) {
            return self.offer(by_age).await;
        }
        self.rotation.rest = Some(Instant::now() + POLL);
        let mut walk = Walk::after(&self.rotation.last);
        let mut tenants = Tenants::new();
        while !walk.is_over && self.free > 0 {
            for run in walk.next(&**self.worker.runner.store(), self.now).await? {
                if let Some(candidates) = self.candidates(&mut tenants, &run) {
                    candidates.lanes.push(Arc::clone(&run.lane));
                    candidates.runs.push_back(run);
                }
            }
            if tenants.len() >= self.free || walk.is_over {
                self.offer(std::mem::take(&mut tenants)).await?;
                if self.free > 0 {
                    // The next poll continues after these lanes, even between two lanes of a tenant.
                    self.rotation.last = Arc::clone(&walk.after);
                }
            }
        }
        if self.free == 0 {
            return Ok(());
        }
        // The walk might not have reached all lanes, so offer the runs of the first listing too.
        let next = Arc::clone(&self.rotation.last);
        self.offer(by_age).await?;
        self.rotation.last = next;
        Ok(())
    }

    /// Returns the candidates of the run's tenant. `None` if the worker skips runs of this version.
    fn candidates<'t>(&mut self, tenants: &'t mut Tenants, run: &DueRun) -> Option<&'t mut Candidates> {
        if self.worker.taker.takes_lane(&run.lane) {
            return Some(tenants.entry(tenant_of(&run.lane).into()).or_default());
        }
        if !self.rotation.is_reported {
            self.rotation.is_reported = true;
            let text = "this worker does not take runs of another version; they wait for a worker of that version";
            self.worker.runner.report("runs of another version wait", "other_version", text);
        }
        None
    }

    /// Takes one run of each tenant in turn, beginning after the tenant with the last turn. Ends when the worker can
    /// take no more runs, or when no run is left.
    async fn offer(&mut self, mut tenants: Tenants) -> Result<(), StoreError> {
        self.find_full(&tenants).await?;
        tenants.values_mut().for_each(|candidates| candidates.add([]));
        let mut order: Vec<_> = tenants.keys().cloned().collect();
        let first = order.partition_point(|tenant| **tenant <= *self.rotation.last);
        order.rotate_left(first);
        while !order.is_empty() {
            let mut with_more = Vec::new();
            for tenant in order {
                if self.free == 0 {
                    return Ok(());
                }
                let Some(candidates) = tenants.get_mut(&tenant) else { continue };
                // Set before the turn, so that after a failed turn the next poll begins with the next tenant.
                self.rotation.last = behind(&tenant);
                if self.give_turn(&tenant, candidates).await? {
                    with_more.push(tenant);
                }
            }
            order = with_more;
        }
        Ok(())
    }

    /// Finds the tenants that have reached their limit, so that the poll does not try their runs. The transaction that
    /// leases a run counts again.
    async fn find_full(&mut self, tenants: &Tenants) -> Result<(), StoreError> {
        let Some(most) = self.worker.taker.per_tenant else { return Ok(()) };
        let keys: Vec<_> = tenants.keys().map(|tenant| Key::slots_of(tenant)).collect();
        let read = self.worker.runner.store().read(&keys).await?;
        for (tenant, read) in tenants.keys().zip(read) {
            if let Some(Document::Slots(slots)) = read.map(|stored| stored.document)
                && slots.running(self.now) >= most
            {
                self.full.insert(Arc::clone(tenant));
            }
        }
        Ok(())
    }

    /// Takes one run of a tenant. Returns whether there was one to take.
    async fn give_turn(&mut self, tenant: &Arc<str>, candidates: &mut Candidates) -> Result<bool, StoreError> {
        while !self.full.contains(tenant) {
            let Some(run) = candidates.runs.pop_front() else {
                let Some(lane) = candidates.lanes.pop() else { break };
                let limit = DEEP.max(self.free) + self.rotation.unreadable.in_lane(&lane);
                candidates.add(self.worker.runner.store().due_runs(self.now, Some(&lane), limit).await?);
                continue;
            };
            if self.rotation.unreadable.has(&run) || !self.tried.insert(Arc::clone(&run.run_id)) {
                continue;
            }
            let requested_at = LeaseTime::now();
            let slots = self.worker.taker.per_tenant.map(|_| Key::slots_of(tenant));
            match self.lease(&run.run_id, slots.clone()).await {
                Ok(Leasing::Leased(lease, taken)) => {
                    self.taken.push(Leased { lease, run: *taken, requested_at, slots });
                    self.free -= 1;
                    candidates.stride = 0;
                    return Ok(true);
                }
                Ok(Leasing::Gone) => candidates.skip(),
                Ok(Leasing::Full) => drop(self.full.insert(Arc::clone(tenant))),
                // An unreadable run must not delay the other runs.
                Err(error @ (StoreError::Corrupt(_) | StoreError::Newer { .. })) => {
                    tracing::warn!(run = &*run.run_id, error = error.code(), "a due run cannot be taken");
                    self.rotation.unreadable.add(run);
                }
                // A stopped process can hold the slots of one tenant, so the first such lock does not end the poll. A
                // second lock that is not granted ends the poll, because each attempt takes the store's whole time
                // limit for locks.
                Err(error @ StoreError::Locked(_)) if !self.is_locked => {
                    tracing::warn!(run = &*run.run_id, error = error.code(), "the runs of a tenant are locked");
                    self.is_locked = true;
                    self.full.insert(Arc::clone(tenant));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Leases a run, if it is still due. `slots` is the document that counts the leased runs of the tenant, `None`
    /// without a limit.
    async fn lease(&self, run_id: &Arc<str>, slots: Option<Key>) -> Result<Leasing, StoreError> {
        let (taker, run_id) = (self.worker.taker.clone(), Arc::clone(run_id));
        let keys = std::iter::once(Key::run(Arc::clone(&run_id))).chain(slots).collect();
        transact(&**self.worker.runner.store(), keys, move |transaction| runs::lease(transaction, &run_id, &taker))
            .await
    }
}

impl Walk {
    fn after(lane: &Arc<str>) -> Self {
        Self { start: Arc::clone(lane), after: Arc::clone(lane), is_around: false, is_over: false, pages: 0 }
    }

    /// Returns the due runs among the first runs of the next lanes.
    async fn next(&mut self, store: &dyn Store, now: Timestamp) -> Result<Vec<DueRun>, StoreError> {
        let mut lanes = store.lanes(now, &self.after, PAGE).await?;
        let (mut is_end, all) = (lanes.len() < PAGE, lanes.len());
        if self.is_around {
            lanes.retain(|run| run.lane <= self.start);
            is_end |= lanes.len() < all;
        }
        if let Some(last) = lanes.last() {
            self.after = Arc::clone(&last.lane);
        }
        self.pages += 1;
        self.is_over = self.pages == PAGES || (is_end && self.is_around);
        if is_end && !self.is_around {
            (self.after, self.is_around) = ("".into(), true);
        }
        lanes.retain(|run| run.due <= now);
        Ok(lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryStore, StoredRun, Transaction};
    use crate::tool::Hash;

    /// Sixteen workers were woken together, and fifteen of them have taken the first runs of the list.
    #[test]
    fn a_worker_passes_the_runs_of_others_in_few_attempts() {
        const TAKEN: usize = 120;
        let mut candidates = Candidates::default();
        let due = |number: usize| DueRun {
            run_id: format!("{number}").into(),
            lane: "acme/".into(),
            due: Timestamp::UNIX_EPOCH,
        };
        candidates.add((0..200).map(due));
        let (mut attempts, mut tried) = (Vec::new(), BTreeSet::new());
        while let Some(run) = candidates.runs.pop_front() {
            let number: usize = run.run_id.parse().unwrap();
            assert!(tried.insert(number), "each run is tried once");
            if number >= TAKEN {
                attempts.push(tried.len());
                candidates.stride = 0;
            } else {
                candidates.skip();
            }
        }
        assert_eq!(tried.len(), 200, "a skipped run is tried, too");
        assert!(attempts[0] <= 9 && attempts[7] <= 16, "{attempts:?}");
    }

    /// A tenant has more lanes than a walk covers, so the next walk begins between two of its lanes.
    #[tokio::test]
    async fn a_walk_continues_where_the_last_one_ended() {
        let (store, lanes) = (MemoryStore::new(), usize::try_from(PAGES).unwrap() * PAGE + 50);
        for number in 0..lanes {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_be_bytes());
            let (version, due) = (Some(Hash(hash)), Some(Timestamp::UNIX_EPOCH));
            let run = StoredRun { due, version, ..StoredRun::new(format!("run {number}"), "{}") };
            let key = Key::run(Arc::clone(&run.run_id));
            let put = move |transaction: &mut Transaction| runs::enqueue(transaction, &run);
            store.update(vec![key], Box::new(put)).await.unwrap();
        }
        let (mut last, mut seen): (Arc<str>, _) = (TenantRotation::new().last, BTreeSet::new());
        for _ in 0..2 {
            let mut walk = Walk::after(&last);
            while !walk.is_over {
                seen.extend(walk.next(&store, Timestamp::UNIX_EPOCH).await.unwrap().into_iter().map(|run| run.lane));
            }
            last = walk.after;
        }
        assert_eq!(seen.len(), lanes);
    }
}
