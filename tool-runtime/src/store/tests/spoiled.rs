//! Each store breaks one guarantee. The conformance tests find every such store, and each case finds at least one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::store::conformance::CASES;
use crate::store::{
    AuditRecord, ChangeFn, DueRun, Key, MemoryStore, Query, RecordFilter, SealedRecord, Store, StoreError,
    StoredDocument, Transaction, WriteHandle,
};

/// The defect of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// A page of documents is longer than its limit.
    ListsWhole,
    /// Records are not stored.
    ForgetsRecords,
    /// Records whose handles were dropped come in any order.
    AppendsInAnyOrder,
    /// A page of records has all records.
    ReadsRecordsWhole,
    /// Only run and call of a filter are applied.
    ReadsRecordsOfAllKinds,
    /// A change that returned an error is written.
    WritesWhatWasRefused,
    /// A change that returned an error is reported as stored.
    SwallowsErrors,
    /// No lock is held between reading and writing.
    LocksNothing,
    /// A write whose handle was dropped is not written.
    DropsWithTheReceipt,
    /// A removed document is still there.
    RemovesNothing,
    /// Documents are listed in the order of their keys.
    ListsByKey,
    /// Documents are listed even if they are not due.
    ListsWhatIsNotDue,
    /// Documents of all scopes are listed.
    ListsAllScopes,
    /// No waiting task is ever woken.
    NeverWakes,
    /// Texts are cut at U+0000.
    CutsTexts,
    /// Numbers are stored as floating point.
    RoundsNumbers,
    /// Keys are truncated.
    CutsKeys,
    /// Large documents are lost.
    DropsLargeDocuments,
    /// `now` differs from the time of its transactions.
    HasTwoClocks,
    /// Records that exist are not changed.
    ChangesNoRecords,
    /// A single record is appended to a run that no longer accepts records.
    AppendsToClosedRuns,
    /// Due runs are listed without their lanes.
    ForgetsLanes,
    /// Runs and lanes are listed in pages of a hundred.
    ListsAHundred,
}

const FAULTS: [Fault; 23] = [
    Fault::AppendsToClosedRuns,
    Fault::ChangesNoRecords,
    Fault::ListsAHundred,
    Fault::HasTwoClocks,
    Fault::ForgetsLanes,
    Fault::ListsWhole,
    Fault::ForgetsRecords,
    Fault::AppendsInAnyOrder,
    Fault::ReadsRecordsWhole,
    Fault::ReadsRecordsOfAllKinds,
    Fault::WritesWhatWasRefused,
    Fault::SwallowsErrors,
    Fault::LocksNothing,
    Fault::DropsWithTheReceipt,
    Fault::RemovesNothing,
    Fault::ListsByKey,
    Fault::ListsWhatIsNotDue,
    Fault::ListsAllScopes,
    Fault::NeverWakes,
    Fault::CutsTexts,
    Fault::RoundsNumbers,
    Fault::CutsKeys,
    Fault::DropsLargeDocuments,
];

struct Spoiled(Arc<MemoryStore>, Fault);

/// Returns the document as the faulty database stores it.
fn spoiled(document: StoredDocument, fault: Fault) -> Option<StoredDocument> {
    let text = document.to_json().unwrap();
    let read = |text: &str| StoredDocument::from_json(document.key.clone(), text).ok();
    match fault {
        Fault::CutsTexts => read(&text.replace("\\u0000", "")),
        Fault::RoundsNumbers => read(&text.replace(&u64::MAX.to_string(), "18446744073709550000")),
        Fault::DropsLargeDocuments => (text.len() < 1 << 20).then_some(document),
        _ => Some(document),
    }
}

impl Spoiled {
    fn key(&self, key: Key) -> Key {
        let cut = |text: &Arc<str>| text.chars().take(1000).collect::<String>();
        if self.1 != Fault::CutsKeys {
            return key;
        }
        Key::from_parts(key.kind(), cut(key.scope()), cut(key.id()))
    }

