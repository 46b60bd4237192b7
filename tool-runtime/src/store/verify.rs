//! Verification of all chains and the anchors over them, a page at a time.
//!
//! It remembers the head of each run, the anchored heads and the findings, but no records. A finding does not stop the
//! verification: otherwise one unreadable record would hide every other edit.

mod anchored;
mod page;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::store::chain::{Broken, Chain, is_as_written};
use crate::store::document::Anchor;
use crate::store::finding::{Finding, Wrong};
use crate::store::verify::anchored::anchors;
use crate::store::{RecordFilter, SealedRecord, Store, StoreError};
use crate::tool::Hash;

/// How many records are read at a time.
const PAGE: usize = 500;

/// The maximum number of findings. After that many, the verification stops reading.
const MOST_FINDINGS: usize = 1000;

/// The maximum number of digest keys that are listed.
const MOST_KEYS: usize = 16;

/// The result of verifying the hash chains of records, each run's records in order, and the anchors over them.
///
/// [`of_store`](Self::of_store) verifies a whole store, [`of_lines`](Self::of_lines) records that were exported.
///
/// ```
/// use tool_runtime::store::{MemoryStore, Verification};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let progress = |records| println!("{records} records");
/// let verified = Verification::of_store(&MemoryStore::new(), &[], progress).await?;
/// assert!(verified.findings.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// How many records were checked.
    pub records: u64,
    /// How many runs the records are of.
    pub runs: u64,
    /// How many anchors were checked.
    pub anchors: u64,
    /// How many runs have a last record that is in no anchor yet.
    pub unanchored: u64,
    /// The ids of the keys with which digests of arguments were made. Digests of different keys cannot be compared.
    pub digest_keys: BTreeSet<String>,
    /// All defects, up to a thousand: missing records first, then records in their order, then missing anchors. Empty
    /// if records and anchors are as they were written.
    pub findings: Vec<Finding>,
}

impl Verification {
    /// Verifies a whole store. Each exported anchor of `kept` must be unchanged in the store; if one is not, the
    /// records that it covers are checked first, because missing records are more telling than a missing anchor.
    /// `progress` receives the number of records after each page.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn of_store(
        store: &dyn Store,
        kept: &[Anchor],
        mut progress: impl FnMut(u64) + Send,
    ) -> Result<Self, StoreError> {
        let mut verifier = Verifier::new(false);
        let lost = anchors(store, kept, &mut verifier).await?;
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::default() };
        while !verifier.is_full()
            && let Some(page) = filter.next_page(store).await?
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
        let mut verified = verifier.finish();
        verified.findings.extend(lost);
        Ok(verified)
    }

    /// Verifies records that were exported as JSON lines, each run's records in order; those up to an anchor of `kept`
    /// must match its heads. With `part`, the first record of a run may follow records that are not in the export, and
    /// anchored runs may be missing.
    ///
    /// `read` passes each line to the function that it receives, which returns an error for a line that is not a sealed
    /// record. The error's `Display` can quote a value. Unknown or repeated members are a finding: a reader that takes
    /// the first of two members reads another value than the sealed one.
    ///
    /// ```
    /// use std::io::{BufRead, Error};
    /// use tool_runtime::store::Verification;
    ///
    /// # let exported: &[u8] = b"";
    /// let verified = Verification::of_lines(&[], false, |check| {
    ///     exported.lines().try_for_each(|line| Ok::<(), Error>(check(&line?)?))
    /// })?;
    /// assert!(verified.findings.is_empty());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `read`.
    pub fn of_lines<E>(
        kept: &[Anchor],
        part: bool,
        read: impl FnOnce(&mut dyn FnMut(&str) -> Result<(), serde_json::Error>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut verifier = Verifier::new(part);
        kept.iter().for_each(|anchor| verifier.expect(anchor));
        read(&mut |line| verifier.follow_line(line))?;
        Ok(verifier.finish())
    }
}

/// The anchored heads of a run: by place, the hash and the number of the anchor.
type Heads = BTreeMap<u64, (Hash, u64)>;

/// Verifies records and anchors, one by one.
pub(crate) struct Verifier {
    /// Only a part of the records is verified: the first record of a run may follow records that are not passed.
    part: bool,
    chains: HashMap<Arc<str>, Followed>,
    heads: HashMap<Arc<str>, Heads>,
    checked: Verification,
    findings: Vec<Finding>,
}

struct Followed {
    chain: Chain,
    /// The last place that an anchor covers.
    anchored: Option<u64>,
    /// The run was read on its own, so records that were verified already may come again.
    ahead: bool,
    /// The previous record could not be read, so its hash is unknown.
    is_torn: bool,
}

