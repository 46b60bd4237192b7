//! [`Anchor`]: the heads of the chains of runs at one time.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::json::{self, canonical};
use crate::store::error::StoreError;
use crate::tool::Hash;

/// The end of a run's chain when an anchor was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnchoredHead {
    /// The id of the run.
    pub(crate) run_id: Arc<str>,
    /// The place of the last record of the run.
    pub(crate) sequence: u64,
    /// The hash of the last record of the run.
    pub(crate) hash: Hash,
}

/// The heads of the chains of runs at one time. Anchors form a separate hash chain.
///
/// Export it as one line of JSON to a place that the processes of the store cannot change. The command
/// `audit verify --anchors` compares the export with the store.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::ToolInvocationRecord;
/// use tool_runtime::store::{MemoryStore, Store, Verification};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// store.append(ToolInvocationRecord::example("run-1", "call_1").into()).await?;
/// let mut exported = Vec::new();
/// store.anchor(|anchor| exported.push(anchor.clone())).await?;
/// assert_eq!(exported[0].heads().count(), 1);
///
/// // Later: is each record that the export covers still in the store?
/// let verified = Verification::of_store(&*store, &exported, |_| ()).await?;
/// assert_eq!((verified.anchors, verified.findings.len()), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Anchor {
    /// The place of the anchor among all anchors, from 0.
    pub number: u64,
    /// When the anchor was made, by the clock of the store.
    pub at: Timestamp,
    /// The position of the last record that was read for the anchor.
    pub position: u64,
    pub(crate) heads: Vec<AnchoredHead>,
    /// The hash of the previous anchor. Zeros for the first anchor.
    pub previous: Hash,
    /// SHA-256 over the canonical JSON of all other members.
    pub hash: Hash,
}

impl Anchor {
    pub(in crate::store) fn after(
        last: Option<&Self>,
        at: Timestamp,
        position: u64,
        heads: Vec<AnchoredHead>,
    ) -> Result<Self, StoreError> {
        let (number, previous) = last.map_or((0, Hash([0; 32])), |last| (last.number.saturating_add(1), last.hash));
        let mut anchor = Self { number, at, position, heads, previous, hash: Hash([0; 32]) };
        anchor.hash = anchor.computed().map_err(|error| StoreError::Corrupt(Box::new(error)))?;
        Ok(anchor)
    }

    /// Returns the heads of the runs that have new records since the previous anchor: the id of the run, the place of
    /// its last record, and the hash of that record.
    pub fn heads(&self) -> impl Iterator<Item = (&Arc<str>, u64, Hash)> {
        self.heads.iter().map(|head| (&head.run_id, head.sequence, head.hash))
    }

    /// Whether the hash matches all other members.
    pub(in crate::store) fn is_whole(&self) -> bool {
        self.computed().is_ok_and(|hash| hash == self.hash)
    }

    fn computed(&self) -> Result<Hash, serde_json::Error> {
        let blank = Self { hash: Hash([0; 32]), ..self.clone() };
        Ok(json::digest(canonical::to_text(&serde_json::to_value(blank)?)))
    }
}
