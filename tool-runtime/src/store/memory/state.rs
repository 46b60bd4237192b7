//! The contents of the store in memory, and the rules by which it drops documents and records.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;

use crate::store::memory::queue::RunIndex;
use crate::store::retention::guards::{holds_on, is_held};
use crate::store::transaction::RETENTION_RUN;
use crate::store::{AuditRecord, SealedRecord};
use crate::store::{Document, DocumentKind, DueRun, Key, StoreError, StoredDocument, Transaction};

/// The maximum contents of a store.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) records: usize,
    pub(super) open: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { records: 4096, open: 4096 }
    }
}

/// The maximum number of marks, as a multiple of the limit of open documents. Marks are the documents of decided calls
/// and purged runs, effects, slots of tenants, and the key for digests. Each mark is needed until it expires, so marks
/// are not dropped to make room.
const MARKS: usize = 16;

fn is_mark(document: &StoredDocument) -> bool {
    let kind = document.key.kind();
    matches!(kind, DocumentKind::Decided | DocumentKind::DigestKey | DocumentKind::Effect | DocumentKind::Slots)
        || is_purged(document)
}

fn is_purged(document: &StoredDocument) -> bool {
    matches!(document.document, Document::Purged { .. })
}

#[derive(Default)]
pub(super) struct MemoryContents {
    pub(super) records: VecDeque<StoredRecord>,
    /// How many records at the front of `records` are sealed. Records that are being sealed follow them.
    sealed: usize,
    /// The run of each sealed record that was dropped, until `Seals` takes the list. It is never longer than the number
    /// of records.
    gone: Vec<Arc<str>>,
    pub(super) dropped: u64,
    pub(super) documents: BTreeMap<u64, StoredDocument>,
    positions: HashMap<Key, u64>,
    /// The runs that have a due time.
    pub(super) runs: RunIndex,
    /// Positions of ended calls and anchors, oldest first. New ones displace the oldest.
    settled: VecDeque<u64>,
    /// Positions of notices, oldest first. A notice displaces only other notices, because a dropped call could begin
    /// again.
    notices: VecDeque<u64>,
    /// How many documents are marks.
    marks: usize,
    /// How many of the marks are documents of purged and erased runs.
    purged: usize,
    /// The number of the next document. Documents are listed in the order of their numbers.
    next: u64,
}

/// A record, sealed or not yet sealed.
pub(super) enum StoredRecord {
    New(AuditRecord),
    /// A sealed record. It is shared, so that readers clone it outside the lock.
    Sealed(Arc<SealedRecord>),
    /// A placeholder while the record is being sealed.
    Moved,
    /// The place of a record that was removed.
    Removed,
}

impl MemoryContents {
    pub(super) fn document(&self, key: &Key) -> Option<&StoredDocument> {
        let position = self.positions.get(key)?;
        self.documents.get(position)
    }

    /// Returns the runs at these positions.
    pub(super) fn due_runs(&self, positions: impl Iterator<Item = u64>, limit: usize) -> Vec<DueRun> {
        positions.take(limit).filter_map(|position| self.documents.get(&position)?.due_run()).collect()
    }

    /// Writes documents and records. Returns the records that were dropped to make room.
    pub(super) fn write(
        &mut self,
        documents: Vec<(Key, Option<StoredDocument>)>,
        records: Vec<AuditRecord>,
        limits: Limits,
        now: Timestamp,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        if self.has_no_room(&documents, limits) {
            self.forget(now);
            if self.has_no_room(&documents, limits) {
                return Err(StoreError::Full);
            }
        }
        for (key, document) in documents {
            self.set(key, document, limits.records);
        }
        Ok(records.into_iter().filter_map(|record| self.append(record, limits.records)).collect())
    }

