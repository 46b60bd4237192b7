//! Checking all chains and the anchors over them, a page at a time.
//!
//! It remembers the head of each run, the anchored heads and the findings, never a record. A finding does not end the
//! check: one unreadable record would hide every other edit.

mod anchored;
pub(crate) mod page;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::store::anchors::Anchor;
use crate::store::chain::{Broken, Chain, ChainError};
use crate::store::finding::Finding;
use crate::store::verify::anchored::anchors;
use crate::store::verify::page::page;
use crate::store::{RecordFilter, SealedRecord, Store, StoreError};
use crate::tool::Hash;

/// How many records are read at a time.
const PAGE: usize = 500;

/// How many findings are kept. Of a store in which more is wrong, the rest is not read.
const MOST_FINDINGS: usize = 1000;

/// How many ids of keys are distinguished.
const MOST_KEYS: usize = 16;

/// What was checked.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) records: u64,
    pub(crate) runs: u64,
    pub(crate) anchors: u64,
    /// Runs whose last record no anchor holds yet.
    pub(crate) unanchored: u64,
    /// The ids of the keys with which digests of arguments were made.
    pub(crate) digest_keys: BTreeSet<String>,
}

/// Why records are not what was sealed, or were not checked.
#[derive(Debug)]
pub(crate) enum VerifyError {
    /// Everything that was found, one at least. What anchors say comes first, then records in their order.
    Found(Vec<Finding>),
    Store(StoreError),
}

impl From<StoreError> for VerifyError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
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
    findings: Vec<Finding>,
}

struct Followed {
    chain: Chain,
    /// The last place that an anchor holds.
    anchored: Option<u64>,
    /// It was read on its own, so that records may come that were checked already.
    ahead: bool,
    /// The record before the next one could not be read, so its hash is not known.
    is_torn: bool,
}

impl Verifier {
    pub(crate) fn new(part: bool) -> Self {
        let (chains, heads) = (HashMap::new(), HashMap::new());
        Self { part, chains, heads, checked: Checked::default(), findings: Vec::new() }
    }

    fn note(&mut self, finding: Finding) {
        if !self.is_full() {
            self.findings.push(finding);
        }
    }

    /// Whether no more is looked for.
    fn is_full(&self) -> bool {
        self.findings.len() >= MOST_FINDINGS
    }

    /// Takes what an anchor says of the records that follow.
    pub(crate) fn expect(&mut self, anchor: &Anchor) {
        if !anchor.is_whole() {
            self.note(Finding::Anchor { number: anchor.number, wrong: "it was changed after it was made" });
            return;
        }
        self.checked.anchors += 1;
        for head in &anchor.heads {
            let heads = self.heads.entry(Arc::clone(&head.run_id)).or_default();
            let (hash, _) = *heads.entry(head.sequence).or_insert((head.hash, anchor.number));
            if hash != head.hash {
                let (run_id, sequence) = (Arc::clone(&head.run_id), head.sequence);
                self.note(Finding::NotAnchored { run_id, sequence, anchor: anchor.number });
            }
        }
    }

    /// Takes the next record, and continues behind it whatever is wrong with it.
    pub(crate) fn follow(&mut self, sealed: &SealedRecord) {
        if let Some(finding) = self.check(sealed) {
            self.note(finding);
        }
    }

    /// Takes a record that cannot be read, or is not what its row says.
    pub(crate) fn lost(&mut self, error: ChainError) {
        let followed = self.chains.entry(Arc::clone(&error.run_id)).or_insert_with(Followed::new);
        if followed.ahead && error.sequence < followed.chain.next() {
            return;
        }
        if error.sequence >= followed.chain.next() {
            followed.chain = Chain::after(error.sequence, followed.chain.head());
            followed.is_torn = true;
        }
        self.note(error.into());
    }

