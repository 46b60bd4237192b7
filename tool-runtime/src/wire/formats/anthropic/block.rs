//! [`Block`]: a block of a response, from its start to its end.

use serde::de::IgnoredAny;

use crate::wire::WireErrorKind;
use crate::wire::decode::arguments::Piece;
use crate::wire::decode::fields::read;
use crate::wire::decode::turn::{BoundTo, Writer};
use crate::wire::formats::anthropic::shape::{
    ContentBlock, Delta, FALLBACK, Whole, entries, members, quoted, rewritten, sources,
};

/// A block that has started.
pub(super) struct Block {
    kind: Kind,
    /// Whether the block has not ended.
    open: bool,
}

enum Kind {
    /// The index of a call, and the input of its start block. The input is used only if no delta sends one (rule A2 of
    /// `wire`).
    Call(usize, Option<String>),
    /// Text: the index of its part, the members of its start block except the text, and the citations of its deltas.
    Text { part: usize, rest: Option<String>, citations: String },
    /// Thinking: the index of its part, its start block and its signature.
    Thinking { part: usize, start: String, signature: String },
    /// A block that is sent back unchanged: the index of its part, its start block and the additions of its deltas.
    ProviderState { part: usize, start: String, added: Box<Added> },
}

/// The additions of deltas to a block of provider state.
#[derive(Default)]
struct Added {
    text: String,
    thinking: String,
    input: String,
    citations: String,
    signature: Option<String>,
    /// The delta that contains the final summary of a compaction.
    compaction: Option<String>,
}

impl Block {
    /// Starts a block. Returns `None` and fails the turn if the block cannot be read.
    pub(super) fn start(raw: &str, is_streamed: bool, turn: &mut Writer<'_>) -> Option<Self> {
        let Ok(block) = read::<ContentBlock<'_>>(raw) else {
            let is_object = raw.starts_with('{');
            turn.fail_with(if is_object { WireErrorKind::MalformedFrame } else { WireErrorKind::ProtocolViolation });
            return None;
        };
        let kind = match block.kind.get() {
            "text" => {
                let part = turn.start_text();
                let rest = rewritten(raw, &["type", "text"], Vec::new());
                Kind::Text { part: turn.text_at(Some(part), block.text.get()), rest, citations: String::new() }
            }
            "tool_use" => {
                let call = turn.start(block.id.get(), block.name.get())?;
                turn.settle_id(call);
                turn.reopen();
                if let Some(rest) = rewritten(raw, &["type", "id", "name", "input"], Vec::new()) {
                    turn.bind_call(call, rest, BoundTo::Format);
                }
                // In a stream, the start block has an empty input, which the deltas replace.
                let input = block.input.0.filter(|input| !is_streamed || !is_empty_object(input));
                Kind::Call(call, input.map(str::to_owned))
            }
            "thinking" => {
                let part = turn.start_reasoning();
                turn.reasoning_at(part, block.thinking.get());
                Kind::Thinking { part, start: raw.to_owned(), signature: block.signature.get().to_owned() }
            }
            "redacted_thinking" => {
                let part = turn.start_reasoning();
                Kind::ProviderState { part, start: raw.to_owned(), added: Box::default() }
            }
            kind => {
                if kind == FALLBACK {
                    turn.served_by(block.to.0.as_ref().map_or("", |to| to.model.get()));
                }
                let part = turn.start_carried();
                Kind::ProviderState { part, start: raw.to_owned(), added: Box::default() }
            }
        };
        Some(Self { kind, open: true })
    }

    /// Whether the block is a call that has not ended.
    pub(super) const fn is_open_call(&self) -> bool {
        self.open && matches!(self.kind, Kind::Call(..))
    }

    /// Adds a delta. A delta that does not belong to the kind of block is skipped, as in the official SDKs (A1).
    pub(super) fn delta(&mut self, delta: &Delta<'_>, data: &str, turn: &mut Writer<'_>) {
        match (&mut self.kind, delta.kind.get()) {
            (Kind::Text { part, .. }, "text_delta") => *part = turn.text_at(Some(*part), delta.text.get()),
            (Kind::Call(call, _), "input_json_delta") => {
                turn.reopen();
                turn.append_text(*call, delta.partial_json.get());
            }
            (Kind::Call(..), _) => {}
            // The provider state is already complete, so further deltas break the protocol.
            _ if !self.open => turn.fail_with(WireErrorKind::ProtocolViolation),
            (Kind::Thinking { part, .. }, "thinking_delta") => turn.reasoning_at(*part, delta.thinking.get()),
            (Kind::Thinking { signature, .. }, "signature_delta") => delta.signature.get().clone_into(signature),
            (Kind::Text { citations, .. }, "citations_delta") => push(citations, delta.citation.0),
            (Kind::ProviderState { added, .. }, kind) => added.delta(kind, delta, data),
            _ => {}
        }
    }

    /// Ends the block: decides on the input of a call (A2) and keeps the provider state. Thinking without its end or
    /// its signature cannot be sent back, nor can any other block without an end (A5).
    pub(super) fn settle(&mut self, ended: bool, turn: &mut Writer<'_>) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        match &mut self.kind {
            Kind::Call(call, input) => {
                if let Some(input) = input.take()
                    && !turn.has_arguments(*call)
                    && let Ok(piece) = read::<Piece<'_>>(&input)
                {
                    piece.add(*call, turn);
                }
            }
            Kind::Text { part, rest, citations } => {
                let mut provider_state = rest.take();
                let start = provider_state.as_deref().unwrap_or("{}");
                if !citations.is_empty() || citations_of(start).contains("\"file_id\"") {
                    provider_state =
                        rewritten(start, &[], vec![("citations", without_files(&cited(start, citations)))]);
                }
                if let Some(json) = provider_state {
                    sources(citations_of(&json)).into_iter().for_each(|source| turn.citation(source));
                    turn.bind(*part, json, BoundTo::Format);
                }
            }
            Kind::Thinking { part, start, signature } if ended && !signature.is_empty() => {
                let signature = vec![("signature", quoted(signature))];
                if let Some(json) = rewritten(start, &["thinking"], signature) {
                    turn.bind(*part, json, BoundTo::Model);
                }
            }
            Kind::ProviderState { part, start, added } if ended => {
                let bound = bound_to(start);
                turn.bind(*part, added.to(std::mem::take(start)), bound);
            }
            Kind::Thinking { .. } | Kind::ProviderState { .. } => {}
        }
    }
}

