//! [`Verifier`]: verifies records and anchors, one by one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::store::chain::{Broken, Chain, is_as_written};
use crate::store::document::Anchor;
use crate::store::finding::{Finding, Wrong};
use crate::store::verify::removals::{ErasedPlaces, Trust};
use crate::store::verify::{PAGE, Verification};
use crate::store::{AuditRecord, RecordFilter, RetentionRecord, SealedRecord, Store, StoreError, digest_key};
use crate::tool::Hash;

/// The maximum number of findings. After that many, the verification stops reading.
const MOST_FINDINGS: usize = 1000;

/// The maximum number of digest keys that are listed.
const MOST_KEYS: usize = 16;

/// The anchored heads of a run: for each place, the hash of the record and the number of the anchor.
type Heads = BTreeMap<u64, (Hash, u64)>;

/// Verifies records and anchors, one by one.
pub(crate) struct Verifier {
    /// Whether only a part of the records is verified, so that the first record of a run may follow missing records.
    part: bool,
    chains: HashMap<Arc<str>, Followed>,
    heads: HashMap<Arc<str>, Heads>,
    pub(super) checked: Verification,
    findings: Vec<Finding>,
    trust: Trust,
}

struct Followed {
    chain: Chain,
    /// The last place that an anchor covers.
    anchored: Option<u64>,
    /// Whether the run was also read on its own, so that records may be passed again after they were verified.
    ahead: bool,
    /// Whether the previous record could not be read, so that its hash is unknown.
    is_torn: bool,
    erased: ErasedPlaces,
}

impl Verifier {
    /// Creates a verifier without keys. With `part`, the first record of a run may follow missing records, and anchored
    /// runs may be missing.
    #[cfg(test)]
    pub(crate) fn new(part: bool) -> Self {
        Self::trusting(part, Trust::default())
    }

    /// Creates a verifier. With `part`, the first record of a run may follow missing records, and anchored runs may be
    /// missing.
    pub(crate) fn trusting(part: bool, trust: Trust) -> Self {
        let (chains, heads) = (HashMap::new(), HashMap::new());
        Self { part, chains, heads, checked: Verification::default(), findings: Vec::new(), trust }
    }

    pub(super) fn note(&mut self, finding: impl Into<Finding>) {
        if !self.is_full() {
            self.findings.push(finding.into());
        }
    }

    /// Whether the maximum number of findings is reached.
    pub(super) fn is_full(&self) -> bool {
        self.findings.len() >= MOST_FINDINGS
    }

    /// Adds an anchor. Later records must match its heads.
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

    /// Verifies the next record from its exported JSON text. Unknown or repeated members are a finding, because a
    /// reader that takes the first of two members would read a value that was not sealed.
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
    pub(super) fn lost(&mut self, finding: Finding) {
        if let Some((run_id, sequence)) = finding.record() {
            let followed = self.chains.entry(Arc::from(run_id)).or_insert_with(Followed::new);
            if followed.ahead && sequence < followed.chain.next() {
                return;
            }
            if sequence >= followed.chain.next() {
                followed.chain = Chain::after(sequence, followed.chain.head());
                followed.is_torn = true;
                followed.erased.from = followed.chain.next();
            }
        }
        // Leave out the position of the record in the store.
        self.note(finding.wrong);
    }