impl Verifier {
    /// Creates a verifier. With `part`, the first record of a run may follow records that are not passed, and anchored
    /// runs may be missing.
    pub(crate) fn new(part: bool) -> Self {
        let (chains, heads) = (HashMap::new(), HashMap::new());
        Self { part, chains, heads, checked: Verification::default(), findings: Vec::new() }
    }

    fn note(&mut self, finding: impl Into<Finding>) {
        if !self.is_full() {
            self.findings.push(finding.into());
        }
    }

    /// Whether the maximum number of findings is reached.
    fn is_full(&self) -> bool {
        self.findings.len() >= MOST_FINDINGS
    }

    /// Adds an anchor: the records that follow must match its heads.
    pub(crate) fn expect(&mut self, anchor: &Anchor) {
        if !anchor.is_whole() {
            self.note(Wrong::Anchor { number: anchor.number, wrong: "it was changed after it was made" });
            return;
        }
        self.checked.anchors += 1;
        for head in &anchor.heads {
            let heads = self.heads.entry(Arc::clone(&head.run_id)).or_default();
            let (hash, _) = *heads.entry(head.sequence).or_insert((head.hash, anchor.number));
            if hash != head.hash {
                let (run_id, sequence) = (Arc::clone(&head.run_id), head.sequence);
                self.note(Wrong::NotAnchored { run_id, sequence, anchor: anchor.number });
            }
        }
    }

    /// Verifies the next record, and continues after it even if it is broken.
    pub(crate) fn follow(&mut self, sealed: &SealedRecord) {
        if let Some(finding) = self.check(sealed) {
            self.note(finding);
        }
    }

    /// Verifies the next record from its exported JSON text. Unknown or repeated members are a finding: a reader that
    /// takes the first of two members reads another value than the sealed one.
    pub(crate) fn follow_line(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let sealed: SealedRecord = serde_json::from_str(line)?;
        if is_as_written(line, &sealed) {
            self.follow(&sealed);
        } else {
            self.lost(sealed.changed());
        }
        Ok(())
    }

    /// Handles a record that cannot be read, or differs from its row.
    fn lost(&mut self, finding: Finding) {
        if let Some((run_id, sequence)) = finding.record() {
            let followed = self.chains.entry(Arc::from(run_id)).or_insert_with(Followed::new);
            if followed.ahead && sequence < followed.chain.next() {
                return;
            }
            if sequence >= followed.chain.next() {
                followed.chain = Chain::after(sequence, followed.chain.head());
                followed.is_torn = true;
            }
        }
        // Its position in a store is not part of what is wrong.
        self.note(finding.wrong);
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
            return Some(Wrong::Record { run_id, sequence, broken }.into());
        }
        self.checked.records += 1;
        if self.checked.digest_keys.len() < MOST_KEYS {
            self.checked.digest_keys.extend(sealed.record.digests().filter_map(|digest| digest.key_id()));
        }
        if let Some((hash, anchor)) = self.heads.get(&run_id).and_then(|heads| heads.get(&sequence)) {
            followed.anchored = Some(sequence);
            if *hash != sealed.hash {
                return Some(Wrong::NotAnchored { run_id, sequence, anchor: *anchor }.into());
            }
        }
        None
    }

    /// Ends the verification: an anchored record after the end of a chain is reported as missing.
    pub(crate) fn finish(mut self) -> Verification {
        let cut = self.heads.iter().filter_map(|(run_id, heads)| {
            let end = match self.chains.get(run_id) {
                Some(followed) => followed.chain.next(),
                // A part may lack whole runs.
                None if self.part => return None,
                None => 0,
            };
            // Places from `end` on have no record, so the first anchored one among them was cut off.
            let (_, (_, anchor)) = heads.range(end..).next()?;
            Some((*anchor, Arc::clone(run_id), end))
        });
        let cut: BTreeSet<_> = cut.collect();
        for (anchor, run_id, sequence) in cut {
            self.note(Wrong::Cut { run_id, sequence, anchor });
        }
        let is_open =
            |followed: &&Followed| followed.anchored.is_none_or(|last| last.saturating_add(1) < followed.chain.next());
        self.checked.unanchored = self.chains.values().filter(is_open).count() as u64;
        self.checked.runs = self.chains.len() as u64;
        Verification { findings: self.findings, ..self.checked }
    }

    /// Reads a run on its own. While other processes write, a page of all runs can miss a record, which then looks
    /// removed; that cannot happen in the pages of one run.
    async fn again(&mut self, store: &dyn Store, run_id: &Arc<str>) -> Result<(), StoreError> {
        let mut alone = Self::new(self.part);
        alone.heads.extend(self.heads.remove_entry(run_id));
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::run(Arc::clone(run_id)) };
        while let Some(page) = filter.next_page(store).await? {
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