impl Added {
    fn delta(&mut self, kind: &str, delta: &Delta<'_>, data: &str) {
        match kind {
            "text_delta" => self.text.push_str(delta.text.get()),
            "thinking_delta" => self.thinking.push_str(delta.thinking.get()),
            "input_json_delta" => self.input.push_str(delta.partial_json.get()),
            "signature_delta" => self.signature = Some(delta.signature.get().to_owned()),
            "citations_delta" => push(&mut self.citations, delta.citation.0),
            "compaction_delta" => {
                let whole = read::<Whole<'_>>(data).ok().and_then(|event| event.delta.0);
                self.compaction = whole.map(str::to_owned);
            }
            // Unknown kinds of deltas leave the block unchanged.
            _ => {}
        }
    }

    /// The block with the additions.
    fn to(&self, start: String) -> String {
        let mut set = Vec::new();
        let block = read::<ContentBlock<'_>>(&start).unwrap_or_default();
        for (key, before, added) in [("text", &block.text, &self.text), ("thinking", &block.thinking, &self.thinking)] {
            if !added.is_empty() {
                set.push((key, quoted(&[before.get(), added].concat())));
            }
        }
        if let Some(signature) = &self.signature {
            set.push(("signature", quoted(signature)));
        }
        if !self.citations.is_empty() {
            set.push(("citations", cited(&start, &self.citations)));
        }
        if !self.input.is_empty() {
            // An incomplete input is kept as a string. The encoder does not send such a block.
            let is_json = serde_json::from_str::<IgnoredAny>(&self.input).is_ok();
            set.push(("input", if is_json { self.input.clone() } else { quoted(&self.input) }));
        }
        for (key, value) in self.compaction.as_deref().map(members).unwrap_or_default() {
            if let Some(key) = ["content", "encrypted_content"].into_iter().find(|name| *name == key) {
                set.push((key, value.to_owned()));
            }
        }
        if set.is_empty() { start } else { rewritten(&start, &[], set).unwrap_or_default() }
    }
}

/// The requests that may contain a block. Any model may read the calls, results and files of server tools, which
/// Anthropic runs. Other blocks may be sealed by the model that wrote them, as thinking is.
fn bound_to(block: &str) -> BoundTo {
    let block = read::<ContentBlock<'_>>(block).unwrap_or_default();
    match block.kind.get() {
        "server_tool_use" | "mcp_tool_use" | "container_upload" => BoundTo::Format,
        kind if kind.ends_with("_tool_result") => BoundTo::Format,
        _ => BoundTo::Model,
    }
}

/// The citations of a block; empty if it has none.
fn citations_of(block: &str) -> &str {
    read::<ContentBlock<'_>>(block).ok().and_then(|block| block.citations.0).unwrap_or_default()
}

/// The citations of a block's start and those of its deltas, as a list.
fn cited(start: &str, added: &str) -> String {
    let before = citations_of(start).strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or_default();
    let comma = if before.trim().is_empty() { "" } else { "," };
    format!("[{before}{comma}{added}]")
}

/// The citations without their `file_id`, which the provider refuses in requests.
fn without_files(list: &str) -> String {
    let mut blocks = String::new();
    for entry in entries(list) {
        let kept = entry.starts_with('{').then(|| rewritten(entry, &["file_id"], Vec::new()));
        push(&mut blocks, kept.flatten().as_deref().or(Some(entry)));
    }
    format!("[{blocks}]")
}

/// Adds an entry to the inside of a list.
fn push(list: &mut String, entry: Option<&str>) {
    if let Some(entry) = entry {
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(entry);
    }
}

fn is_empty_object(raw: &str) -> bool {
    raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).is_some_and(|inner| inner.trim().is_empty())
}
