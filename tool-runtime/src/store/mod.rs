//! The store: records and pending calls, behind one trait whose implementations can outlive the process.
//!
//! Invariants of every store: a pending call is claimed once; a closed record is never changed; what is kept in
//! memory is bounded.

mod chain;
mod clock;
mod error;
mod memory;
mod pending;
mod receipt;
#[cfg(test)]
mod tests;
mod traits;

pub use chain::{Chain, ChainError};
pub(crate) use clock::SystemClock;
pub use clock::{Clock, ManualClock};
pub use error::StoreError;
pub use memory::MemoryStore;
pub use pending::{FrozenArguments, PendingCall, PendingFilter};
pub use receipt::Receipt;
pub use traits::{RecordFilter, Store};
