//! Reads the ids of a request's chat.

use serde::Deserialize;

use crate::refusal::Refusal;

/// The ids of a request. They are parsed first, to find the conversation, which then parses the whole body.
#[derive(Debug, Deserialize)]
pub(crate) struct Named {
    /// The id of the chat. `useChat` calls it `id`, AG-UI `threadId`.
    #[serde(alias = "threadId")]
    pub(crate) id: String,
    /// The id of the run; empty for `useChat`.
    #[serde(default, rename = "runId")]
    pub(crate) run: String,
}

/// Parses only the ids of a body.
pub(crate) fn named(body: &[u8]) -> Result<Named, Refusal> {
    let named: Named = serde_json::from_slice(body).map_err(|_| Refusal::NoChat)?;
    if (1..=128).contains(&named.id.len()) && named.run.len() <= 128 { Ok(named) } else { Err(Refusal::NoChat) }
}
