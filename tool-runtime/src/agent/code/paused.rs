//! The document of a waiting script: its run, and the results of its calls. A resumed script runs again from its
//! beginning.

use serde::{Deserialize, Serialize};

use crate::agent::code::interpreter::Reply;
use crate::runner::RunSnapshot;
use crate::tool::Hash;

/// A call that ended.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) asked: Hash,
    pub(super) reply: Reply,
    /// The lines that the model reads and the script does not: a person's part in the call, and the number of items
    /// that did not fit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) remarks: String,
}

/// A script that waits at its next call.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paused {
    pub(super) run: RunSnapshot,
    pub(super) journal: Vec<Entry>,
    pub(super) asked: Hash,
}

/// Returns the hash of a call, by which a resumed script is compared with its earlier calls.
pub(super) fn asked(tool: &str, arguments: &str) -> Hash {
    Hash::sha256(format!("{tool}\n{arguments}"))
}