    /// Whether the store would exceed a limit: of open documents, or of marks.
    fn has_no_room(&self, changes: &[(Key, Option<StoredDocument>)], limits: Limits) -> bool {
        let is_full = |counts: fn(&StoredDocument) -> bool, before: usize, most: usize| {
            let added = changes.iter().filter(|(_, document)| document.as_ref().is_some_and(counts)).count();
            let left = changes.iter().filter(|(key, _)| self.document(key).is_some_and(counts)).count();
            added > left && before - left + added > most
        };
        let open = self.documents.len() - self.settled.len() - self.notices.len() - self.marks;
        is_full(|document| !document.is_settled() && !is_mark(document), open, limits.open)
            || is_full(is_mark, self.marks, limits.open.saturating_mul(MARKS))
    }

    /// Drops expired documents without a legal hold.
    fn forget(&mut self, now: Timestamp) {
        let is_on_hold = |document: &StoredDocument| {
            holds_on(&document.document).iter().any(|key| is_held(self.document(key).map(|hold| &hold.document)))
        };
        let over = self.documents.values().filter(|document| document.expires_at().is_some_and(|over| over <= now));
        let over: Vec<_> = over.filter(|document| !is_on_hold(document)).map(|document| document.key.clone()).collect();
        over.into_iter().for_each(|key| self.set(key, None, usize::MAX));
    }

    fn set(&mut self, key: Key, document: Option<StoredDocument>, settled: usize) {
        let Some(document) = document else {
            let position = self.positions.remove(&key);
            if let Some((position, document)) = position.and_then(|at| Some((at, self.documents.remove(&at)?))) {
                self.marks -= usize::from(is_mark(&document));
                self.purged -= usize::from(is_purged(&document));
                self.runs.remove(position, &document);
                if document.is_settled() {
                    self.past(document.key.kind()).retain(|kept| *kept != position);
                }
            }
            return;
        };
        let position = *self.positions.entry(key).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        let (is_settled, kind) = (document.is_settled(), document.key.kind());
        self.marks += usize::from(is_mark(&document));
        self.purged += usize::from(is_purged(&document));
        if let Some(before) = self.documents.get(&position) {
            self.runs.remove(position, before);
        }
        self.runs.add(position, &document);
        let before = self.documents.insert(position, document);
        self.marks -= usize::from(before.as_ref().is_some_and(is_mark));
        self.purged -= usize::from(before.as_ref().is_some_and(is_purged));
        if is_settled && !before.is_some_and(|document| document.is_settled()) {
            self.past(kind).push_back(position);
        }
        while self.past(kind).len() > settled
            && let Some(oldest) = self.past(kind).pop_front()
        {
            if let Some(document) = self.documents.remove(&oldest) {
                self.positions.remove(&document.key);
            }
        }
    }

    /// Whether [`Transaction::append`] would refuse the record, because its run is closed. The run is looked up only if
    /// the store has a closed run, because every call takes this path and most stores have none.
    pub(super) fn refuses(&self, record: &AuditRecord) -> bool {
        let is_reserved = **record.run_id() == *RETENTION_RUN;
        if self.purged == 0 && !is_reserved {
            return false;
        }
        let key = Key::run(Arc::clone(record.run_id()));
        let stored = self.document(&key).filter(|document| is_purged(document)).cloned();
        if stored.is_none() && !is_reserved {
            return false;
        }
        Transaction::new(Timestamp::UNIX_EPOCH, [(key, stored)]).append(record.clone()).is_err()
    }

    /// Returns the positions of the settled documents that a new settled document of this kind can displace.
    fn past(&mut self, kind: DocumentKind) -> &mut VecDeque<u64> {
        if kind == DocumentKind::Notice { &mut self.notices } else { &mut self.settled }
    }

    /// Appends a record. Returns the record that was dropped to make room.
    pub(super) fn append(&mut self, record: AuditRecord, limit: usize) -> Option<StoredRecord> {
        let displaced = if self.records.len() >= limit { self.records.pop_front() } else { None };
        if displaced.is_some() {
            self.dropped += 1;
        }
        match &displaced {
            Some(StoredRecord::Sealed(sealed)) => {
                self.sealed -= 1;
                self.gone.push(Arc::clone(sealed.record.run_id()));
            }
            Some(StoredRecord::Removed) => self.sealed -= 1,
            Some(StoredRecord::New(_) | StoredRecord::Moved) | None => {}
        }
        self.records.push_back(StoredRecord::New(record));
        displaced
    }

