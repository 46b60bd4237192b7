//! [`MessageMembers`]: collects the members of a message other than its text and its calls, and keeps those that must
//! be sent back to the provider.

use std::collections::{BTreeMap, BTreeSet};

use crate::json::quote;
use crate::wire::decode::fields::{List, Object, Raw, Text, Whole, read, shape};
use crate::wire::decode::members::{Members, without};
use crate::wire::decode::turn::{BoundTo, Writer};
use crate::wire::formats::openai_chat::chunk::Delta;
use crate::wire::formats::openai_chat::fragments::Fragments;
use crate::wire::formats::openai_chat::media::{audio, image};
use crate::wire::formats::openai_chat::sources::CitedSource;

shape! {
    struct Audio<'a> {
        "id" => id: Text<'a>,
        "data" => data: Text<'a>,
    }
}

shape! {
    struct Annotation<'a> {
        "url_citation" => url: Object<CitedSource<'a>>,
    }
}

shape! {
    struct Image<'a> {
        "image_url" => url: Object<CitedSource<'a>>,
    }
}

shape! {
    /// A piece of content in a list.
    struct Piece<'a> {
        "type" => kind: Text<'a>,
        "text" => text: Text<'a>,
        "refusal" => refusal: Text<'a>,
        "thinking" => thinking: Raw<'a>,
        "image_url" => image: Object<CitedSource<'a>>,
    }
}

shape! {
    struct Thought<'a> {
        "text" => text: Text<'a>,
    }
}

/// A chunk of thinking in the content.
struct Chunk {
    part: usize,
    /// The JSON text of the latest fragment. `text` is the joined text of all fragments.
    json: String,
    text: String,
    fragments: usize,
}

/// The members of a message other than its text and its calls.
#[derive(Default)]
pub(super) struct MessageMembers {
    /// Whether the response contains `reasoning_content`; `plain` is the same for `reasoning`. `parts` are the parts of
    /// both.
    content: bool,
    plain: bool,
    parts: Vec<usize>,
    details: Fragments,
    blocks: Fragments,
    chunks: Vec<Chunk>,
    /// The other members of the message.
    members: Members,
    annotations: Vec<String>,
    audio_id: String,
    audio: String,
    images: usize,
    /// The members of each call.
    calls: BTreeMap<usize, Members>,
    /// The calls of free-form tools.
    custom: BTreeSet<usize>,
}

impl MessageMembers {
    /// Reads the members that come before the text of a delta or a message.
    pub(super) fn before(&mut self, delta: &Delta<'_>, turn: &mut Writer<'_>) {
        let (content, plain) = (&delta.reasoning_content, &delta.reasoning);
        if !content.came() && !plain.came() && delta.rare.is_empty() {
            return;
        }
        self.content |= content.came();
        self.plain |= plain.came();
        // If a server fills both `reasoning_content` and `reasoning`, they contain the same text.
        let text = if content.get().is_empty() { plain.get() } else { content.get() };
        self.think(text, turn);
        let details = delta.rare.get("reasoning_details").map(|list| self.details.add(list)).unwrap_or_default();
        let blocks = delta.rare.get("thinking_blocks").map(|list| self.blocks.add(list)).unwrap_or_default();
        // These lists usually repeat the text of the two fields; some servers send only the lists.
        if !self.content && !self.plain {
            self.think(if details.is_empty() { &blocks } else { &details }, turn);
        }
    }

    fn think(&mut self, text: &str, turn: &mut Writer<'_>) {
        self.parts.extend(turn.reasoning(text));
    }

