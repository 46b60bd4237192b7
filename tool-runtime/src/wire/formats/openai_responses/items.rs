//! The items of a response, whichever of their events come (S1, S2).

use std::collections::{HashMap, HashSet};

use crate::wire::decode::arguments::Piece;
use crate::wire::decode::fields::{List, Text, shape};
use crate::wire::decode::turn::Writer;

shape! {
    /// One output item.
    pub(super) struct Item<'a> {
        "type" => kind: Text<'a>,
        "id" => pub(super) id: Text<'a>,
        "call_id" => call_id: Text<'a>,
        "name" => name: Text<'a>,
        "arguments" => arguments: Piece<'a>,
        "input" => input: Text<'a>,
        "execution" => execution: Text<'a>,
        "content" => content: List<Part<'a>>,
    }
}

shape! {
    struct Part<'a> {
        "type" => kind: Text<'a>,
        "text" => text: Text<'a>,
        "refusal" => refusal: Text<'a>,
    }
}

/// How a text comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Piece by piece.
    Delta,
    /// As a whole, which repeats its deltas if there were any.
    Whole,
}

fn is_call(item: &Item<'_>) -> bool {
    matches!(item.kind.get(), "function_call" | "custom_tool_call")
}

/// The identity of an item: its index in the output, or its own id if a server sends no index.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Index(i64),
    Id(Box<str>),
}

impl Key {
    pub(super) fn new(index: Option<i64>, id: &str) -> Self {
        index.map_or_else(|| Self::Id(id.into()), Self::Index)
    }
}

#[derive(Default)]
pub(super) struct Items {
    calls: HashMap<Key, usize>,
    /// Parts of messages whose text was taken from deltas, or from an earlier event that is authoritative.
    parts: HashSet<(Key, i64)>,
    any_text: bool,
    /// Items that the client has to act on, and that are not calls.
    waiting: Vec<(Box<str>, &'static str)>,
    /// Their call ids that the provider answered itself.
    answered: HashSet<Box<str>>,
}

/// Kinds of items that the client has to act on. The provider handles all others, except calls.
const WAITING: &[&str] = &[
    "apply_patch_call",
    "computer_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
    "tool_search_call",
];

impl Items {
    /// The call of an item; without its start event the call begins without a name.
    pub(super) fn call(&mut self, key: &Key, turn: &mut Writer<'_>) -> Option<usize> {
        if let Some(call) = self.calls.get(key) {
            return Some(*call);
        }
        let call = turn.start("", "")?;
        self.calls.insert(key.clone(), call);
        Some(call)
    }

    pub(super) fn added(&mut self, key: &Key, item: &Item<'_>, turn: &mut Writer<'_>) {
        if is_call(item) {
            self.take(key, item, turn);
        }
    }

    /// Takes a completed item, which is authoritative (S2).
    pub(super) fn done(&mut self, key: &Key, item: &Item<'_>, turn: &mut Writer<'_>) {
        match item.kind.get() {
            _ if is_call(item) => self.take(key, item, turn),
            "message" => self.message(key, item, turn),
            _ => self.other(item),
        }
    }

    /// An item in the list of a whole response: it counts only if none of its events came.
    pub(super) fn listed(&mut self, at: Option<i64>, item: &Item<'_>, turn: &mut Writer<'_>) {
        let key = Key::new(at, item.id.get());
        let by_id = Key::Id(item.id.get().into());
        match item.kind.get() {
            _ if is_call(item) => {
                let known = self.calls.contains_key(&key)
                    || self.calls.contains_key(&by_id)
                    || turn
                        .call_by_id(item.call_id.get())
                        .is_some_and(|call| self.calls.values().any(|known| *known == call));
                if !known && let Some(call) = turn.start(item.call_id.get(), item.name.get()) {
                    item.arguments.add(call, turn);
                    turn.append_text(call, item.input.get());
                }
            }
            "message" if !self.any_text => {
                self.message(&key, item, turn);
                self.any_text = false;
            }
            _ => self.other(item),
        }
    }

    /// An item that is neither a call nor a message.
    fn other(&mut self, item: &Item<'_>) {
        let kind = item.kind.get();
        if let Some(known) = WAITING.iter().find(|known| **known == kind) {
            // The provider executes the search unless `execution` names the client.
            if kind != "tool_search_call" || item.execution.get() == "client" {
                self.waiting.push((item.call_id.get().into(), known));
            }
        } else if kind.ends_with("_output") {
            self.answered.insert(item.call_id.get().into());
        }
    }

    /// The kind of an item that waits for the client.
    pub(super) fn unanswered(&self) -> Option<&'static str> {
        let waits = |(id, _): &&(Box<str>, _)| id.is_empty() || !self.answered.contains(id);
        self.waiting.iter().find(waits).map(|(_, kind)| *kind)
    }

    fn take(&mut self, key: &Key, item: &Item<'_>, turn: &mut Writer<'_>) {
        let by_id = Key::Id(item.id.get().into());
        let known =
            self.calls.get(key).or_else(|| self.calls.get(&by_id).filter(|_| !item.id.get().is_empty())).copied();
        let Some(call) = known.or_else(|| turn.start("", "")) else { return };
        self.calls.insert(key.clone(), call);
        if !item.id.get().is_empty() {
            self.calls.insert(by_id, call);
        }
        Self::name(call, item.name.get(), turn);
        // The id of a call is `call_id`, never the item's own.
        turn.offer_id(call, item.call_id.get());
        item.arguments.replace(call, turn);
        // The input of a custom tool is text; the gate refuses what is not a JSON object.
        turn.replace_text(call, item.input.get());
    }

    pub(super) fn name(call: usize, name: &str, turn: &mut Writer<'_>) {
        if turn.name(call).is_empty() {
            turn.append_name(call, name);
        }
    }

    fn message(&mut self, key: &Key, item: &Item<'_>, turn: &mut Writer<'_>) {
        for (at, part) in item.content.iter().enumerate() {
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            match part.kind.get() {
                "output_text" => self.text(key, at, part.text.get(), Form::Whole, turn),
                "refusal" => self.refusal(key, at, part.refusal.get(), Form::Whole, turn),
                _ => {}
            }
        }
    }

    pub(super) fn text(&mut self, key: &Key, part: i64, text: &str, form: Form, turn: &mut Writer<'_>) {
        if self.is_news(key, part, form) {
            turn.text(text);
        }
    }

    pub(super) fn refusal(&mut self, key: &Key, part: i64, text: &str, form: Form, turn: &mut Writer<'_>) {
        if self.is_news(key, part, form) {
            turn.refusal(text);
        }
    }

    /// Whether a text is new: a whole text is, unless its deltas came.
    fn is_news(&mut self, key: &Key, part: i64, form: Form) -> bool {
        self.any_text = true;
        let first = self.parts.insert((key.clone(), part));
        first || form == Form::Delta
    }
}
