//! The store: documents that change in transactions, and records that never do, behind one trait whose implementations
//! can outlive the process.
//!
//! What a document means is decided in `ledger`, `runs`, `waiting` and `accounts`, once for every store. Invariants of every
//! store: a change is written whole or not at all, changes under one lock happen one after the other, a record is
//! never changed, and what is kept in memory is bounded.

pub(crate) mod accounts;
mod anchors;
#[cfg(feature = "restate")]
pub(crate) mod attempts;
mod audit;
pub(crate) mod chain;
mod clock;
pub mod conformance;
pub(crate) mod digest_key;
mod document;
mod error;
mod filter;
mod finding;
pub(crate) mod grants;
mod key;
pub(crate) mod ledger;
mod mailbox;
mod memory;
mod pending;
pub(crate) mod posts;
#[cfg(feature = "sqlite")]
pub(crate) mod private_file;
mod receipt;
mod restored;
pub(crate) mod runs;
mod sealed;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;
#[expect(clippy::module_inception, reason = "the trait is named in its file")]
mod store;
mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod transaction;
mod unfinished;
mod verify;
pub(crate) mod waiting;
mod wake;

pub use self::store::Store;
pub use accounts::Balance;
pub(crate) use accounts::StoredAccount;
pub use anchors::{Anchor, AnchoredHead, anchor};
pub use audit::{AuditKind, AuditRecord, DecisionKind, DecisionRecord, Refusal};
pub use chain::{Chain, ChainError};
pub use clock::{Clock, ManualClock};
pub(crate) use clock::{StoreClock, SystemClock, Timed, is_before};
pub use digest_key::StoredDigestKey;
pub use document::{Document, Waiting};
pub use error::StoreError;
pub use filter::RecordFilter;
pub use finding::Finding;
pub use grants::{Grant, GrantCaller, GrantScope};
pub use key::{Key, Listed, Query, Space};
pub use ledger::LedgerEntry;
#[cfg(feature = "mcp-server")]
pub(crate) use mailbox::served;
pub use memory::MemoryStore;
pub use pending::{FrozenArguments, PendingCall, PendingFilter};
pub use posts::Post;
pub use receipt::Receipt;
pub use restored::{RunBehind, hold_back, release_run};
pub use runs::{RunLease, StoredRun};
pub use sealed::Sealed;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use sql::{SqlOptions, SqlStore};
#[cfg(feature = "mcp-server")]
pub(crate) use sweep::close_deserted;
pub use sweep::sweep;
pub use transaction::{Change, Transaction, Writes};
pub use unfinished::{UnfinishedCall, unfinished_calls};
pub use verify::{Verification, Verifier};