    /// Reads the members that come after the text of a delta or a message.
    pub(super) fn after(&mut self, delta: &Delta<'_>, turn: &mut Writer<'_>) {
        if delta.rare.is_empty() {
            return;
        }
        let signature = delta.rare.get("provider_specific_fields").filter(|raw| raw.contains("signature"));
        for (name, value) in [
            ("extra_content", delta.rare.get("extra_content")),
            ("thought_signature", delta.rare.get("thought_signature")),
            ("provider_specific_fields", signature),
        ] {
            if let Some(value) = value {
                self.members.set(name, value.to_owned());
            }
        }
        delta.rare.others().for_each(|(name, value)| self.members.add(name, value));
        if let Some(list) = delta.rare.get("annotations") {
            let list: List<Whole<'_, Annotation<'_>>> = read(list).unwrap_or_default();
            for annotation in list.iter() {
                if let Some(source) = &annotation.value.url.0 {
                    turn.citation(source.citation());
                }
                self.annotations.push(annotation.text.to_owned());
            }
        }
        if let Some(audio) = Raw(delta.rare.get("audio")).object::<Audio<'_>>() {
            self.audio_id.push_str(if self.audio_id.is_empty() { audio.id.get() } else { "" });
            self.audio.push_str(audio.data.get());
        }
        if let Some(list) = delta.rare.get("images") {
            let list: List<Image<'_>> = read(list).unwrap_or_default();
            for source in list.iter().filter_map(|image| image.url.0.as_ref()) {
                if let Some(image) = image(source.url.get()) {
                    turn.media(image);
                    self.images += 1;
                }
            }
        }
    }

    /// Reads content that is a list.
    pub(super) fn list(&mut self, list: &str, turn: &mut Writer<'_>) {
        let list: List<Whole<'_, Piece<'_>>> = read(list).unwrap_or_default();
        for piece in list.iter() {
            match piece.value.kind.get() {
                "" | "text" | "output_text" => turn.text(piece.value.text.get()),
                "refusal" => turn.refusal(piece.value.refusal.get()),
                "thinking" => self.chunk(piece, turn),
                "image_url" => {
                    if let Some(image) = piece.value.image.0.as_ref().and_then(|source| image(source.url.get())) {
                        turn.media(image);
                    }
                }
                _ => turn.provider_state(format!("{{\"content\":{}}}", piece.text), BoundTo::Model),
            }
        }
    }

    fn chunk(&mut self, piece: &Whole<'_, Piece<'_>>, turn: &mut Writer<'_>) {
        let thoughts = piece.value.thinking.0.unwrap_or_default();
        let thoughts: List<Thought<'_>> = read(thoughts).unwrap_or_default();
        let text: String = thoughts.iter().map(|thought| thought.text.get()).collect();
        let started = turn.reasoning(&text);
        match (started, self.chunks.last_mut()) {
            (None, Some(chunk)) => {
                chunk.text.push_str(&text);
                piece.text.clone_into(&mut chunk.json);
                chunk.fragments += 1;
            }
            _ => {
                let part = started.unwrap_or_else(|| turn.start_reasoning());
                self.chunks.push(Chunk { part, json: piece.text.to_owned(), text, fragments: 1 });
            }
        }
    }

    /// Keeps a member of a call.
    pub(super) fn call(&mut self, call: usize, name: &str, json: &str) {
        self.calls.entry(call).or_default().add(name, json);
    }

    /// Records that a call is of a free-form tool.
    pub(super) fn custom(&mut self, call: usize) {
        self.custom.insert(call);
    }

    /// Ends the response: binds the members to their parts as provider state.
    pub(super) fn end(&mut self, turn: &mut Writer<'_>) {
        // A provider may require the reasoning of every turn with calls, even if it is empty.
        if self.content && self.parts.is_empty() && turn.has_calls() {
            self.parts.push(turn.start_reasoning());
        }
        let fields = match (self.content, self.plain) {
            (true, true) => r#"{"reasoning_content":true,"reasoning":true}"#,
            (true, false) => r#"{"reasoning_content":true}"#,
            (false, true) => r#"{"reasoning":true}"#,
            (false, false) => "{}",
        };
        for part in &self.parts {
            turn.bind(*part, fields.to_owned(), BoundTo::Model);
        }
        for chunk in &self.chunks {
            turn.bind(chunk.part, chunk.json(), BoundTo::Model);
        }
        for part in turn.later_texts() {
            turn.bind(part, "{}".to_owned(), BoundTo::Model);
        }
        for call in std::mem::take(&mut self.custom) {
            let (mut name, mut input) = (String::new(), String::new());
            quote(&mut name, turn.name(call));
            quote(&mut input, turn.argument_text(call));
            self.call(call, "custom", &format!(r#"{{"name":{name},"input":{input}}}"#));
        }
        for (call, members) in std::mem::take(&mut self.calls) {
            turn.bind_call(call, members.object(), BoundTo::Model);
        }
        self.message(turn);
    }

    /// Binds the members that belong to the whole message.
    fn message(&mut self, turn: &mut Writer<'_>) {
        let lists = [("reasoning_details", self.details.json()), ("thinking_blocks", self.blocks.json())];
        for (name, list) in lists {
            if let Some(list) = list {
                self.members.set(name, list);
            }
        }
        if !self.annotations.is_empty() {
            self.members.set("annotations", format!("[{}]", self.annotations.join(",")));
        }
        if !self.audio_id.is_empty() {
            let mut id = String::new();
            quote(&mut id, &self.audio_id);
            self.members.set("audio", format!("{{\"id\":{id}}}"));
        }
        if let Some(audio) = audio(&self.audio) {
            turn.media(audio);
        }
        if self.members.is_empty() && self.images == 0 && !turn.has_refusal() {
            return;
        }
        let members = self.members.object();
        let (images, refusal) = (self.images, turn.has_refusal());
        let message = format!(r#"{{"images":{images},"refusal":{refusal},"message":{members}}}"#);
        turn.provider_state(message, BoundTo::Model);
    }
}

impl Chunk {
    fn json(&self) -> String {
        let json = if self.fragments == 1 {
            self.json.clone()
        } else {
            let mut text = String::new();
            quote(&mut text, &self.text);
            let rest = without(&self.json, &["type", "thinking"]);
            let rest = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
            let comma = if rest.is_empty() { "" } else { "," };
            format!(r#"{{"type":"thinking","thinking":[{{"type":"text","text":{text}}}]{comma}{rest}}}"#)
        };
        format!("{{\"content\":{json}}}")
    }
}
