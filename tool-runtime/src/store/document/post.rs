//! [`Post`]: a message to a run.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::Question;
use crate::store::Holder;

/// A message to a run: input, decisions, or answers of the client.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Post {
    /// The contents of the message, as text that the store does not interpret.
    pub(crate) body: Arc<str>,
    /// When the message was posted.
    pub(crate) at: Timestamp,
    /// The questions that the message answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<Question>,
    /// The MCP server that is carrying out the message. `None` for a message to a run of workers, because the lease on
    /// the run protects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<Holder>,
}

// The body contains messages of people, so `Debug` omits it.
impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").field("at", &self.at).finish_non_exhaustive()
    }
}
