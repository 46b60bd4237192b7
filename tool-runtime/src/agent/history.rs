//! [`History`]: the messages of a conversation. Each request processes only the messages that were added since the last
//! request.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::call::CallId;
use crate::tool::{Hash, Hashing};
use crate::wire::Message;
use crate::wire::history::{Missing, bounded, repair};

/// The messages of a conversation.
#[derive(Clone)]
pub(super) struct History {
    /// The instructions of the last request, followed by the messages, so that both are one slice.
    all: Vec<Message>,
    is_instructed: bool,
    /// The number of messages that were part of a request. They are complete and do not change, so that the fields
    /// below stay valid.
    sent: usize,
    /// The ids of the calls in the sent messages.
    ids: Arc<HashSet<CallId>>,
    /// Whether the sent messages contain a file.
    has_files: bool,
    prompt: Option<Prompt>,
}

/// The hash state of [`History::prompt_hash`] after the messages that were hashed.
#[derive(Clone)]
struct Prompt {
    model: String,
    hashing: Hashing,
    /// The number of hashed messages, including the instructions.
    messages: usize,
}

impl Default for History {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl History {
    fn of(messages: Vec<Message>) -> Self {
        let mut all = Vec::with_capacity(messages.len() + 1);
        all.push(Message::System(String::new()));
        all.extend(messages);
        Self { all, is_instructed: false, sent: 0, ids: Arc::default(), has_files: false, prompt: None }
    }

    /// Returns the messages without instructions.
    pub(super) fn messages(&self) -> &[Message] {
        self.all.get(1..).unwrap_or_default()
    }

    pub(super) fn push(&mut self, message: Message) {
        self.all.push(message);
    }

    /// Prepares a request: sets the instructions, and gives each call exactly one result.
    pub(super) fn prepare(&mut self, instructions: Option<String>) {
        let text = instructions.as_deref().unwrap_or_default();
        let same = matches!(self.all.first(), Some(Message::System(known)) if known == text);
        if !same || self.is_instructed != instructions.is_some() {
            self.is_instructed = instructions.is_some();
            self.prompt = None;
            if let Some(first) = self.all.first_mut() {
                *first = Message::System(instructions.unwrap_or_default());
            }
        }
        // Only new messages need a repair: the calls in sent messages have their results.
        let new = self.all.split_off(1 + self.sent);
        let ids = new.iter().flat_map(Message::calls).map(|call| call.id.clone());
        Arc::make_mut(&mut self.ids).extend(ids);
        self.has_files |= new.iter().any(Message::has_files);
        self.all.extend(repair(&new, |_| Missing::OutcomeUnknown));
        self.sent = self.messages().len();
    }

    /// Returns the messages of the prepared request.
    pub(super) fn request(&self) -> &[Message] {
        self.all.get(usize::from(!self.is_instructed)..).unwrap_or_default()
    }

    /// Removes the oldest files if they exceed the limit of a request. Returns the messages before the removal, so that
    /// this request reports the loss. Later requests do not have the files, which bounds the memory.
    pub(super) fn bound(&mut self) -> Option<Vec<Message>> {
        let bounded = self.has_files.then(|| bounded(self.messages())).flatten()?;
        let before = self.request().to_vec();
        self.all.truncate(1);
        self.all.extend(bounded.messages);
        self.prompt = None;
        Some(before)
    }

    /// Returns the ids of the calls in the prepared request.
    pub(super) const fn ids(&self) -> &Arc<HashSet<CallId>> {
        &self.ids
    }

    /// Returns [`ModelRequest::prompt_hash`](crate::agent::ModelRequest::prompt_hash) of the prepared request. Only
    /// messages that the previous request did not have are hashed. `None` if a message cannot be serialized.
    pub(super) fn prompt_hash(&mut self, model: &str, tools: Hash) -> Option<Hash> {
        let mut prompt = match self.prompt.take().filter(|prompt| prompt.model == model) {
            Some(prompt) => prompt,
            None => {
                let mut hashing = Hashing::default();
                hashing.update(b"[");
                hashing.update(&serde_json::to_vec(model).ok()?);
                hashing.update(b",[");
                Prompt { model: model.to_owned(), hashing, messages: 0 }
            }
        };
        for message in self.request().iter().skip(prompt.messages) {
            if prompt.messages > 0 {
                prompt.hashing.update(b",");
            }
            prompt.hashing.update(&serde_json::to_vec(message).ok()?);
            prompt.messages += 1;
        }
        let mut hashing = prompt.hashing.clone();
        self.prompt = Some(prompt);
        hashing.update(b"],");
        hashing.update(&serde_json::to_vec(&tools).ok()?);
        hashing.update(b"]");
        Some(hashing.finish())
    }
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.messages().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for History {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolPolicy;
    use crate::agent::ModelRequest;
    use crate::wire::RequestSettings;
    use crate::wire::history::{CallMessage, Part, ResultMessage};
    use crate::{RunOptions, ToolCatalog, ToolRunner};

    fn call(id: &str) -> Message {
        Message::Assistant(vec![Part::Call(CallMessage::new(id, "a__b", "{}"))])
    }

    fn result(id: &str) -> Message {
        Message::Result(ResultMessage::new(id, "1"))
    }

    /// Compares the requests of a conversation with requests that are made without cached state.
    #[test]
    fn a_request_is_what_it_would_be_without_memory() {
        let runner = ToolRunner::builder(ToolCatalog::builder().build().unwrap(), ToolPolicy::deny_all());
        let run = runner.build().unwrap().run(RunOptions::new());
        let settings = RequestSettings::new();
        let mut history = History::default();
        let mut plain = Vec::new();
        let turns = [
            (Some("Be brief."), "m", vec![Message::user("One.")]),
            (Some("Be brief."), "m", vec![call("c1"), result("c1")]),
            // Results that occur twice, have no call, or are out of place.
            (Some("Be brief."), "m", vec![call("c2"), result("c2"), result("c2"), result("c1"), Message::user("Two.")]),
            (Some("Be brief."), "m", vec![call("c3"), Message::user("Three.")]),
            (Some("Be long."), "m", vec![Message::assistant("Yes.")]),
            (Some("Be long."), "n", vec![]),
            (None, "n", vec![Message::user("Four.")]),
            (Some(""), "n", vec![]),
        ];
        for (at, (instructions, model, new)) in turns.into_iter().enumerate() {
            plain.extend(new.iter().cloned());
            new.into_iter().for_each(|message| history.push(message));
            history.prepare(instructions.map(str::to_owned));
            let system = instructions.map(|text| Message::System(text.to_owned())).into_iter();
            let whole: Vec<_> = system.chain(repair(&plain, |_| Missing::OutcomeUnknown)).collect();
            assert_eq!(history.request(), whole, "{at}");
            let request = ModelRequest::new(&whole, run.catalog(), &settings);
            let hash = history.prompt_hash(model, run.catalog().hash());
            assert_eq!(hash, Some(request.prompt_hash(model)), "{at}");
            let ids = whole.iter().flat_map(Message::calls).map(|call| call.id.clone()).collect();
            assert_eq!(**history.ids(), ids, "{at}");
            // A document contains only the messages.
            let read: History = serde_json::from_str(&serde_json::to_string(&history).unwrap()).unwrap();
            assert_eq!(read.messages(), history.messages());
        }
    }
}
