//! Encodes a history: takes complete turns and writes the messages of one format.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde_json::value::RawValue;

use crate::media::files;
use crate::wire::encode::{Dialect, Encoded, Loss, Node, Object};
use crate::wire::history::{CallMessage, Missing, Part, Piece, ProviderState, bounded, pieces};
use crate::wire::{Format, Message};

/// The fields of a request body as JSON text.
pub(crate) type Fields = BTreeMap<String, Box<RawValue>>;

/// The messages, fields and losses that the encoder of a history has written so far.
pub(crate) struct Messages<'a> {
    format: Format,
    model: Option<&'a str>,
    /// The index of the current message in the history.
    at: usize,
    /// The pieces after the current message. A piece is a message with its results.
    later: &'a [(usize, Piece<'a>)],
    list: Vec<Object<'a>>,
    system: Vec<&'a str>,
    /// Fields of the body that only this provider has.
    fields: Vec<(&'static str, Node<'a>)>,
    losses: Vec<Loss>,
}

impl<'a> Messages<'a> {
    /// Adds a message.
    pub(crate) fn push(&mut self, message: Object<'a>) {
        self.list.push(message);
    }

    /// Adds instructions that are not part of the list.
    pub(crate) fn system(&mut self, text: &'a str) {
        self.system.push(text);
    }

    /// Sets a field of the body that only this provider has.
    pub(crate) fn field(&mut self, key: &'static str, value: impl Into<Node<'a>>) {
        self.fields.retain(|(name, _)| *name != key);
        self.fields.push((key, value.into()));
    }

    /// Adds a block to the last message if it has the same role, for formats in which roles must alternate.
    pub(crate) fn join(&mut self, role: &'static str, key: &'static str, block: impl Into<Node<'a>>) {
        let block = block.into();
        let last = self.list.last_mut().and_then(|last| {
            let same = matches!(last.get_mut("role"), Some(Node::Text(last)) if *last == role);
            last.get_mut(key).filter(|_| same)
        });
        match last {
            Some(Node::List(blocks)) => blocks.push(block),
            _ => self.list.push(Object::new().with("role", role).with(key, vec![block])),
        }
    }

    /// The pieces after the current message.
    pub(crate) fn later(&self) -> impl Iterator<Item = &'a Piece<'a>> + use<'a> {
        self.later.iter().map(|(_, piece)| piece)
    }

    /// The model of the request, if it is known.
    pub(crate) const fn model(&self) -> Option<&'a str> {
        self.model
    }

    /// The provider state of a part, if a request of this format to this model may contain it.
    pub(crate) fn fits<'c>(&self, provider_state: Option<&'c ProviderState>) -> Option<&'c str> {
        provider_state.filter(|provider_state| self.takes(provider_state)).map(ProviderState::json)
    }

    /// Whether a request of this format to this model may contain the provider state.
    pub(crate) fn takes(&self, provider_state: &ProviderState) -> bool {
        provider_state.fits(self.format, self.model)
    }

    /// Like [`fits`](Self::fits), but reports provider state that is left out. Use it for parts that are also written
    /// without provider state.
    pub(crate) fn replay(&mut self, provider_state: Option<&'a ProviderState>) -> Option<&'a str> {
        let json = self.fits(provider_state);
        if json.is_none() && provider_state.is_some_and(|provider_state| !provider_state.says_nothing()) {
            self.lose("data that only another provider or model understands");
        }
        json
    }

    /// Reports that a part of the message cannot be written.
    pub(crate) fn lose(&mut self, what: &str) {
        self.losses.push(Loss { tool: None, path: format!("/{}", self.at), what: what.to_owned() });
    }

    /// The arguments of a call as JSON text. Unreadable arguments become `{}` and are reported.
    pub(crate) fn arguments_of<'c>(&mut self, call: &'c CallMessage) -> &'c str {
        if !call.is_readable() {
            self.lose("arguments that are not readable JSON");
        }
        call.arguments()
    }

    /// Reports the parts that the repair of a history removed: results without a call, and second calls with the same
    /// id.
    fn lose_orphans(&mut self, history: &[Message], pieces: &[(usize, Piece<'a>)]) {
        let mut answers = HashSet::new();
        for (at, piece) in pieces {
            let Piece::Assistant { parts, answered } = piece else { continue };
            answers.extend(answered.iter().filter_map(|(_, result)| match result {
                Cow::Borrowed(result) => Some(std::ptr::from_ref(*result)),
                Cow::Owned(_) => None,
            }));
            self.at = *at;
            let came = if let Some(Message::Assistant(came)) = history.get(*at) { came.len() } else { 0 };
            (parts.len()..came).for_each(|_| self.lose("a second call with the same id"));
        }
        for (at, message) in history.iter().enumerate() {
            if let Message::Result(result) = message
                && !answers.contains(&std::ptr::from_ref(result))
            {
                self.at = at;
                self.lose("a result without a call");
            }
        }
    }

    /// Reports a part that the format has no place for.
    pub(crate) fn lose_part(&mut self, part: &Part) {
        self.lose(match part {
            Part::Text { .. } => "text",
            Part::Reasoning { .. } => "reasoning",
            Part::Call(_) => "a call",
            Part::Media(_) => "media that the model made",
            Part::Citation(_) => "a citation",
            Part::Refusal(_) => "a refusal",
            Part::ProviderState(_) => "data that only another provider or model understands",
        });
    }
}

/// The parts of a request body that hold the history. A call without a result gets `outcome_unknown`, because an
/// encoder cannot know whether it began.
pub(crate) fn encode_messages(
    format: Format,
    dialect: &dyn Dialect,
    history: &[Message],
    model: Option<&str>,
) -> Encoded<Fields> {
    encode_marked(format, dialect, history, model, false)
}

/// Like [`encode_messages`], but also marks blocks for the provider's cache if `marks` is `true`.
pub(super) fn encode_marked(
    format: Format,
    dialect: &dyn Dialect,
    history: &[Message],
    model: Option<&str>,
    marks: bool,
) -> Encoded<Fields> {
    let bounded = bounded(history);
    let history = bounded.as_ref().map_or(history, |bounded| &bounded.messages);
    let pieces = pieces(history, |_| Missing::OutcomeUnknown);
    let (list, system, fields, losses) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut messages = Messages { format, model, at: 0, later: &pieces, list, system, fields, losses };
    for (at, piece) in &pieces {
        messages.at = *at;
        messages.later = messages.later.get(1..).unwrap_or_default();
        dialect.message(piece, &mut messages);
    }
    messages.lose_orphans(history, &pieces);
    for (at, count) in bounded.iter().flat_map(|bounded| &bounded.left_out) {
        messages.at = *at;
        messages.lose(&format!("{} over the size limit of one request", files(*count)));
    }
    let Messages { mut list, system, mut fields, losses, .. } = messages;
    let mut system = dialect.system(&system).filter(|_| !system.is_empty());
    if marks {
        dialect.mark(system.as_mut().map(|(_, node)| node), &mut list);
    }
    fields.push((dialect.messages_key(), list.into()));
    fields.extend(system);
    let raw = |node: Node<'_>| {
        let mut json = String::new();
        node.write(&mut json);
        RawValue::from_string(json).unwrap_or_default()
    };
    let body = fields.into_iter().map(|(key, value)| (key.to_owned(), raw(value))).collect();
    Encoded { body, losses, ..Encoded::default() }
}
