//! A script that waits, as a document: its run, and what its calls returned. The script is run again from its beginning.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::code::interpreter::Reply;
use crate::call::CallId;
use crate::runner::RunSnapshot;
use crate::tool::Hash;

/// A call that ended.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    asked: Hash,
    is_ok: bool,
    text: Arc<str>,
}

impl Entry {
    pub(super) fn new(asked: Hash, reply: &Reply) -> Self {
        let (is_ok, text) = match reply {
            Reply::Returned(text) => (true, text),
            Reply::Threw(text) => (false, text),
        };
        Self { asked, is_ok, text: text.as_str().into() }
    }

    /// What the call returned; `None` if it was another call.
    pub(super) fn reply(&self, asked: Hash) -> Option<Reply> {
        let text = self.text.to_string();
        let reply = if self.is_ok { Reply::Returned(text) } else { Reply::Threw(text) };
        (self.asked == asked).then_some(reply)
    }
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
