//! Verifies all chains and the anchors over them, a page at a time.
//!
//! A verification keeps the head of each run, the anchored heads, the places of erased records and the findings in
//! memory, but no records. It continues after a finding, because otherwise one unreadable record would hide all other
//! changes.

mod anchored;
mod page;
mod removals;
mod verifier;

use std::collections::BTreeSet;

use crate::call::DigestKey;
use crate::store::document::Anchor;
use crate::store::finding::Finding;
use crate::store::verify::anchored::anchors;
use crate::store::{RecordFilter, Store, StoreError};

pub(crate) use removals::Trust;
pub(crate) use verifier::Verifier;

/// The number of records that are read at a time.
const PAGE: usize = 500;

/// The result of verifying the hash chains of records, and the anchors over them.
///
/// [`of_store`](Self::of_store) verifies a whole store, and [`of_lines`](Self::of_lines) verifies exported records.
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
    /// How many records were checked and follow the record before them unchanged.
    pub records: u64,
    /// How many runs the records belong to.
    pub runs: u64,
    /// How many anchors were checked.
    pub anchors: u64,
    /// How many runs have a last record that no anchor contains yet.
    pub unanchored: u64,
    /// How many records were removed by purges that a signed record in the chain proves.
    pub purged: u64,
    /// How many records are erased and listed in a signed record.
    pub erased: u64,
    /// How many erased records are listed in no signed record, if only a part of the records was verified (`part` of
    /// [`verify_lines`](Self::verify_lines)). The part can end before the record of their erasure. Without `part`, each
    /// such record is a finding.
    pub erased_unlisted: u64,
    /// The ids of keys that signed removals but were not available, for example because the key was rotated or the
    /// records are an export. Their signatures could not be checked. Each such record is a finding, unless the id is
    /// [accepted](Self::accept_keys).
    pub unchecked_keys: BTreeSet<String>,
    /// The ids of the keys with which arguments were digested. Digests with different keys cannot be compared.
    pub digest_keys: BTreeSet<String>,
    /// The first thousand defects: defects of anchors, then defects of records in their order, missing last records and
    /// unproven erasures. After that, all exported anchors that the store lacks or changed. The verification of a store
    /// reads no further records after a thousand defects. Empty if everything is unchanged.
    pub findings: Vec<Finding>,
    trust: Trust,
}

impl Verification {
    /// Creates an empty verification, for [`verify_store`](Self::verify_store) or [`verify_lines`](Self::verify_lines)
    /// with other keys than the store's.
    ///
    /// ```
    /// use tool_runtime::call::DigestKey;
    /// use tool_runtime::store::{MemoryStore, Verification};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let verification = Verification::new().digest_key(DigestKey::new([7; 32])).accept_keys(["1a2b3c4d"]);
    /// let verified = verification.verify_store(&MemoryStore::new(), &[], |_| ()).await?;
    /// assert!(verified.findings.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the signatures of removals with this key instead of the store's own. Pass the key of
    /// [`RunnerBuilder::digest_key`](crate::runner::RunnerBuilder::digest_key).
    #[must_use]
    pub fn digest_key(mut self, key: DigestKey) -> Self {
        self.trust.key = Some(key);
        self
    }

    /// Accepts removals that were signed with the keys of these ids, without a check of their signatures, if the keys
    /// are not available. For example, a key was rotated, or an export is verified without its key. Anyone who can
    /// write records can forge such a removal, so pass only ids that you know. Contents of records cannot be forged
    /// this way.
    #[must_use]
    pub fn accept_keys(mut self, ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.trust.accepted.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Verifies a whole store with the store's own key. See [`verify_store`](Self::verify_store).
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn of_store(
        store: &dyn Store,
        kept: &[Anchor],
        progress: impl FnMut(u64) + Send,
    ) -> Result<Self, StoreError> {
        Self::new().verify_store(store, kept, progress).await
    }

    /// Verifies exported records without a key. See [`verify_lines`](Self::verify_lines).
    ///
    /// # Errors
    /// The errors of `read`.
    pub fn of_lines<E>(
        kept: &[Anchor],
        part: bool,
        read: impl FnOnce(&mut dyn FnMut(&str) -> Result<(), serde_json::Error>) -> Result<(), E>,
    ) -> Result<Self, E> {
        Self::new().verify_lines(kept, part, read)
    }

    /// Verifies a whole store. Each exported anchor of `kept` must be unchanged in the store. If an anchor differs or
    /// is missing there, the records that it covers are checked first, because missing records are more informative
    /// than a missing anchor. `progress` receives the number of checked records after each page.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn verify_store(
        self,
        store: &dyn Store,
        kept: &[Anchor],
        mut progress: impl FnMut(u64) + Send,
    ) -> Result<Self, StoreError> {
        let mut verifier = Verifier::trusting(false, self.trust);
        let lost = anchors(store, kept, &mut verifier).await?;
        let mut filter = RecordFilter { limit: Some(PAGE), ..RecordFilter::default() };
        while !verifier.is_full()
            && let Some(page) = filter.next_page(store).await?
        {
            verifier.find_key(store).await?;
            for read in page {
                match read {
                    Ok(sealed) if verifier.check(&sealed).is_none() => {}
                    Ok(sealed) => verifier.again(store, sealed.record.run_id()).await?,
                    Err(error) => verifier.lost(error),
                }
            }
            progress(verifier.checked.records);
        }
        verifier.look_at_undone(store).await?;
        let mut verified = verifier.finish();
        verified.findings.extend(lost);
        Ok(verified)
    }

    /// Verifies records that were exported as JSON lines. The records of each run must be in order. The records up to
    /// an anchor of `kept` must match its heads. With `part`, the first record of a run may follow records that are not
    /// in the export, anchored runs may be missing, and erased records are counted as
    /// [`erased_unlisted`](Self::erased_unlisted) if the record of their erasure is missing.
    ///
    /// `read` passes each line to the function that it receives. That function returns an error for a line that is not
    /// a sealed record; the error's `Display` can contain a value. Unknown or repeated members are a finding, because a
    /// reader that takes the first of two members would read a value that was not sealed. A removal is a finding,
    /// unless its [key](Self::digest_key) is available or the id of the key is [accepted](Self::accept_keys).
    ///
    /// ```
    /// use std::io::{BufRead, Error};
    /// use tool_runtime::store::Verification;
    ///
    /// # let exported: &[u8] = b"";
    /// let verified = Verification::new().verify_lines(&[], false, |check| {
    ///     exported.lines().try_for_each(|line| Ok::<(), Error>(check(&line?)?))
    /// })?;
    /// assert!(verified.findings.is_empty());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `read`.
    pub fn verify_lines<E>(
        self,
        kept: &[Anchor],
        part: bool,
        read: impl FnOnce(&mut dyn FnMut(&str) -> Result<(), serde_json::Error>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut verifier = Verifier::trusting(part, self.trust);
        kept.iter().for_each(|anchor| verifier.expect(anchor));
        read(&mut |line| verifier.follow_line(line))?;
        Ok(verifier.finish())
    }
}
