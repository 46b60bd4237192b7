//! Encodes a model's turn as items for Responses. Items of the provider are sent back unchanged.
//!
//! The provider refuses reasoning without an item after it. It also refuses an item whose reasoning is missing.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::wire::decode::arguments::Piece as Arguments;
use crate::wire::decode::fields::{Raw, Text, read, shape};
use crate::wire::decode::members::{only, without};
use crate::wire::encode::{Messages, Node, Object, short_id};
use crate::wire::formats::openai_responses::item::Item;
use crate::wire::history::{CallMessage, Part, ProviderState};

shape! {
    struct ProviderData<'a> {
        "type" => kind: Text<'a>,
        "after" => after: Text<'a>,
        "item" => item: Raw<'a>,
    }
}

/// An item as the provider sent it.
struct Came<'a> {
    text: &'a str,
    item: Item<'a>,
    /// The id of the reasoning item before it; empty if there is none.
    after: String,
}

impl<'a> Came<'a> {
    fn read(json: &'a str) -> Option<Self> {
        let kept: ProviderData<'a> = read(json).ok()?;
        let text = kept.item.0.filter(|_| kept.kind.get().is_empty()).unwrap_or(json);
        Some(Self { text, item: read(text).ok()?, after: kept.after.get().to_owned() })
    }
}

/// The encoder of the items of a turn.
pub(super) struct Replay<'o, 'a> {
    out: &'o mut Messages<'a>,
    /// Reasoning that waits for the item after it.
    held: Vec<Came<'a>>,
    /// The ids of the reasoning items in the turn.
    reasoning: HashSet<String>,
    /// The ids of calls that another item of the turn answers.
    answered: HashSet<String>,
}

impl<'o, 'a> Replay<'o, 'a> {
    pub(super) fn new(out: &'o mut Messages<'a>) -> Self {
        Self { out, held: Vec::new(), reasoning: HashSet::new(), answered: HashSet::new() }
    }

