//! [`Transaction`]: the documents of one change, and its writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::contain::attempted;
use crate::store::audit::AuditRecord;
use crate::store::{Chain, Document, Key, SealedRecord, StoreError, StoredDocument};

/// The writes of a transaction.
type TransactionWrites =
    (Vec<(Key, Option<StoredDocument>)>, Vec<(Arc<str>, Option<Chain>)>, Vec<SealedRecord>, Vec<AuditRecord>);

/// The run whose chain has the records of legal holds, and of grants that were revoked after their run was purged or
/// erased. It is never purged, and has no calls.
pub(in crate::store) const RETENTION_RUN: &str = "tool-runtime:retention";

/// A change of documents. It can run more than once, so it must depend only on the transaction. If it returns an error,
/// nothing is written.
///
/// [`Transaction`] has an example.
pub type ChangeFn = Box<dyn FnMut(&mut Transaction) -> Result<(), StoreError> + Send>;

/// The current documents of the keys that a [`ChangeFn`] named, and the writes of the change.
///
/// Once a store holds the locks of all keys, it creates a transaction with [`new`](Self::new), [runs](Self::run) the
/// change on it, and writes the [result](Self::into_writes).
///
/// ```
/// use jiff::Timestamp;
/// use tool_runtime::store::{ChangeFn, Key, Transaction};
///
/// let mut change: ChangeFn = Box::new(|transaction| transaction.remove(&Key::run("run-1")));
/// let transaction = Transaction::new(Timestamp::now(), [(Key::run("run-1"), None)]).run(&mut change)?;
/// assert!(!transaction.wakes());
/// let (documents, closed, erased, records) = transaction.into_writes();
/// assert_eq!((documents.len(), closed.len(), erased.len(), records.len()), (1, 0, 0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Transaction {
    now: Timestamp,
    documents: BTreeMap<Key, Slot>,
    closed: Vec<(Arc<str>, Option<Chain>)>,
    erased: Vec<SealedRecord>,
    records: Vec<AuditRecord>,
}

#[derive(Debug)]
struct Slot {
    document: Option<Document>,
    changed: bool,
}

impl Transaction {
    /// Creates a transaction at a time of the store's clock. `documents` has every key of the change, with its
    /// document.
    #[must_use]
    pub fn new(now: Timestamp, documents: impl IntoIterator<Item = (Key, Option<StoredDocument>)>) -> Self {
        Self::over(now, documents.into_iter().map(|(key, stored)| (key, stored.map(|stored| stored.document))))
    }

    /// Creates a transaction over parsed documents.
    pub(crate) fn over(now: Timestamp, documents: impl IntoIterator<Item = (Key, Option<Document>)>) -> Self {
        let mut slots = BTreeMap::new();
        for (key, document) in documents {
            // If the change names a run by [`Key::run`] and by [`Key::run_head`], keep the document with the text.
            if key.needs_text() || !slots.contains_key(&key) {
                slots.insert(key, Slot { document, changed: false });
            }
        }
        Self { now, documents: slots, closed: Vec::new(), erased: Vec::new(), records: Vec::new() }
    }

    /// Returns the time of the store's clock.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns a document. `None` if there is none, or if the change did not name the key.
    #[must_use]
    pub fn document(&self, key: &Key) -> Option<StoredDocument> {
        self.get(key).map(|document| StoredDocument::new(key.clone(), document.clone()))
    }

    /// Writes a document under its key.
    ///
    /// # Errors
    /// [`StoreError::NotLocked`] if the change did not name the key.
    pub fn put(&mut self, document: StoredDocument) -> Result<(), StoreError> {
        self.write(&document.key, Some(document.document))
    }

    /// Returns a parsed document.
    pub(crate) fn get(&self, key: &Key) -> Option<&Document> {
        self.documents.get(key)?.document.as_ref()
    }

    /// Writes a parsed document.
    pub(crate) fn set(&mut self, key: &Key, document: Document) -> Result<(), StoreError> {
        self.write(key, Some(document))
    }

    /// Removes a document, if there is one.
    ///
    /// # Errors
    /// [`StoreError::NotLocked`] if the change did not name the key.
    pub fn remove(&mut self, key: &Key) -> Result<(), StoreError> {
        self.write(key, None)
    }

    /// Adds a new document of a run under a key that the change did not name. The store does not read this key first.
    ///
    /// # Errors
    /// [`StoreError::NotLocked`] if the change named no key of the run.
    pub(crate) fn add(&mut self, key: Key, document: Document) -> Result<(), StoreError> {
        if !self.documents.keys().any(|named| named.locks_run(key.scope())) {
            return Err(StoreError::NotLocked);
        }
        self.documents.insert(key, Slot { document: Some(document), changed: true });
        Ok(())
    }

