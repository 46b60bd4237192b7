//! A script that waits, as a document: its run, and what its calls returned. The script is run again from its beginning.

use serde::{Deserialize, Serialize};

use crate::agent::code::interpreter::Reply;
use crate::call::CallId;
use crate::runner::RunSnapshot;
use crate::tool::Hash;

/// A call that ended.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) asked: Hash,
    pub(super) reply: Reply,
}

/// A script that waits with its next call.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paused {
    pub(super) run: RunSnapshot,
    pub(super) journal: Vec<Entry>,
    /// The call that waits.
    pub(super) call: CallId,
    pub(super) asked: Hash,
}

/// What a call is compared by.
pub(super) fn asked(tool: &str, arguments: &str) -> Hash {
    Hash::sha256(format!("{tool}\n{arguments}"))
}