    fn after_a_while(&self, write: impl FnOnce(&MemoryStore) -> WriteHandle + Send + 'static) -> WriteHandle {
        let (sender, receiver) = oneshot::channel();
        let (store, fault) = (Arc::clone(&self.0), self.1);
        tokio::spawn(async move {
            let millis = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
            sleep(Duration::from_millis(millis)).await;
            if fault != Fault::DropsWithTheReceipt || !sender.is_closed() {
                drop(sender.send(write(&store).await));
            }
        });
        WriteHandle::new(receiver)
    }

    fn change(&self, keys: Vec<Key>, mut change: ChangeFn) -> WriteHandle {
        let fault = self.1;
        let named = keys.clone();
        let changed = move |transaction: &mut Transaction| {
            let refused = change(transaction);
            let whole = std::mem::replace(transaction, Transaction::new(transaction.now(), []));
            let (documents, closed, erased, records) = whole.into_writes();
            *transaction = Transaction::new(transaction.now(), named.iter().map(|key| (key.clone(), None)));
            if refused.is_err() && fault != Fault::WritesWhatWasRefused {
                return refused;
            }
            for (key, document) in documents {
                match document.map(|document| spoiled(document, fault)) {
                    Some(Some(document)) => transaction.put(document)?,
                    Some(None) => {}
                    None if fault == Fault::RemovesNothing => {}
                    None => transaction.remove(&key)?,
                }
            }
            if fault != Fault::ChangesNoRecords {
                closed.into_iter().try_for_each(|(run, end)| transaction.close(run, end))?;
                erased.into_iter().try_for_each(|sealed| transaction.erase(sealed))?;
            }
            records.into_iter().filter(|_| fault != Fault::ForgetsRecords).for_each(|record| {
                drop(transaction.append(record));
            });
            Ok(())
        };
        self.0.update(keys, Box::new(changed))
    }

    fn page(&self, limit: usize) -> usize {
        match self.1 {
            Fault::ListsWhole => usize::MAX,
            Fault::ListsAHundred => limit.min(100),
            _ => limit,
        }
    }

    /// Reads, runs the change, and writes later, so that a write in between is lost.
    fn without_locks(&self, keys: Vec<Key>, mut change: ChangeFn) -> WriteHandle {
        let (sender, receiver) = oneshot::channel();
        let store = Arc::clone(&self.0);
        tokio::spawn(async move {
            let documents = store.read(&keys).await.unwrap();
            let mut transaction = Transaction::new(Timestamp::now(), keys.iter().cloned().zip(documents));
            let changed = change(&mut transaction);
            sleep(Duration::from_millis(1)).await;
            let answer = match changed {
                Err(error) => Err(error),
                Ok(()) => {
                    let (documents, _, _, records) = transaction.into_writes();
                    for record in records {
                        store.append(record).await.unwrap();
                    }
                    for (key, document) in documents {
                        let set = move |transaction: &mut Transaction| match &document {
                            Some(document) => transaction.put(document.clone()),
                            None => transaction.remove(&key),
                        };
                        store.update(keys.clone(), Box::new(set)).await.unwrap();
                    }
                    Ok(())
                }
            };
            drop(sender.send(answer));
        });
        WriteHandle::new(receiver)
    }
}

#[async_trait]
impl Store for Spoiled {
    fn append(&self, record: AuditRecord) -> WriteHandle {
        match self.1 {
            Fault::ForgetsRecords => WriteHandle::ready(Ok(())),
            Fault::AppendsToClosedRuns => {
                // The change does not name the key of the run, so it does not find the mark.
                let key = Key::call(Arc::clone(record.run_id()), crate::tool::Hash([0; 32]));
                self.0.update(vec![key], Box::new(move |transaction| transaction.append(record.clone())))
            }
            Fault::AppendsInAnyOrder | Fault::DropsWithTheReceipt => {
                self.after_a_while(move |store| store.append(record))
            }
            _ => self.0.append(record),
        }
    }

