//! [`Chats`]: stores the conversations between requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tool_runtime::agent::SavedConversation;

use crate::refusal::Refusal;

/// The most chats that are kept.
const MOST: usize = 10_000;

/// All chats, by principal and id, so that an id alone finds no chat. A database would hold the same rows.
#[derive(Default)]
pub(crate) struct Chats(Mutex<HashMap<Key, Chat>>);

type Key = (Arc<str>, Arc<str>);

#[derive(Default)]
struct Chat {
    /// The conversation as JSON, `None` before its first turn has ended.
    saved: Option<String>,
    /// The number of the assistant's messages, which is part of the last one's id.
    messages: u64,
    /// `true` while a request works on it.
    busy: bool,
}

/// A chat that one request works on. Dropping it releases the chat for the next request.
pub(crate) struct Taken {
    chats: Arc<Chats>,
    key: Key,
    /// The conversation as the previous request saved it.
    pub(crate) saved: Option<SavedConversation>,
    messages: u64,
}

impl Chats {
    /// Takes the chat of this principal for one request, a new one if there is none.
    pub(crate) fn take(self: &Arc<Self>, principal: &str, id: &str) -> Result<Taken, Refusal> {
        let key = (Arc::from(principal), Arc::from(id));
        let mut chats = self.lock();
        if chats.len() >= MOST && !chats.contains_key(&key) {
            return Err(Refusal::Full);
        }
        let chat = chats.entry(key.clone()).or_default();
        if chat.busy {
            return Err(Refusal::Busy);
        }
        let saved = chat.saved.as_deref().map(serde_json::from_str).transpose().map_err(|_| Refusal::Damaged)?;
        chat.busy = true;
        Ok(Taken { chats: Arc::clone(self), key, saved, messages: chat.messages })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Chat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// The id of the assistant's message that a user's text begins.
    pub(crate) fn next_message(&mut self) -> String {
        self.messages += 1;
        self.message()
    }

    /// The id of the assistant's last message, which continues after an approval.
    pub(crate) fn message(&self) -> String {
        format!("message-{}", self.messages)
    }

    /// Keeps the conversation as it is after the turn.
    pub(crate) fn keep(&self, saved: &SavedConversation) {
        if let Some(chat) = self.chats.lock().get_mut(&self.key) {
            chat.saved = serde_json::to_string(saved).ok();
            chat.messages = self.messages;
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut chats = self.chats.lock();
        if let Some(chat) = chats.get_mut(&self.key) {
            chat.busy = false;
            if chat.saved.is_none() {
                chats.remove(&self.key);
            }
        }
    }
}
