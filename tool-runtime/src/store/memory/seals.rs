//! [`Seals`]: seals records outside the lock under which they are appended.
//!
//! Sealing a record takes longer than many tools take. If the first reader of a few thousand records sealed them under
//! the lock of the store, every call of the process would wait.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, MutexGuard};

use crate::store::SealedRecord;
use crate::store::memory::state::{MemoryContents, Unsealed};
use crate::store::{Chain, RecordFilter, StoreError};

/// How many records are sealed at a time. The lock of the store is held only to take them and to put them back.
const BATCH: usize = 64;

/// The chains of the runs that have sealed records. They have a separate lock, which is taken before that of the
/// store.
#[derive(Default)]
pub(super) struct Seals(HashMap<Arc<str>, Run>);

struct Run {
    chain: Chain,
    /// The positions of the sealed records of the run, counted from the first record ever appended.
    places: VecDeque<u64>,
}

impl Seals {
    /// Seals the records that were appended before this call.
    pub(super) fn seal<'s>(&mut self, state: impl Fn() -> MutexGuard<'s, MemoryContents>) -> Result<(), StoreError> {
        let mut left = state().unsealed_count();
        loop {
            let unsealed = state().unsealed(BATCH.min(left))?;
            let (first, count) = (unsealed.first, unsealed.records.len());
            let (sealed, end) = self.seal_batch(unsealed);
            if count == 0 {
                return Ok(());
            }
            left -= count.min(left);
            state().put_back(first, sealed);
            end?;
        }
    }

    /// Seals the records that were appended meanwhile, under the lock of the store.
    pub(super) fn seal_rest(&mut self, state: &mut MemoryContents) -> Result<(), StoreError> {
        loop {
            let unsealed = state.unsealed(BATCH)?;
            let (first, count) = (unsealed.first, unsealed.records.len());
            let (sealed, end) = self.seal_batch(unsealed);
            if count == 0 {
                return Ok(());
            }
            state.put_back(first, sealed);
            end?;
        }
    }

    /// Seals records until one of them cannot be sealed.
    fn seal_batch(&mut self, unsealed: Unsealed) -> (Vec<Arc<SealedRecord>>, Result<(), StoreError>) {
        let Unsealed { first, dropped, records, gone } = unsealed;
        gone.iter().for_each(|run| self.forget(run));
        let mut sealed = Vec::with_capacity(records.len());
        for (position, record) in (first..).zip(records) {
            // Records are dropped oldest first, so a run without a chain may have lost all its sealed records.
            let start = || Run { chain: Chain::after_gap(dropped), places: VecDeque::new() };
            let run = self.0.entry(Arc::clone(record.run_id())).or_insert_with(start);
            match run.chain.seal(record) {
                Ok(record) => {
                    run.places.push_back(position);
                    sealed.push(Arc::new(record));
                }
                Err(error) => return (sealed, Err(error)),
            }
        }
        (sealed, Ok(()))
    }

    /// Checks the conditions under which existing records may be changed.
    pub(super) fn check(
        &self,
        state: &MemoryContents,
        closed: &[(Arc<str>, Option<Chain>)],
        erased: &[SealedRecord],
    ) -> Result<(), StoreError> {
        let is_over = |(run_id, end): &(Arc<str>, Option<Chain>)| {
            let chain = self.0.get(run_id).map_or_else(Chain::new, |run| run.chain);
            end.is_none_or(|end| end == chain) && !state.has_open_calls(run_id)
        };
        let is_there = |new: &SealedRecord| {
            let position = self.position(new.record.run_id(), new.sequence);
            let sealed = position.and_then(|position| state.sealed(position));
            sealed.is_some_and(|sealed| sealed.sequence == new.sequence && sealed.hash == new.hash)
        };
        let holds = closed.iter().all(is_over) && erased.iter().all(is_there);
        if holds { Ok(()) } else { Err(StoreError::Fenced) }
    }

    /// Removes the sealed records that the store dropped to make room.
    pub(super) fn forget_gone(&mut self, state: &mut MemoryContents) {
        state.take_gone().iter().for_each(|run| self.forget(run));
    }

    /// Removes the records of a run. Its chain ends at `end`.
    pub(super) fn purge(&mut self, state: &mut MemoryContents, run_id: Arc<str>, end: Chain) {
        let run = self.0.entry(run_id).or_insert(Run { chain: end, places: VecDeque::new() });
        run.places.drain(..).for_each(|position| state.replace(position, None));
    }

    /// Replaces the contents of a record.
    pub(super) fn erase(&self, state: &mut MemoryContents, new: SealedRecord) {
        let Some(position) = self.position(new.record.run_id(), new.sequence) else { return };
        let Some(sealed) = state.sealed(position) else { return };
        let erased = SealedRecord { record: new.record, ..(**sealed).clone() };
        state.replace(position, Some(Arc::new(erased)));
    }

    /// Returns the position of a sealed record.
    fn position(&self, run_id: &Arc<str>, sequence: u64) -> Option<u64> {
        let run = self.0.get(run_id)?;
        let first = run.chain.next().checked_sub(run.places.len() as u64)?;
        run.places.get(usize::try_from(sequence.checked_sub(first)?).ok()?).copied()
    }

    /// Removes the oldest record of the run, which the store dropped to make room.
    fn forget(&mut self, run: &Arc<str>) {
        if let Some(known) = self.0.get_mut(run) {
            known.places.pop_front();
            if known.places.is_empty() {
                self.0.remove(run);
            }
        }
    }

    /// Returns the sealed records that the filter selects, with their positions, counted from 1. If the filter has a
    /// run, only the records of that run are searched.
    pub(super) fn matching(&self, state: &MemoryContents, filter: &RecordFilter) -> Vec<(u64, Arc<SealedRecord>)> {
        let of_run = filter.run_id.as_ref().map(|run| self.0.get(run).map(|run| &run.places));
        let all = state.dropped..state.dropped + state.records.len() as u64;
        let (some, all) = match of_run {
            Some(places) => (places, 0..0),
            None => (None, all),
        };
        let positions = some.into_iter().flatten().copied().chain(all).filter(|position| *position >= filter.after);
        let sealed = positions.filter_map(|position| Some((position + 1, state.sealed(position)?)));
        let matching = sealed.filter(|(_, sealed)| filter.matches(&sealed.record));
        let page = matching.take(filter.limit.unwrap_or(usize::MAX));
        page.map(|(position, sealed)| (position, Arc::clone(sealed))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Mutex;

    use super::*;
    use crate::store::conformance::record;

    const LIMIT: usize = 8;

    fn append(state: &mut MemoryContents, run: &str, call: usize) {
        state.append(record(run, &format!("call_{call}")).into(), LIMIT);
    }

    fn all(seals: &Seals, state: &Mutex<MemoryContents>) -> Vec<SealedRecord> {
        let found = seals.matching(&state.lock().unwrap(), &RecordFilter::default());
        found.into_iter().map(|(position, sealed)| SealedRecord { position, ..(*sealed).clone() }).collect()
    }

    /// A writer appends each time the lock is free, even between taking records and putting them back.
    #[test]
    fn records_are_appended_while_others_are_sealed() {
        for appended in 0..=2 * LIMIT {
            let (state, mut seals) = (Mutex::new(MemoryContents::default()), Seals::default());
            for call in 0..5 {
                append(&mut state.lock().unwrap(), if call % 2 == 0 { "a" } else { "b" }, call);
            }
            let locked = Cell::new(0);
            let lock = || {
                locked.set(locked.get() + 1);
                let mut state = state.lock().unwrap();
                // The third lock is taken to put the sealed records back.
                if locked.get() == 3 {
                    (5..5 + appended).for_each(|call| append(&mut state, "a", call));
                }
                state
            };
            seals.seal(lock).unwrap();
            assert_eq!(locked.get(), 4);
            let dropped = (5 + appended).saturating_sub(LIMIT);
            let sealed = all(&seals, &state);
            assert_eq!(sealed.len(), 5_usize.saturating_sub(dropped), "{appended}");
            seals.seal(|| state.lock().unwrap()).unwrap();
            let sealed = all(&seals, &state);
            assert_eq!(Chain::verify(&sealed), Ok(()), "{appended}");
            let calls: Vec<_> = sealed.iter().map(|sealed| sealed.record.call_id().to_string()).collect();
            let kept: Vec<_> = (dropped..5 + appended).map(|call| format!("call_{call}")).collect();
            assert_eq!(calls, kept, "{appended}");
            assert!(sealed.iter().map(|sealed| sealed.position).eq(dropped as u64 + 1..=(5 + appended) as u64));
            // Runs without records leave no chain behind.
            let of_b = sealed.iter().filter(|sealed| &**sealed.record.run_id() == "b").count();
            assert_eq!(seals.0.get("b").map_or(0, |run| run.places.len()), of_b, "{appended}");
            let filter = RecordFilter::run("a");
            let of_a = seals.matching(&state.lock().unwrap(), &filter);
            assert_eq!(of_a.len(), sealed.len() - of_b);
        }
    }

    #[test]
    fn the_records_of_a_run_are_found_by_their_places() {
        let (state, mut seals) = (Mutex::new(MemoryContents::default()), Seals::default());
        (0..3).for_each(|call| append(&mut state.lock().unwrap(), "a", call));
        (3..6).for_each(|call| append(&mut state.lock().unwrap(), "b", call));
        seals.seal(|| state.lock().unwrap()).unwrap();
        let found = |filter: RecordFilter| {
            let found = seals.matching(&state.lock().unwrap(), &filter);
            found.into_iter().map(|(position, _)| position).collect::<Vec<_>>()
        };
        assert_eq!(found(RecordFilter::run("b")), [4, 5, 6]);
        assert_eq!(found(RecordFilter { after: 4, limit: Some(1), ..RecordFilter::run("b") }), [5]);
        assert_eq!(found(RecordFilter::call("a", "call_1".into())), [2]);
        assert_eq!(found(RecordFilter::run("c")), [0; 0]);
        assert_eq!(found(RecordFilter { after: 2, limit: Some(2), ..RecordFilter::default() }), [3, 4]);
    }
}