    pub(super) fn turn(mut self, parts: &[&'a Part]) {
        self.answered = parts.iter().filter_map(|part| answered(part)).collect();
        let mut rest = parts;
        while let Some((part, after)) = rest.split_first() {
            rest = after;
            match part {
                Part::Reasoning { provider_state, .. } => match self.came(provider_state.as_ref()) {
                    Some(came) => {
                        self.reasoning.insert(came.item.id.get().to_owned());
                        self.held.push(came);
                    }
                    None => self.out.lose_part(part),
                },
                Part::Text { text, provider_state } => match self
                    .came(provider_state.as_ref())
                    .and_then(|came| covered(&came.item, parts_of(rest, part)).map(|covers| (came, covers)))
                {
                    Some((came, covers)) => {
                        rest = rest.get(covers..).unwrap_or_default();
                        self.message(&came);
                    }
                    None => {
                        if provider_state.is_some() {
                            self.out.lose("data that only another provider or model understands");
                        }
                        self.text(text);
                    }
                },
                Part::Refusal(text) => self.text(text),
                Part::Call(call) => self.call(call),
                Part::ProviderState(provider_state) => {
                    let came = self.came(Some(provider_state)).filter(|came| !self.waits(&came.item));
                    match came {
                        Some(came) if self.is_whole(&came) => {
                            if self.block(&came, rest.first().copied()) {
                                rest = rest.get(1..).unwrap_or_default();
                            }
                        }
                        // The provider accepts a web search without an id, and then requires no reasoning before it.
                        // Other items need their id.
                        Some(came) if came.item.kind.get() == "web_search_call" => {
                            self.out.lose("the id of a web search whose reasoning is gone");
                            self.push(Object::new().with_members(Some(Cow::Owned(without(came.text, &["id"])))));
                        }
                        _ => self.out.lose_part(part),
                    }
                }
                Part::Media(_) | Part::Citation(_) => self.out.lose_part(part),
            }
        }
        self.drop_held();
    }

    fn came(&self, provider_state: Option<&'a ProviderState>) -> Option<Came<'a>> {
        self.out.fits(provider_state).and_then(Came::read)
    }

    /// Whether the turn contains the reasoning that came before the item.
    fn is_whole(&self, came: &Came<'_>) -> bool {
        came.after.is_empty() || self.reasoning.contains(&came.after)
    }

    /// Whether the item waits for the client, and the turn contains no answer to it.
    fn waits(&self, item: &Item<'_>) -> bool {
        item.waits().is_some() && !self.answered.contains(item.call_id.get())
    }

    /// Writes an item of the provider, with the reasoning before it.
    fn push(&mut self, item: Object<'a>) {
        for came in std::mem::take(&mut self.held) {
            self.out.push(Object::new().with_provider_state(Some(came.text)));
        }
        self.out.push(item);
    }

    /// Leaves out reasoning that the provider would refuse, because its next item is missing or newly encoded.
    fn drop_held(&mut self) {
        for came in std::mem::take(&mut self.held) {
            self.reasoning.remove(came.item.id.get());
            self.out.lose("reasoning whose next item is gone");
        }
    }

    fn message(&mut self, came: &Came<'a>) {
        if self.is_whole(came) {
            return self.push(Object::new().with_provider_state(Some(came.text)));
        }
        // Without an id, the message needs no reasoning before it.
        self.out.lose("the id of a message whose reasoning is gone");
        self.push(Object::new().with_members(Some(Cow::Owned(without(came.text, &["id", "status"])))));
    }

    fn text(&mut self, text: &'a str) {
        if text.is_empty() {
            return;
        }
        self.drop_held();
        let none = Node::List(Vec::new());
        let content = Object::of_type("output_text").with("text", text).with("annotations", none);
        self.out.push(Object::of_type("message").with("role", "assistant").with("content", vec![content]));
    }

    fn call(&mut self, call: &'a CallMessage) {
        let name = self.out.name_of(call);
        let neutral = |kind| Object::of_type(kind).with("call_id", short_id(call)).with("name", name.clone());
        let function = |out: &mut Messages<'a>| neutral("function_call").with("arguments", out.arguments_of(call));
        let Some(came) = self.came(call.provider_state()).filter(|came| came.item.is_call()) else {
            self.out.replay(call.provider_state());
            self.drop_held();
            let item = function(self.out);
            return self.out.push(item);
        };
        let is_whole = self.is_whole(&came);
        let is_custom = is_custom(&came.item);
        let is_readable = match &came.item.arguments {
            Arguments::Text(text) => CallMessage::new("", "", text).is_readable(),
            Arguments::Object(_) | Arguments::Nothing => is_custom,
        };
        let same = came.item.call_id.get() == short_id(call) && came.item.name.get() == name;
        if is_whole && is_readable && same {
            return self.push(Object::new().with_provider_state(Some(came.text)));
        }
        // The item cannot be sent unchanged: its id or name differs from the call's in this request, its arguments are
        // not an object, or its reasoning is missing.
        let kept = if is_whole {
            only(came.text, &["id", "input", "namespace", "caller"])
        } else {
            self.out.lose("the id of a call whose reasoning is gone");
            only(came.text, &["input", "namespace", "caller"])
        };
        let item = if is_custom { neutral("custom_tool_call") } else { function(self.out) };
        self.push(item.with_members(Some(Cow::Owned(kept))));
    }

    /// Writes an item of a provider's own kind. Returns whether the next part belongs to it.
    fn block(&mut self, came: &Came<'a>, next: Option<&'a Part>) -> bool {
        let item = Object::new().with_provider_state(Some(came.text));
        if came.item.kind.get() != "image_generation_call" || only(came.text, &["result"]) != "{}" {
            self.push(item);
            return false;
        }
        let media = if let Some(Part::Media(media)) = next { media.data() } else { None };
        match media {
            Some(data) => {
                self.push(Object::new().with("result", data).with_provider_state(Some(came.text)));
                true
            }
            None => {
                self.out.lose("data that only another provider or model understands");
                false
            }
        }
    }
}

/// Whether a call is of a tool that takes free text instead of arguments; its result has its own type.
pub(super) fn is_custom_call(out: &Messages<'_>, call: &CallMessage) -> bool {
    call.provider_state()
        .filter(|provider_state| out.takes(provider_state))
        .and_then(|provider_state| Came::read(provider_state.json()))
        .is_some_and(|came| is_custom(&came.item))
}

fn is_custom(item: &Item<'_>) -> bool {
    item.kind.get() == "custom_tool_call"
}

/// The id of the call that a part answers.
fn answered(part: &Part) -> Option<String> {
    let Part::ProviderState(provider_state) = part else { return None };
    let came = Came::read(provider_state.json()).filter(|came| came.item.answers())?;
    Some(came.item.call_id.get().to_owned())
}

/// A text part and the following parts that belong to the same message.
fn parts_of<'p, 'a>(rest: &'p [&'a Part], first: &'a Part) -> (&'a Part, &'p [&'a Part]) {
    let own = |part: &&Part| match part {
        Part::Text { provider_state, .. } => provider_state.is_none(),
        Part::Refusal(_) | Part::Citation(_) => true,
        _ => false,
    };
    let count = rest.iter().take_while(|part| own(part)).count();
    (first, rest.get(..count).unwrap_or_default())
}

/// The number of parts after the first that an item covers; `None` if their text differs from the item's, because it
/// was edited.
fn covered(item: &Item<'_>, (first, rest): (&Part, &[&Part])) -> Option<usize> {
    let (mut text, mut refusal) = (String::new(), String::new());
    for part in std::iter::once(&first).chain(rest) {
        match part {
            Part::Text { text: part, .. } => text.push_str(part),
            Part::Refusal(part) => refusal.push_str(part),
            _ => {}
        }
    }
    for part in item.content.iter() {
        text = match part.kind.get() {
            "output_text" => text.strip_prefix(part.text.get())?.to_owned(),
            _ => text,
        };
        refusal = refusal.strip_prefix(part.refusal.get())?.to_owned();
    }
    (text.is_empty() && refusal.is_empty()).then_some(rest.len())
}
