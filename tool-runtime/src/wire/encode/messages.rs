//! The skeleton of encoding a history: complete turns in, the messages of one format out.

use serde_json::{Map, Value, json};

use crate::wire::Message;
use crate::wire::encode::Dialect;
use crate::wire::history::{Missing, pieces};

/// The messages written.
#[derive(Default)]
pub(crate) struct Messages<'a> {
    list: Vec<Value>,
    system: Vec<&'a str>,
}

impl<'a> Messages<'a> {
    /// Adds a message.
    pub(crate) fn push(&mut self, message: Value) {
        self.list.push(message);
    }

    /// Adds messages.
    pub(crate) fn extend(&mut self, messages: impl IntoIterator<Item = Value>) {
        self.list.extend(messages);
    }

    /// Adds instructions that are not part of the list.
    pub(crate) fn system(&mut self, text: &'a str) {
        self.system.push(text);
    }

    /// Adds a block to the last message if it has the same role, for formats in which roles must alternate.
    pub(crate) fn join(&mut self, role: &str, key: &str, block: Value) {
        if let Some(last) = self.list.last_mut().filter(|last| last["role"] == role)
            && let Some(blocks) = last.get_mut(key).and_then(Value::as_array_mut)
        {
            blocks.push(block);
        } else {
            self.list.push(json!({ "role": role, key: [block] }));
        }
    }
}

/// The parts of a request body that hold the history. A call without a result gets `outcome_unknown`: an encoder
/// cannot know whether it began.
pub(crate) fn encode_messages(dialect: &dyn Dialect, history: &[Message]) -> Map<String, Value> {
    let pieces = pieces(history, |_| Missing::OutcomeUnknown);
    let mut messages = Messages::default();
    for piece in &pieces {
        dialect.message(piece, &mut messages);
    }
    let mut body = Map::from_iter([(dialect.messages_key().to_owned(), messages.list.into())]);
    if let Some((key, value)) = dialect.system(&messages.system).filter(|_| !messages.system.is_empty()) {
        body.insert(key.to_owned(), value);
    }
    body
}