    fn update(&self, keys: Vec<Key>, change: ChangeFn) -> WriteHandle {
        match self.1 {
            Fault::LocksNothing => self.without_locks(keys, change),
            Fault::DropsWithTheReceipt => self.after_a_while(move |store| store.update(keys, change)),
            Fault::SwallowsErrors => {
                drop(self.change(keys, change));
                WriteHandle::ready(Ok(()))
            }
            Fault::CutsKeys => {
                // Truncated keys collide: a change finds the document of another key.
                let (named, mut change) = (keys.clone(), change);
                let cut: Vec<_> = keys.into_iter().map(|key| self.key(key)).collect();
                let names = cut.clone();
                let inner = move |transaction: &mut Transaction| {
                    let documents = named.iter().zip(&names).map(|(key, cut)| (key.clone(), transaction.document(cut)));
                    let mut whole = Transaction::new(transaction.now(), documents.collect::<Vec<_>>());
                    change(&mut whole)?;
                    let (documents, _, _, _) = whole.into_writes();
                    for (key, document) in documents {
                        let place = named.iter().position(|named| *named == key).unwrap();
                        match document {
                            Some(mut document) => {
                                document.key = names[place].clone();
                                transaction.put(document)?;
                            }
                            None => transaction.remove(&names[place])?,
                        }
                    }
                    Ok(())
                };
                self.0.update(cut, Box::new(inner))
            }
            _ => self.change(keys, change),
        }
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        let keys: Vec<_> = keys.iter().map(|key| self.key(key.clone())).collect();
        self.0.read(&keys).await
    }

    async fn list(&self, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
        let mut query = query.clone();
        match self.1 {
            Fault::ListsWhatIsNotDue => query.due = None,
            Fault::ListsAllScopes => query.scope = None,
            Fault::ListsWhole => query.limit = usize::MAX,
            _ => {}
        }
        let mut listed = self.0.list(&query).await?;
        if self.1 == Fault::ListsByKey {
            listed.sort_by(|one, two| one.key.cmp(&two.key));
        }
        Ok(listed)
    }

    async fn records(&self, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
        let RecordFilter { run_id, call_id, after, limit, .. } = filter.clone();
        self.0
            .records(&match self.1 {
                Fault::ReadsRecordsWhole => RecordFilter { limit: None, ..filter.clone() },
                Fault::ReadsRecordsOfAllKinds => {
                    RecordFilter { run_id, call_id, after, limit, ..RecordFilter::default() }
                }
                _ => filter.clone(),
            })
            .await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let ahead = if self.1 == Fault::HasTwoClocks { Duration::from_secs(3_600) } else { Duration::ZERO };
        Ok(self.0.now().await? + ahead)
    }

    async fn changed(&self) {
        match self.1 {
            Fault::NeverWakes => std::future::pending().await,
            _ => self.0.changed().await,
        }
    }

    async fn due_runs(&self, now: Timestamp, lane: Option<&str>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        let mut runs = self.0.due_runs(now, lane, self.page(limit)).await?;
        if self.1 == Fault::ForgetsLanes {
            runs.iter_mut().for_each(|run| run.lane = "".into());
        }
        Ok(runs)
    }

    async fn lanes(&self, now: Timestamp, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        self.0.lanes(now, after, self.page(limit)).await
    }
}

#[tokio::test(start_paused = true)]
async fn every_broken_store_is_found_and_every_case_finds_one() {
    let (mut by_fault, mut by_case) = (BTreeSet::new(), BTreeSet::new());
    for fault in FAULTS {
        for (name, case) in CASES {
            if by_fault.contains(&fault) && by_case.contains(name) {
                continue;
            }
            let store = Arc::new(Spoiled(Arc::new(MemoryStore::with_limits(10_000, 10_000)), fault));
            // A case that waits forever for a broken store counts as failed, too.
            let failed = tokio::time::timeout(Duration::from_secs(60), tokio::spawn(case(store))).await;
            if failed.is_err() || failed.is_ok_and(|joined| joined.is_err()) {
                by_fault.insert(fault);
                by_case.insert(*name);
            }
        }
    }
    let unfound: Vec<_> = FAULTS.iter().filter(|fault| !by_fault.contains(fault)).collect();
    let idle: Vec<_> = CASES.iter().map(|(name, _)| *name).filter(|name| !by_case.contains(name)).collect();
    assert_eq!((unfound, idle), (vec![], Vec::<&str>::new()));
}
