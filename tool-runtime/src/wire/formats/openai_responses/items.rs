//! [`Items`]: collects the items of a response, whichever of their events arrive (rules S1 and S2 of `wire`).

use std::collections::{HashMap, HashSet};

use crate::json::quote;
use crate::wire::decode::fields::Whole;
use crate::wire::decode::members::without;
use crate::wire::decode::turn::{BoundTo, Writer};
use crate::wire::formats::openai_responses::item::{self, Item};
use crate::wire::formats::openai_responses::places::{ItemPlace, Key, Places};
use crate::wire::history::Media;

/// How the text of an item arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// In pieces.
    Delta,
    /// As a whole, which repeats the pieces if there were any.
    Whole,
}

#[derive(Default)]
pub(super) struct Items {
    places: Places,
    /// The text part of each piece of content, by the message's first part and the index of the piece.
    texts: HashMap<(usize, i64), usize>,
    /// The first parts of messages that have text.
    begun: HashSet<usize>,
    /// The piece that the last delta extended: the index of its item, its own index, and its part.
    current: Option<(i64, i64, usize)>,
    /// The piece of reasoning that the last delta extended: its part and its index.
    thought: Option<(usize, i64)>,
    any_text: bool,
    /// The first parts of the items that arrived whole.
    settled: HashSet<usize>,
    /// The id of the last reasoning item. The provider refuses the items after it if a request lacks it.
    reasoning: Box<str>,
    /// Whether the provider reported that it does not store the response.
    is_lost: bool,
    /// The items, other than calls, that the client has to act on.
    waiting: Vec<(Box<str>, &'static str)>,
    /// The call ids of waiting items that the provider answered itself.
    answered: HashSet<Box<str>>,
}

impl Items {
    /// Returns the call of an item. If its start event is missing, starts a call without a name.
    pub(super) fn call(&mut self, key: Key<'_>, turn: &mut Writer<'_>) -> Option<usize> {
        if let Some(ItemPlace::Call(call)) = self.places.get(key) {
            return Some(call);
        }
        let call = turn.start("", "")?;
        self.places.set(key, ItemPlace::Call(call));
        Some(call)
    }

    /// Returns the first part of an item that is not a call, and adds it if it is missing.
    fn part(&mut self, key: Key<'_>, kind: &str, turn: &mut Writer<'_>) -> usize {
        if let Some(ItemPlace::Part(part)) = self.places.get(key) {
            return part;
        }
        let part = match kind {
            "message" => turn.start_text(),
            "reasoning" => turn.start_reasoning(),
            _ => turn.start_carried(),
        };
        self.places.set(key, ItemPlace::Part(part));
        part
    }

    /// Starts an item, which fixes its place in the turn.
    pub(super) fn added(&mut self, key: Key<'_>, item: &Item<'_>, turn: &mut Writer<'_>) {
        if item.is_call() {
            self.take(key, item, turn);
        } else if !item.kind.get().is_empty() {
            self.part(key, item.kind.get(), turn);
        }
    }

    /// Reads a completed item, which overrides its deltas (S2).
    pub(super) fn done(&mut self, key: Key<'_>, whole: &Whole<'_, Item<'_>>, turn: &mut Writer<'_>) {
        let item = &whole.value;
        if item.is_call() {
            if let Some(call) = self.take(key, item, turn) {
                turn.bind_call(call, self.kept(whole.text), BoundTo::Model);
            }
        } else if !item.kind.get().is_empty() {
            self.settle(key, whole, turn);
        }
    }

    fn settle(&mut self, key: Key<'_>, whole: &Whole<'_, Item<'_>>, turn: &mut Writer<'_>) {
        let (item, kind) = (&whole.value, whole.value.kind.get());
        let part = self.part(key, kind, turn);
        let is_new = self.settled.insert(part);
        match kind {
            "message" => self.message(part, item, is_new, turn),
            "reasoning" => {
                turn.reasoning_once(part, &item.reasoning());
                self.reasoning = item.id.get().into();
                // Without a stored response, the request would refer to an unknown id, which the provider refuses
                // ("Reasoning models", encrypted reasoning items; the AI SDK leaves such an item out too).
                if !self.is_lost || item.is_self_contained() {
                    turn.bind(part, whole.text.to_owned(), BoundTo::Model);
                }
                return;
            }
            // The image is stored once, as media.
            "image_generation_call" if !item.result.get().is_empty() => {
                let format = Some(item.output_format.get()).filter(|format| !format.is_empty()).unwrap_or("png");
                // A file that cannot be stored as media is sent back unchanged.
                if let Ok(media) = Media::base64(&format!("image/{format}"), item.result.get()) {
                    if is_new {
                        turn.media(media);
                    }
                    return turn.bind(part, self.kept(&without(whole.text, &["result"])), BoundTo::Model);
                }
            }
            _ if is_new => self.other(item),
            _ => {}
        }
        let bound = if item.is_of_server_tool() { BoundTo::Format } else { BoundTo::Model };
        turn.bind(part, self.kept(whole.text), bound);
    }

    /// Records whether the provider stores the response.
    pub(super) fn stored(&mut self, is_stored: bool) {
        self.is_lost = !is_stored;
    }

    /// Prepares for the list of a whole response, which contains all items from the first.
    pub(super) fn begin_list(&mut self) {
        self.reasoning = Box::default();
    }

