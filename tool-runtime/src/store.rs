//! Storage for all data that has to outlive a process: documents, which change in transactions, and records, which do
//! not change.
//!
//! [`Store`] is the trait. [`MemoryStore`] implements it in memory, and the package `tool-runtime-sql` implements it
//! for SQLite and PostgreSQL. Applications read records with a [`RecordFilter`], list waiting calls with
//! [`Store::pending_calls`], and verify the records with [`Verification::of_store`]. [`Key`], [`StoredDocument`],
//! [`Transaction`], [`Query`] and [`Chain`] are for implementations of a store.
//!
//! [`Retention`] removes old runs, places legal holds, and erases the data of a principal.
//!
//! Every store keeps these invariants. Writes are atomic. Changes under one lock run one after the other. Memory use is
//! bounded. A record never changes, with one exception: a [`Transaction`] of this library can remove all records of a
//! run, or erase the values of one record. It then appends a signed record of the removal or erasure.

// `ledger`, `runs`, `waiting` and `accounts` define the contents of documents for all stores.

pub(crate) mod accounts;
mod anchors;
pub(crate) mod attempts;
mod audit;
pub(crate) mod chain;
mod clock;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod conformance;
mod decision_record;
pub(crate) mod digest_key;
mod document;
mod due;
pub(crate) mod effects;
mod error;
mod filter;
mod finding;
pub(crate) mod grants;
mod interface;
mod kept;
mod key;
pub(crate) mod lane;
pub(crate) mod ledger;
mod mailbox;
mod memory;
pub(crate) mod notices;
pub(crate) mod pages;
mod pending;
pub(crate) mod posts;
mod restored;
pub(crate) mod retention;
mod retention_record;
pub(crate) mod runs;
mod sealed;
mod stored_anchors;
mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod transaction;
mod unfinished;
mod verify;
pub(crate) mod waiting;
mod wake;
mod write_handle;

pub use accounts::Balance;
pub use audit::AuditRecord;
pub use chain::Chain;
pub use clock::Clock;
pub(crate) use clock::{StoreClock, SystemClock, Timed, is_before};
pub use decision_record::{DecisionKind, DecisionRecord};
pub(crate) use decision_record::{DecisionRefusal, RecordedUnknown};
pub(crate) use document::HoldScope;
#[cfg(any(test, feature = "http", feature = "testing"))]
pub(crate) use document::NoticeAttempt;
pub use document::{Anchor, GrantScope, LegalHold, StoredDocument, StoredGrant, StoredNotice, StoredRun};
pub(crate) use document::{
    Covered, Document, EffectHolder, GrantCaller, GrantOrigin, Holder, KnownOutcome, LedgerEntry, Post, StoredAccount,
    StoredEffect, StoredSlots, StoredUnknown, UnknownCall, Waiting,
};
pub use due::{DueRun, QueueDepth};
pub use error::StoreError;
pub use filter::RecordFilter;
pub use finding::Finding;
pub use interface::Store;
pub(crate) use interface::{POLL, transact};
pub use key::{DocumentKind, Key, Query};
#[cfg(feature = "mcp-server")]
pub(crate) use mailbox::served;
pub use memory::MemoryStore;
pub use pending::PendingCall;
pub(crate) use pending::{FrozenArguments, ReplacedArguments};
pub use retention::{Retention, RetentionReport};
pub use retention_record::RetentionRecord;
pub(crate) use runs::RunLease;
pub use sealed::SealedRecord;
pub(crate) use sweep::KEPT;
#[cfg(feature = "mcp-server")]
pub(crate) use sweep::close_abandoned;
#[cfg(feature = "http")]
pub(crate) use sweep::remove_over;
pub use transaction::{ChangeFn, Transaction};
pub use unfinished::UnfinishedCall;
pub(crate) use unfinished::unsettled;
pub use verify::Verification;
pub use write_handle::WriteHandle;