    fn check(&mut self, sealed: &SealedRecord) -> Option<Finding> {
        let run_id = sealed.record.run_id();
        let followed = self.chains.entry(Arc::clone(run_id)).or_insert_with(|| {
            let before = sealed.sequence.checked_sub(1).filter(|_| self.part);
            let chain = before.map_or_else(Chain::new, |before| Chain::after(before, sealed.previous));
            Followed { chain, ..Followed::new() }
        });
        if followed.ahead && sealed.sequence < followed.chain.next() {
            return None;
        }
        if std::mem::take(&mut followed.is_torn)
            && let Some(before) = followed.chain.next().checked_sub(1)
        {
            followed.chain = Chain::after(before, sealed.previous);
        }
        let (run_id, sequence) = (Arc::clone(run_id), sealed.sequence);
        if let Err(broken) = followed.chain.follow(sealed) {
            if broken != Broken::Repeated {
                followed.chain = Chain::after(sequence, sealed.hash);
            }
            return Some(Finding::Record { run_id, sequence, broken });
        }
        self.checked.records += 1;
        if self.checked.digest_keys.len() < MOST_KEYS {
            self.checked.digest_keys.extend(sealed.record.digests().filter_map(|digest| digest.key_id()));
        }
        if let Some((hash, anchor)) = self.heads.get(&run_id).and_then(|heads| heads.get(&sequence)) {
            followed.anchored = Some(sequence);
            if *hash != sealed.hash {
                return Some(Finding::NotAnchored { run_id, sequence, anchor: *anchor });
            }
        }
        None
    }

    /// Ends: what anchors hold behind the end of a chain is missing.
    pub(crate) fn finish(mut self) -> Result<Checked, Vec<Finding>> {
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
        let cut: BTreeSet<_> = cut.collect();
        for (anchor, run_id, sequence) in cut {
            self.note(Finding::Cut { run_id, sequence, anchor });
        }
        if !self.findings.is_empty() {
            return Err(self.findings);
        }
        let is_open = |followed: &&Followed| followed.anchored.is_none_or(|last| last + 1 < followed.chain.next());
        self.checked.unanchored = self.chains.values().filter(is_open).count() as u64;
        self.checked.runs = self.chains.len() as u64;
        Ok(self.checked)
    }

    /// Reads a run on its own. While others write, a page can miss a record that a later page makes look removed; in the
    /// pages of one run that cannot happen.
    async fn again(&mut self, store: &dyn Store, run_id: &Arc<str>) -> Result<(), StoreError> {
        let mut alone = Self::new(self.part);
        alone.heads.extend(self.heads.remove_entry(run_id));
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::run(Arc::clone(run_id)) };
        while let Some(page) = page(store, &mut filter).await? {
            for read in page {
                match read {
                    Ok(sealed) => alone.follow(&sealed),
                    Err(error) => alone.lost(error),
                }
            }
        }
        let before = self.chains.remove(run_id).map_or(0, |followed| followed.chain.next());
        self.checked.records += alone.checked.records.saturating_sub(before);
        self.checked.digest_keys.append(&mut alone.checked.digest_keys);
        self.heads.extend(alone.heads);
        let followed = alone.chains.into_iter();
        self.chains.extend(followed.map(|(run_id, followed)| (run_id, Followed { ahead: true, ..followed })));
        alone.findings.into_iter().for_each(|finding| self.note(finding));
        Ok(())
    }
}

impl Followed {
    const fn new() -> Self {
        Self { chain: Chain::new(), anchored: None, ahead: false, is_torn: false }
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
    while !verifier.is_full()
        && let Some(page) = page(store, &mut filter).await?
    {
        for read in page {
            match read {
                Ok(sealed) if verifier.check(&sealed).is_none() => {}
                Ok(sealed) => verifier.again(store, sealed.record.run_id()).await?,
                Err(error) => verifier.lost(error),
            }
        }
        progress(verifier.checked.records);
    }
    let (found, checked) = match verifier.finish() {
        Ok(checked) => (Vec::new(), checked),
        Err(found) => (found, Checked::default()),
    };
    let found: Vec<_> = found.into_iter().chain(lost).collect();
    if found.is_empty() { Ok(checked) } else { Err(VerifyError::Found(found)) }
}