    /// Reads an item in the list of a whole response, and takes its provider state. If an event of a call arrived,
    /// nothing else of the call is read. A message with an unknown place is skipped if text has arrived, because it
    /// repeats that text.
    pub(super) fn listed(&mut self, at: Option<i64>, whole: &Whole<'_, Item<'_>>, turn: &mut Writer<'_>) {
        let item = &whole.value;
        let key = Key { index: at, id: item.id.get() };
        if !item.is_call() {
            let is_repeat = item.kind.get() == "message" && self.any_text && self.places.get(key).is_none();
            if !is_repeat && !item.kind.get().is_empty() {
                let any_text = self.any_text;
                self.settle(key, whole, turn);
                self.any_text = any_text;
            }
            return;
        }
        let call = match self.places.get(key) {
            Some(ItemPlace::Call(call)) => call,
            _ => match turn.call_by_id(item.call_id.get()).filter(|call| self.places.has(*call)) {
                Some(call) => call,
                None => {
                    let Some(call) = turn.start(item.call_id.get(), item.name.get()) else { return };
                    item.arguments.add(call, turn);
                    turn.append_text(call, item.input.get());
                    call
                }
            },
        };
        turn.bind_call(call, self.kept(whole.text), BoundTo::Model);
    }

    /// The provider state of an item: the item and, if there is one, the id of the reasoning that the provider requires
    /// before it.
    fn kept(&self, item: &str) -> String {
        if self.reasoning.is_empty() {
            return item.to_owned();
        }
        let mut kept = String::with_capacity(item.len() + self.reasoning.len() + 24);
        kept.push_str("{\"after\":");
        quote(&mut kept, &self.reasoning);
        kept.push_str(",\"item\":");
        kept.push_str(item);
        kept.push('}');
        kept
    }

    /// Reads an item that is neither a call, a message nor reasoning.
    fn other(&mut self, item: &Item<'_>) {
        if let Some(kind) = item.waits() {
            self.waiting.push((item.call_id.get().into(), kind));
        } else if item.answers() {
            self.answered.insert(item.call_id.get().into());
        }
    }

    /// The kind of an item that still waits for the client; `None` if there is none.
    pub(super) fn unanswered(&self) -> Option<&'static str> {
        let waits = |(id, _): &&(Box<str>, _)| id.is_empty() || !self.answered.contains(id);
        self.waiting.iter().find(waits).map(|(_, kind)| *kind)
    }

    fn take(&mut self, key: Key<'_>, item: &Item<'_>, turn: &mut Writer<'_>) -> Option<usize> {
        let call = match self.places.get(key) {
            Some(ItemPlace::Call(call)) => call,
            _ => turn.start("", "")?,
        };
        self.places.set(key, ItemPlace::Call(call));
        Self::name(call, item.name.get(), turn);
        // The id of a call is `call_id`, not the item's `id`.
        turn.offer_id(call, item.call_id.get());
        item.arguments.replace(call, turn);
        // The input of a custom tool is any text; the runner refuses text that is not a JSON object.
        turn.replace_text(call, item.input.get());
        Some(call)
    }

    pub(super) fn name(call: usize, name: &str, turn: &mut Writer<'_>) {
        if turn.name(call).is_empty() {
            turn.append_name(call, name);
        }
    }

    fn message(&mut self, first: usize, item: &Item<'_>, is_new: bool, turn: &mut Writer<'_>) {
        for (at, part) in item.content.iter().enumerate() {
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            match part.kind.get() {
                "output_text" => {
                    self.text_of(first, at, part.text.get(), Form::Whole, turn);
                }
                "refusal" if self.is_first(first, at) => turn.refusal(part.refusal.get()),
                _ => {}
            }
            if is_new {
                part.annotations.iter().filter_map(item::Annotation::citation).for_each(|source| turn.citation(source));
            }
        }
    }

    pub(super) fn text(&mut self, key: Key<'_>, at: i64, text: &str, form: Form, turn: &mut Writer<'_>) {
        if let (Some((item, piece, part)), Form::Delta) = (self.current, form)
            && key.index == Some(item)
            && at == piece
            && turn.is_last(part)
        {
            return turn.text(text);
        }
        let first = self.part(key, "message", turn);
        let part = self.text_of(first, at, text, form, turn);
        self.current = key.index.map(|item| (item, at, part));
    }

    fn text_of(&mut self, first: usize, at: i64, text: &str, form: Form, turn: &mut Writer<'_>) -> usize {
        self.any_text = true;
        let known = self.texts.get(&(first, at)).copied();
        if let (Some(part), Form::Whole) = (known, form) {
            turn.replace_text_at(part, text);
            return part;
        }
        let part = known.or_else(|| self.begun.insert(first).then_some(first));
        let part = turn.text_at(part, text);
        self.texts.insert((first, at), part);
        part
    }

    pub(super) fn refusal(&mut self, key: Key<'_>, at: i64, text: &str, form: Form, turn: &mut Writer<'_>) {
        let first = self.part(key, "message", turn);
        if self.is_first(first, at) || form == Form::Delta {
            turn.refusal(text);
        }
    }

    /// Whether this is the first event of a piece of content.
    fn is_first(&mut self, first: usize, at: i64) -> bool {
        self.any_text = true;
        self.texts.insert((first, at), usize::MAX).is_none()
    }

    /// Adds reasoning to show. Pieces are separated by an empty line.
    pub(super) fn reasoning(&mut self, key: Key<'_>, piece: i64, text: &str, turn: &mut Writer<'_>) {
        let part = self.part(key, "reasoning", turn);
        let before = self.thought.replace((part, piece));
        if before.is_some_and(|(of, before)| of == part && before != piece) && !text.is_empty() {
            turn.reasoning_at(part, "\n\n");
        }
        turn.reasoning_at(part, text);
    }
}
