//! Checking all chains and the anchors over them, a page at a time.
//!
//! What is remembered is the head of each run and the anchored heads, never a record.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::store::anchors::{Anchor, only};
use crate::store::chain::{Chain, ChainError};
use crate::store::finding::Finding;
use crate::store::{Document, Key, Query, RecordFilter, Sealed, Space, Store, StoreError};
use crate::tool::Hash;

/// How many records are read at a time.
const PAGE: usize = 500;

/// How many anchors are read at a time; each has at most a thousand heads.
const ANCHORS: usize = 16;

/// What was checked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) records: u64,
    pub(crate) runs: u64,
    pub(crate) anchors: u64,
    /// Runs whose last record no anchor holds yet.
    pub(crate) unanchored: u64,
}

/// Why records are not what was sealed, or were not checked.
#[derive(Debug)]
#[cfg_attr(not(any(feature = "cli", test)), expect(dead_code, reason = "read by the command line and by tests"))]
pub(crate) enum VerifyError {
    Found(Finding),
    Store(StoreError),
}

impl From<Finding> for VerifyError {
    fn from(finding: Finding) -> Self {
        Self::Found(finding)
    }
}

impl From<StoreError> for VerifyError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Corrupt(source) => match source.downcast_ref::<ChainError>() {
                Some(found) => Self::Found(found.clone().into()),
                None => Self::Store(error),
            },
            _ => Self::Store(error),
        }
    }
}

impl From<ChainError> for Finding {
    fn from(error: ChainError) -> Self {
        Self::Record { run_id: error.run_id, sequence: error.sequence, broken: error.broken }
    }
}

/// Anchored heads of a run, by their place, with the number of an anchor.
type Heads = BTreeMap<u64, (Hash, u64)>;

/// Checks records one after the other, each run's in their order.
pub(crate) struct Verifier {
    /// The first record of a run may follow others that are not given.
    part: bool,
    chains: HashMap<Arc<str>, Followed>,
    heads: HashMap<Arc<str>, Heads>,
    checked: Checked,
}

struct Followed {
    chain: Chain,
    /// The last place that an anchor holds.
    anchored: Option<u64>,
    /// It was read on its own, so that records may come that were checked already.
    ahead: bool,
}

impl Verifier {
    pub(crate) fn new(part: bool) -> Self {
        Self { part, chains: HashMap::new(), heads: HashMap::new(), checked: Checked::default() }
    }

    /// Takes what an anchor says of the records that follow.
    pub(crate) fn expect(&mut self, anchor: &Anchor) -> Result<(), Finding> {
        if !anchor.is_whole() {
            return Err(Finding::Anchor { number: anchor.number, wrong: "it was changed after it was made" });
        }
        self.checked.anchors += 1;
        for head in &anchor.heads {
            let heads = self.heads.entry(Arc::clone(&head.run_id)).or_default();
            let (hash, _) = *heads.entry(head.sequence).or_insert((head.hash, anchor.number));
            if hash != head.hash {
                let (run_id, sequence) = (Arc::clone(&head.run_id), head.sequence);
                return Err(Finding::NotAnchored { run_id, sequence, anchor: anchor.number });
            }
        }
        Ok(())
    }

    pub(crate) fn follow(&mut self, sealed: &Sealed) -> Result<(), Finding> {
        let run_id = sealed.record.run_id();
        let followed = self.chains.entry(Arc::clone(run_id)).or_insert_with(|| {
            let before = sealed.sequence.checked_sub(1).filter(|_| self.part);
            let chain = before.map_or_else(Chain::new, |before| Chain::after(before, sealed.previous));
            Followed { chain, anchored: None, ahead: false }
        });
        if followed.ahead && sealed.sequence < followed.chain.next() {
            return Ok(());
        }
        let (run_id, sequence) = (Arc::clone(run_id), sealed.sequence);
        if let Err(broken) = followed.chain.follow(sealed) {
            return Err(Finding::Record { run_id, sequence, broken });
        }
        self.checked.records += 1;
        if let Some((hash, anchor)) = self.heads.get(&run_id).and_then(|heads| heads.get(&sequence)) {
            if *hash != sealed.hash {
                return Err(Finding::NotAnchored { run_id, sequence, anchor: *anchor });
            }
            followed.anchored = Some(sequence);
        }
        Ok(())
    }

    /// Ends: what anchors hold behind the end of a chain is missing.
    pub(crate) fn finish(mut self) -> Result<Checked, Finding> {
        let cut = self.heads.iter().filter_map(|(run_id, heads)| {
            let end = match self.chains.get(run_id) {
                Some(followed) => followed.chain.next(),
                // A part need not have every run.
                None if self.part => return None,
                None => 0,
            };
            let (_, (_, anchor)) = heads.range(end..).next()?;
            Some((*anchor, Arc::clone(run_id), end))
        });
        if let Some((anchor, run_id, sequence)) = cut.min() {
            return Err(Finding::Cut { run_id, sequence, anchor });
        }
        let is_open = |followed: &&Followed| followed.anchored.is_none_or(|last| last + 1 < followed.chain.next());
        self.checked.unanchored = self.chains.values().filter(is_open).count() as u64;
        self.checked.runs = self.chains.len() as u64;
        Ok(self.checked)
    }