    pub(super) fn check(&mut self, sealed: &SealedRecord) -> Option<Finding> {
        let run_id = sealed.record.run_id();
        let followed = self.chains.entry(Arc::clone(run_id)).or_insert_with(|| {
            let before = sealed.sequence.checked_sub(1).filter(|_| self.part);
            let chain = before.map_or_else(Chain::new, |before| Chain::after(before, sealed.previous));
            let erased = ErasedPlaces { from: sealed.sequence, ..ErasedPlaces::default() };
            Followed { chain, erased, ..Followed::new() }
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
        let purged = sealed.record.as_retention().and_then(RetentionRecord::purged);
        let mut removed = 0;
        if let Some((end, head, records)) = purged
            && followed.chain == Chain::new()
            && (end, head) == (sequence, sealed.previous)
            && let Some(last) = end.checked_sub(1)
        {
            followed.chain = Chain::after(last, head);
            removed = records;
        }
        if let Err(broken) = followed.chain.follow(sealed) {
            if broken != Broken::Repeated {
                followed.chain = Chain::after(sequence, sealed.hash);
                followed.erased.from = followed.chain.next();
            }
            return Some(Wrong::Record { run_id, sequence, broken }.into());
        }
        self.checked.records += 1;
        if self.checked.digest_keys.len() < MOST_KEYS {
            self.checked.digest_keys.extend(sealed.record.digests().filter_map(|digest| digest.key_id()));
        }
        let broken = match &sealed.record {
            AuditRecord::Retention(record) => {
                let checked = self.trust.check(&mut followed.erased, record);
                self.checked.erased += checked.erased;
                self.checked.unchecked_keys.extend(checked.unchecked);
                checked.broken
            }
            AuditRecord::Erased(_) => {
                followed.erased.unlisted.insert(sequence);
                None
            }
            AuditRecord::Call(_) | AuditRecord::Decision(_) => None,
        };
        if let Some(broken) = broken {
            return Some(Wrong::Record { run_id, sequence, broken }.into());
        }
        self.checked.purged += removed;
        let heads = self.heads.get(&run_id);
        if let Some((hash, anchor)) = heads.and_then(|heads| heads.get(&sequence)) {
            followed.anchored = Some(sequence);
            if *hash != sealed.hash {
                return Some(Wrong::NotAnchored { run_id, sequence, anchor: *anchor }.into());
            }
        }
        // The last removed record can be anchored, too.
        if let Some((_, head, _)) = purged
            && let Some((hash, anchor)) = sequence.checked_sub(1).and_then(|last| heads?.get(&last))
            && *hash != head
        {
            return Some(Wrong::NotAnchored { run_id, sequence: sequence - 1, anchor: *anchor }.into());
        }
        None
    }

    /// Ends the verification, and reports anchored records after the end of a chain as missing.
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
        let mut wrong = BTreeSet::new();
        for (run_id, ErasedPlaces { unlisted, undone, .. }) in self.chains.iter().map(|(run, of)| (run, &of.erased)) {
            wrong.extend(undone.iter().map(|place| (Arc::clone(run_id), *place, true)));
            if self.part {
                // The record that lists them can come after the end of the part.
                self.checked.erased_unlisted += unlisted.len() as u64;
            } else {
                wrong.extend(unlisted.iter().map(|place| (Arc::clone(run_id), *place, false)));
            }
        }
        for (run_id, sequence, is_undone) in wrong {
            let broken = if is_undone { Broken::Undone } else { Broken::Unlisted };
            self.note(Wrong::Record { run_id, sequence, broken });
        }
        let is_open =
            |followed: &&Followed| followed.anchored.is_none_or(|last| last.saturating_add(1) < followed.chain.next());
        self.checked.unanchored = self.chains.values().filter(is_open).count() as u64;
        self.checked.runs = self.chains.len() as u64;
        Verification { findings: self.findings, ..self.checked }
    }

    /// Reads the records again that are listed as erased but had values, because they may have been read before the
    /// erasure.
    pub(super) async fn look_at_undone(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        for (run_id, followed) in &mut self.chains {
            let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::run(Arc::clone(run_id)) };
            while !followed.erased.undone.is_empty()
                && let Some(page) = filter.next_page(store).await?
            {
                for sealed in page.iter().flatten().filter(|sealed| sealed.record.is_erased()) {
                    followed.erased.undone.remove(&sealed.sequence);
                }
            }
        }
        Ok(())
    }

    /// Reads the key of the store, if the verifier has no key. The first removal can create the key during a
    /// verification, so it is read again for each page until it exists.
    pub(super) async fn find_key(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if self.trust.key.is_none() {
            self.trust.key = digest_key::find(store).await?;
        }
        Ok(())
    }

    /// Reads a run on its own. While other processes write, a page of all runs can miss a record, so that it looks
    /// removed. The pages of one run never miss a record.
    pub(super) async fn again(&mut self, store: &dyn Store, run_id: &Arc<str>) -> Result<(), StoreError> {
        let mut alone = Self::trusting(self.part, self.trust.clone());
        alone.heads.extend(self.heads.remove_entry(run_id));
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::run(Arc::clone(run_id)) };
        while let Some(page) = filter.next_page(store).await? {
            alone.find_key(store).await?;
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
        self.checked.unchecked_keys.append(&mut alone.checked.unchecked_keys);
        self.checked.purged += alone.checked.purged;
        self.checked.erased += alone.checked.erased;
        self.heads.extend(alone.heads);
        let followed = alone.chains.into_iter();
        self.chains.extend(followed.map(|(run_id, followed)| (run_id, Followed { ahead: true, ..followed })));
        alone.findings.into_iter().for_each(|finding| self.note(finding));
        Ok(())
    }
}

impl Followed {
    fn new() -> Self {
        Self { chain: Chain::new(), anchored: None, ahead: false, is_torn: false, erased: ErasedPlaces::default() }
    }
}