    /// Returns how many records are not sealed.
    pub(super) fn unsealed_count(&self) -> usize {
        self.records.len() - self.sealed
    }

    /// Takes the next records to seal, at most `most`, with the position of the first one.
    pub(super) fn unsealed(&mut self, most: usize) -> Result<Unsealed, StoreError> {
        let (first, dropped) = (self.dropped + self.sealed as u64, self.dropped);
        let next = self.records.iter_mut().skip(self.sealed).take(most);
        let records = next.map(|slot| match std::mem::replace(slot, StoredRecord::Moved) {
            StoredRecord::New(record) => Ok(record),
            // An earlier reader stopped at a record that cannot be serialized, and left placeholders.
            StoredRecord::Sealed(_) | StoredRecord::Moved | StoredRecord::Removed => Err(StoreError::Lost),
        });
        let records = records.collect::<Result<_, _>>()?;
        Ok(Unsealed { first, dropped, records, gone: self.take_gone() })
    }

    /// Takes the runs of the sealed records that were dropped.
    pub(super) fn take_gone(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.gone)
    }

    /// Puts sealed records back. Records that were dropped meanwhile are added to the list of gone records.
    pub(super) fn put_back(&mut self, first: u64, sealed: Vec<Arc<SealedRecord>>) {
        for (position, sealed) in (first..).zip(sealed) {
            let at = position.checked_sub(self.dropped).and_then(|at| usize::try_from(at).ok());
            match at.and_then(|at| self.records.get_mut(at)) {
                Some(slot) => {
                    *slot = StoredRecord::Sealed(sealed);
                    self.sealed += 1;
                }
                None => self.gone.push(Arc::clone(sealed.record.run_id())),
            }
        }
    }

    /// Returns the sealed record at this position, counted from the first record ever appended.
    pub(super) fn sealed(&self, position: u64) -> Option<&Arc<SealedRecord>> {
        let at = usize::try_from(position.checked_sub(self.dropped)?).ok()?;
        match self.records.get(at)? {
            StoredRecord::Sealed(sealed) => Some(sealed),
            StoredRecord::New(_) | StoredRecord::Moved | StoredRecord::Removed => None,
        }
    }

    /// Replaces the sealed record at this position, or removes it.
    pub(super) fn replace(&mut self, position: u64, sealed: Option<Arc<SealedRecord>>) {
        let at = position.checked_sub(self.dropped).and_then(|at| usize::try_from(at).ok());
        if let Some(slot @ StoredRecord::Sealed(_)) = at.and_then(|at| self.records.get_mut(at)) {
            *slot = sealed.map_or(StoredRecord::Removed, StoredRecord::Sealed);
        }
    }

    /// Whether a call of the run is open or waits.
    pub(super) fn has_open_calls(&self, run_id: &Arc<str>) -> bool {
        let is_call = |kind| matches!(kind, DocumentKind::Call | DocumentKind::Waiting);
        let of_run = self.documents.values().filter(|document| document.key.scope() == run_id);
        of_run.filter(|document| is_call(document.key.kind())).any(|document| document.due().is_some())
    }

    /// Removes the calls, messages, notices and marks of decided calls of a run.
    pub(super) fn remove_calls(&mut self, run_id: &Arc<str>) {
        let is_gone = |kind| {
            use DocumentKind::{Call, Decided, Notice, Post, Waiting};
            matches!(kind, Call | Waiting | Decided | Post | Notice)
        };
        let of_run = self.positions.keys().filter(|key| key.scope() == run_id && is_gone(key.kind()));
        let keys: Vec<_> = of_run.cloned().collect();
        keys.into_iter().for_each(|key| self.set(key, None, usize::MAX));
    }
}

/// Records that are about to be sealed.
pub(super) struct Unsealed {
    /// The position of the first record, counted from the first record ever appended.
    pub(super) first: u64,
    /// How many records had been dropped before.
    pub(super) dropped: u64,
    pub(super) records: Vec<AuditRecord>,
    /// The runs of sealed records that were dropped since the last batch.
    pub(super) gone: Vec<Arc<str>>,
}
