//! An anchor lists runs with their heads: the head of a run is the place and the hash of its last record. Anchors form
//! a separate chain. The chain of a run reveals gaps in its middle. Only an anchor reveals that the last records of a
//! run were removed, or that they were replaced and sealed again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::store::document::{Anchor, AnchoredHead};
use crate::store::{Document, Key, RecordFilter, Store, StoreError, Transaction};

/// The number of records that are read at a time, which is also the maximum number of heads in one anchor.
const PAGE: usize = 1000;

/// The time span of records that are read again. A record gets its position before it is committed, so a record that is
/// committed late can have a lower position than an anchor that does not contain it. A record that commits even later
/// is anchored with the next record of its run, because a head covers every record before it.
const OVERLAP: Duration = Duration::from_secs(300);

/// The maximum number of anchored heads that are kept in memory, so that they are not anchored again. Other heads may
/// be anchored twice, which is harmless.
const MOST_KNOWN: usize = 65_536;

/// The maximum number of restarts because another process made an anchor meanwhile. Each restart means one more anchor,
/// so a few dozen restarts show that another process makes anchors in an endless loop.
const MOST_RACES: usize = 64;

impl dyn Store + '_ {
    /// Anchors the records since the last anchor. Returns the number of anchors that were made, 0 if there were no new
    /// records. `made` receives each anchor after it is stored.
    ///
    /// A worker calls this on a timer. A service without workers calls it itself, for example once a minute, in one
    /// process or in several. Records after the last anchor can be removed without a trace, so a shorter interval
    /// protects more of them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tool_runtime::store::{MemoryStore, Store};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    /// let mut exported = Vec::new();
    /// let count = store.anchor(|anchor| exported.extend(serde_json::to_string(anchor))).await?;
    /// assert_eq!((count, exported.len()), (0, 0), "nothing was recorded");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store cannot be reached, its contents cannot be read, or other processes anchor in an endless loop
    /// ([`StoreError::Busy`]). Anchors made before the error stay.
    pub async fn anchor(&self, mut made: impl FnMut(&Anchor) + Send) -> Result<u64, StoreError> {
        let mut count = 0;
        'race: for _ in 0..MOST_RACES {
            let mut window = Window::read(self).await?;
            loop {
                let filter = RecordFilter { after: window.after, limit: Some(PAGE), ..RecordFilter::default() };
                let page = self.records(&filter).await?;
                let Some(end) = page.last().map(|last| last.position) else { return Ok(count) };
                // The records of a run come in order, so the last one collected is its head.
                let heads: BTreeMap<_, _> =
                    page.iter().map(|sealed| (sealed.record.run_id(), (sealed.sequence, sealed.hash))).collect();
                let heads = heads.into_iter().map(|(run, (sequence, hash))| AnchoredHead {
                    run_id: Arc::clone(run),
                    sequence,
                    hash,
                });
                let heads: Vec<_> = heads.filter(|head| window.is_new(head)).collect();
                window.after = end;
                if heads.is_empty() {
                    continue;
                }
                let Some(anchor) = write(self, window.last.clone(), end, heads).await? else { continue 'race };
                made(&anchor);
                count += 1;
                window.add(&anchor);
                window.last = Some(anchor);
            }
        }
        Err(StoreError::Busy)
    }
}

/// The recent anchors: the position up to which all records are anchored, and the anchored heads after it.
#[derive(Default)]
struct Window {
    last: Option<Anchor>,
    /// Records up to this position are anchored, including late ones.
    after: u64,
    /// The anchored heads after that position.
    known: HashMap<Arc<str>, u64>,
}

impl Window {
    /// Reads back to an anchor that is so old that every record before its position was committed when the last anchor
    /// was made. The times in records are not used.
    async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let mut window = Self { last: only(store, Key::last_anchor()).await?, ..Self::default() };
        let Some(last) = window.last.clone() else { return Ok(window) };
        let sure = last.at.saturating_sub(OVERLAP).unwrap_or(Timestamp::MIN);
        for number in (0..=last.number).rev() {
            let anchor = match only(store, Key::anchor(number)).await {
                Ok(Some(anchor)) => anchor,
                // A bounded store drops the oldest anchors. Their heads are treated as not anchored.
                Ok(None) => break,
                // The heads of an unreadable anchor are anchored again. Otherwise no anchor could ever be made after
                // it.
                Err(StoreError::Corrupt(_)) => continue,
                Err(error) => return Err(error),
            };
            if anchor.at <= sure {
                window.after = anchor.position;
                break;
            }
            window.add(&anchor);
        }
        Ok(window)
    }

    fn add(&mut self, anchor: &Anchor) {
        for head in &anchor.heads {
            if self.known.len() >= MOST_KNOWN && !self.known.contains_key(&head.run_id) {
                continue;
            }
            let known = self.known.entry(Arc::clone(&head.run_id)).or_insert(head.sequence);
            *known = head.sequence.max(*known);
        }
    }

    fn is_new(&self, head: &AnchoredHead) -> bool {
        self.known.get(&head.run_id).is_none_or(|known| *known < head.sequence)
    }
}

pub(super) async fn only(store: &dyn Store, key: Key) -> Result<Option<Anchor>, StoreError> {
    Ok(match store.read(&[key]).await?.pop().flatten().map(|stored| stored.document) {
        Some(Document::Anchor(anchor) | Document::LastAnchor(anchor)) => Some(*anchor),
        _ => None,
    })
}

/// Makes the next anchor. `None` if another process has made one after `last`.
async fn write(
    store: &dyn Store,
    last: Option<Anchor>,
    position: u64,
    heads: Vec<AnchoredHead>,
) -> Result<Option<Anchor>, StoreError> {
    let next = Key::anchor(last.as_ref().map_or(0, |last| last.number.saturating_add(1)));
    let made = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&made);
    let change = move |transaction: &mut Transaction| {
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = add(transaction, last.as_ref(), position, &heads)?;
        Ok(())
    };
    store.update(vec![Key::last_anchor(), next], Box::new(change)).await?;
    let made = made.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(made)
}

/// Adds an anchor after `last`. `None` if `last` is no longer the last one.
fn add(
    transaction: &mut Transaction,
    last: Option<&Anchor>,
    position: u64,
    heads: &[AnchoredHead],
) -> Result<Option<Anchor>, StoreError> {
    let end = match transaction.get(&Key::last_anchor()) {
        Some(Document::LastAnchor(anchor)) => Some(&**anchor),
        _ => None,
    };
    if end != last {
        return Ok(None);
    }
    if transaction.get(&Key::anchor(last.map_or(0, |last| last.number.saturating_add(1)))).is_some() {
        return Err(StoreError::Corrupt("the stored end of the anchors is not the last anchor".into()));
    }
    let anchor = Anchor::after(last, transaction.now(), position, heads.to_vec())?;
    transaction.set(&Key::anchor(anchor.number), Document::Anchor(Box::new(anchor.clone())))?;
    transaction.set(&Key::last_anchor(), Document::LastAnchor(Box::new(anchor.clone())))?;
    Ok(Some(anchor))
}