    /// Reads a run on its own. While others write, a page can miss a record that a later page makes look removed; in the
    /// pages of one run that cannot happen.
    async fn again(&mut self, store: &dyn Store, run_id: &Arc<str>) -> Result<(), VerifyError> {
        let mut alone = Self::new(self.part);
        alone.heads.extend(self.heads.remove_entry(run_id));
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::run(Arc::clone(run_id)) };
        loop {
            let page = store.records(&filter).await?;
            page.iter().try_for_each(|sealed| alone.follow(sealed))?;
            let Some(last) = page.last() else { break };
            filter.after = last.position;
        }
        let before = self.chains.remove(run_id).map_or(0, |followed| followed.chain.next());
        self.checked.records += alone.checked.records.saturating_sub(before);
        self.heads.extend(alone.heads);
        let followed = alone.chains.into_iter();
        self.chains.extend(followed.map(|(run_id, followed)| (run_id, Followed { ahead: true, ..followed })));
        Ok(())
    }
}

/// Checks everything that a store holds. `kept` are anchors that were exported: each has to be in the store as it was.
/// Where one is not, the records that it holds are looked for first: what was lost says more than that its anchor is lost.
pub(crate) async fn verify(
    store: &dyn Store,
    kept: &[Anchor],
    mut progress: impl FnMut(u64) + Send,
) -> Result<Checked, VerifyError> {
    let mut verifier = Verifier::new(false);
    let lost = anchors(store, kept, &mut verifier).await?;
    let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::default() };
    loop {
        let page = store.records(&filter).await?;
        for sealed in &page {
            if verifier.follow(sealed).is_err() {
                verifier.again(store, sealed.record.run_id()).await?;
            }
        }
        progress(verifier.checked.records);
        match page.last() {
            Some(last) => filter.after = last.position,
            None => break,
        }
    }
    let checked = verifier.finish()?;
    lost.map_or(Ok(checked), |finding| Err(finding.into()))
}

/// Checks the chain of anchors, and takes what they say. Returns the first of the exported ones that is not in the store
/// as it was.
async fn anchors(store: &dyn Store, kept: &[Anchor], verifier: &mut Verifier) -> Result<Option<Finding>, VerifyError> {
    let mut lost = None;
    let mut kept: BTreeMap<u64, &Anchor> = kept.iter().map(|anchor| (anchor.number, anchor)).collect();
    let (mut next, mut previous) = (0, Hash([0; 32]));
    let mut query = Query { limit: ANCHORS, ..Query::new(Space::Anchor) };
    loop {
        let page = store.list(&query).await?;
        let Some(end) = page.last().map(|listed| listed.position) else { break };
        query.after = end;
        for listed in page {
            let Document::Anchor(anchor) = listed.document else { continue };
            let wrong = |wrong| Err(VerifyError::Found(Finding::Anchor { number: anchor.number, wrong }));
            if anchor.number > next {
                let wrong = "it was removed, and a later one is there";
                return Err(Finding::Anchor { number: next, wrong }.into());
            }
            if anchor.number < next || anchor.previous != previous {
                return wrong("it does not follow the anchor before it: one of them was replaced");
            }
            if let Some(kept) = kept.remove(&anchor.number).filter(|kept| kept.hash != anchor.hash) {
                verifier.expect(kept)?;
                let wrong = "it is not the one that was exported: the anchors were made anew";
                lost.get_or_insert(Finding::Anchor { number: anchor.number, wrong });
            }
            verifier.expect(&anchor)?;
            (next, previous) = (anchor.number + 1, anchor.hash);
        }
    }
    for (number, anchor) in kept {
        verifier.expect(anchor)?;
        let wrong = "it was exported and is not in the store: the last anchors were removed";
        lost.get_or_insert(Finding::Anchor { number, wrong });
    }
    let wrong = |number, wrong| Err(VerifyError::Found(Finding::Anchor { number, wrong }));
    match only(store, Key::last_anchor()).await? {
        None if next == 0 => Ok(lost),
        Some(last) if last.number + 1 == next && last.hash == previous => Ok(lost),
        // It was made since the others were read.
        Some(last) if last.number >= next && only(store, Key::anchor(last.number)).await?.is_some() => Ok(lost),
        Some(last) if last.number >= next => wrong(next, "it was removed, and the end of the anchors tells of it"),
        _ => wrong(next.saturating_sub(1), "the end of the anchors is not this one: it was changed"),
    }
}
