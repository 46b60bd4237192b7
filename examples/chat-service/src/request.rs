//! Which chat a request is for.

use serde::Deserialize;

use crate::refusal::Refusal;

/// The id of the chat: it is needed to find the conversation, which then reads the whole body. `useChat` calls it
/// `id`, AG-UI `threadId`.
pub(crate) fn chat(body: &[u8]) -> Result<String, Refusal> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(alias = "threadId")]
        id: String,
    }
    let named: Named = serde_json::from_slice(body).map_err(|_| Refusal::NoChat)?;
    if (1..=128).contains(&named.id.len()) { Ok(named.id) } else { Err(Refusal::NoChat) }
}
