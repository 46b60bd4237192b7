//! Holds runs back after a restore from a backup. Exported anchors identify the runs that had continued after the
//! backup.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::finding::Wrong;
use crate::store::{Anchor, Document, Finding, Key, RecordFilter, RetentionRecord, Store, StoreError, Transaction};
use crate::tool::Hash;

/// The number of records that are read at a time.
const PAGE: usize = 500;

/// The last anchored record of a run, and the number of records that the store has of this run.
struct Expected {
    sequence: u64,
    hash: Hash,
    is_there: bool,
    found: u64,
}

impl dyn Store + '_ {
    /// Compares a restored store with anchors that were exported before the restore. Each run that is behind its anchor
    /// is held back, so that no worker continues it before [`release_run`](trait@Store#method.release_run). Call this
    /// function before workers start. Each [`Finding`] names the anchored record and [the number of records that the
    /// store has](Finding::behind).
    ///
    /// Calls that such a run made after the backup may have taken effect without a trace in the store. A worker would
    /// query the model again and could repeat these calls, with new ids and new idempotency keys. Runs whose later
    /// records are in no anchor cannot be found, so a shorter interval between anchors finds more of them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tool_runtime::store::{MemoryStore, Store};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    /// let mut exported = Vec::new();
    /// store.anchor(|anchor| exported.push(anchor.clone())).await?;
    /// assert!(store.hold_back(&exported).await?.is_empty(), "nothing is behind");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if an anchor was changed after it was made. The store cannot be reached, or its
    /// documents cannot be read. Runs that were held back before the error stay held back.
    pub async fn hold_back(&self, anchors: &[Anchor]) -> Result<Vec<Finding>, StoreError> {
        let mut expected: BTreeMap<Arc<str>, Expected> = BTreeMap::new();
        for anchor in anchors {
            if !anchor.is_whole() {
                return Err(StoreError::Corrupt(
                    format!("anchor {} was changed after it was made", anchor.number).into(),
                ));
            }
            for head in &anchor.heads {
                let entry = expected.entry(Arc::clone(&head.run_id));
                let last = entry.or_insert(Expected { sequence: 0, hash: head.hash, is_there: false, found: 0 });
                // If a run is in several anchors, its last head is used.
                if head.sequence >= last.sequence {
                    (last.sequence, last.hash) = (head.sequence, head.hash);
                }
            }
        }
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::default() };
        loop {
            let page = self.records(&filter).await?;
            for sealed in &page {
                if let Some(expected) = expected.get_mut(&**sealed.record.run_id()) {
                    expected.found += 1;
                    expected.is_there |= sealed.sequence == expected.sequence && sealed.hash == expected.hash;
                    // A purge removed the anchored record.
                    let purged = sealed.record.as_retention().and_then(RetentionRecord::purged);
                    expected.is_there |= purged.is_some_and(|(end, ..)| end > expected.sequence);
                }
            }
            let Some(last) = page.last() else { break };
            filter.after = last.position;
        }
        let mut behind = Vec::new();
        for (run_id, Expected { sequence, found, .. }) in
            expected.into_iter().filter(|(_, expected)| !expected.is_there)
        {
            let held_back = mark(self, &run_id, true).await?;
            behind.push(Wrong::Behind { run_id, sequence, found, held_back }.into());
        }
        Ok(behind)
    }

    /// Lets workers continue a run that [`hold_back`](trait@Store#method.hold_back) held back, once a person has
    /// checked its effects since the backup. Returns whether the store has the document of the run, from which workers
    /// continue it.
    ///
    /// # Errors
    /// The store cannot be reached, or its documents cannot be read.
    pub async fn release_run(&self, run_id: &str) -> Result<bool, StoreError> {
        mark(self, run_id, false).await
    }
}

async fn mark(store: &dyn Store, run_id: &str, held_back: bool) -> Result<bool, StoreError> {
    let key = Key::run_head(run_id);
    let named = key.clone();
    let change = move |transaction: &mut Transaction| {
        let Some(Document::Run(run)) = transaction.get(&named) else { return Err(StoreError::Fenced) };
        let mut run = run.clone();
        run.held_back = held_back;
        transaction.set(&named, Document::Run(run))
    };
    match store.update(vec![key], Box::new(change)).await {
        Ok(()) => Ok(true),
        Err(StoreError::Fenced) => Ok(false),
        Err(error) => Err(error),
    }
}