    /// Appends a record to the chain of its run.
    ///
    /// # Errors
    /// [`StoreError::NotLocked`] if the change named no key of the run. [`StoreError::RunPurged`] if the change named
    /// the key of the run, [`Key::run`], and the run was purged or erased: such a run accepts only records of removals.
    /// Also [`StoreError::RunPurged`] if the run is `tool-runtime:retention`, and the record is not that of a removal
    /// or a legal hold.
    pub fn append(&mut self, record: impl Into<AuditRecord>) -> Result<(), StoreError> {
        let record = record.into();
        if record.as_retention().is_none() {
            self.refuse_purged(record.run_id())?;
        }
        self.append_anyway(record)
    }

    /// Appends a record, also to a run that was purged or erased.
    pub(in crate::store) fn append_anyway(&mut self, record: impl Into<AuditRecord>) -> Result<(), StoreError> {
        let record = record.into();
        self.locks(record.run_id())?;
        self.records.push(record);
        Ok(())
    }

    /// Returns [`StoreError::RunPurged`] if a run was purged or erased. The change has to name the key of the run.
    pub(crate) fn refuse_purged(&self, run_id: &str) -> Result<(), StoreError> {
        let is_mark = |(key, slot): (&Key, &Slot)| {
            matches!(slot.document, Some(Document::Purged { .. })) && key.locks_run(run_id)
        };
        let is_closed = run_id == RETENTION_RUN || self.documents.iter().any(is_mark);
        if is_closed { Err(StoreError::RunPurged) } else { Ok(()) }
    }

    /// Closes a run that has no open or waiting calls, and removes its calls and messages. With `end`, the end of its
    /// chain, its records are removed, too.
    pub(crate) fn close(&mut self, run_id: Arc<str>, end: Option<Chain>) -> Result<(), StoreError> {
        self.locks(&run_id)?;
        self.closed.push((run_id, end));
        Ok(())
    }

    /// Replaces the contents of the record with the run, place and hash of `sealed`.
    pub(crate) fn erase(&mut self, sealed: SealedRecord) -> Result<(), StoreError> {
        self.locks(sealed.record.run_id())?;
        self.erased.push(sealed);
        Ok(())
    }

    /// Whether the transaction closes runs or changes existing records.
    pub(crate) const fn changes_records(&self) -> bool {
        !(self.closed.is_empty() && self.erased.is_empty())
    }

    fn locks(&self, run_id: &str) -> Result<(), StoreError> {
        let is_locked = self.documents.keys().any(|key| key.locks_run(run_id));
        if is_locked { Ok(()) } else { Err(StoreError::NotLocked) }
    }

    /// Runs a change. The store then writes the result of [`into_writes`](Self::into_writes).
    ///
    /// # Errors
    /// The error of the change, or [`StoreError::Panicked`] if it panicked. In either case the store must write
    /// nothing.
    pub fn run(mut self, change: &mut ChangeFn) -> Result<Self, StoreError> {
        attempted(|| change(&mut self)).unwrap_or(Err(StoreError::Panicked))?;
        Ok(self)
    }

    /// Whether a changed document is due now, so that tasks in [`Store::changed`](crate::store::Store::changed) must be
    /// woken. Notices wake no task, because the workers that wait there do not send them.
    #[must_use]
    pub fn wakes(&self) -> bool {
        let due = |document: &Document| document.due().is_some_and(|due| due <= self.now);
        let wakes = |document: &Document| !matches!(document, Document::Notice(_)) && due(document);
        self.documents.values().any(|slot| slot.changed && slot.document.as_ref().is_some_and(wakes))
    }

    /// Returns the writes. The store makes them in one transaction, in this order:
    ///
    /// 1. The documents that changed. `None` removes a document. New documents can have keys that the change did not
    ///    name, but only keys with a [lock](Key::lock) that the change holds.
    /// 2. The runs to close. In such a run, no document of the kinds [`Call`](crate::store::DocumentKind::Call) and
    ///    [`Waiting`](crate::store::DocumentKind::Waiting) may have a [due time](crate::store::StoredDocument::due).
    ///    Its documents of the kinds `Call`, `Waiting`, [`Decided`](crate::store::DocumentKind::Decided),
    ///    [`Post`](crate::store::DocumentKind::Post) and [`Notice`](crate::store::DocumentKind::Notice) are removed.
    ///    With a [`Chain`], the chain of the run must end there; all its records are removed, too, and the next record
    ///    of the run follows that end.
    /// 3. The records whose contents are replaced. The run must have a record at the place and with the hash of the
    ///    [`SealedRecord`], whose place, hashes and position stay.
    /// 4. The records to append, each to the chain of its run.
    ///
    /// If a condition does not hold, the store writes nothing and returns [`StoreError::Fenced`].
    #[must_use]
    pub fn into_writes(self) -> TransactionWrites {
        let changed = self.documents.into_iter().filter(|(_, slot)| slot.changed);
        let stored = |(key, slot): (Key, Slot)| {
            let document = slot.document.map(|document| StoredDocument::new(key.clone(), document));
            (key, document)
        };
        (changed.map(stored).collect(), self.closed, self.erased, self.records)
    }

    fn write(&mut self, key: &Key, document: Option<Document>) -> Result<(), StoreError> {
        let slot = self.documents.get_mut(key).ok_or(StoreError::NotLocked)?;
        *slot = Slot { document, changed: true };
        Ok(())
    }
}
