//! Events and whole bodies of Anthropic Messages, read as borrowed types.

use std::collections::HashMap;

use crate::wire::decode::arguments::Piece;
use crate::wire::decode::fields::{Integer, List, Object, Raw, Text, read, shape};
use crate::wire::decode::provider_error::{CodeIn, event_error};
use crate::wire::decode::turn::Writer;
use crate::wire::decode::{Dialect, unreadable};
use crate::wire::formats::anthropic::usage::Tokens;
use crate::wire::{Finish, Format, Usage, WireErrorKind};

/// The blocks of one response.
#[derive(Default)]
pub(crate) struct Messages {
    /// The id of the message, once it began.
    message: Option<String>,
    /// The message was announced again, so that its blocks may come again.
    repeated: bool,
    blocks: HashMap<i64, Block>,
    usage: Usage,
}

enum Block {
    /// A call, and the input of its start block until the deltas or the end decide which one counts.
    Call(usize, Option<String>),
    Text,
    /// Skipped (A1).
    Other,
}

shape! {
    struct Event<'a> {
        "type" => kind: Text<'a>,
        "index" => index: Integer,
        "message" => message: Object<Message<'a>>,
        "content_block" => content_block: Object<ContentBlock<'a>>,
        "delta" => delta: Object<Delta<'a>>,
        "usage" => usage: Object<Tokens>,
        "error" => error: Raw<'a>,
    }
}

shape! {
    struct Message<'a> {
        "type" => kind: Text<'a>,
        "id" => id: Text<'a>,
        "model" => model: Text<'a>,
        "content" => content: List<ContentBlock<'a>>,
        "stop_reason" => stop_reason: Text<'a>,
        "usage" => usage: Object<Tokens>,
        "error" => error: Raw<'a>,
    }
}

shape! {
    struct ContentBlock<'a> {
        "type" => kind: Text<'a>,
        "id" => id: Text<'a>,
        "name" => name: Text<'a>,
        "input" => input: Raw<'a>,
        "text" => text: Text<'a>,
    }
}

shape! {
    struct Delta<'a> {
        "type" => kind: Text<'a>,
        "text" => text: Text<'a>,
        "partial_json" => partial_json: Text<'a>,
        "stop_reason" => stop_reason: Text<'a>,
    }
}

impl Dialect for Messages {
    fn format(&self) -> Format {
        Format::Anthropic
    }

    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>) {
        if data.trim() == "[DONE]" {
            return turn.close();
        }
        if event == b"error" {
            return turn.fail(event_error(data, CodeIn::CodeOrType));
        }
        match read::<Event<'_>>(data) {
            Ok(event) => self.event(&event, data, turn),
            Err(_) => turn.fail_with(WireErrorKind::MalformedFrame),
        }
    }

    fn body(&mut self, body: &str, turn: &mut Writer<'_>) {
        let Ok(message) = read::<Message<'_>>(body) else { return turn.fail_with(unreadable(body)) };
        if message.error.0.is_some() || message.kind.get() == "error" {
            return turn.fail(event_error(body, CodeIn::CodeOrType));
        }
        if message.kind.get() != "message" {
            return turn.fail_with(WireErrorKind::ProtocolViolation);
        }
        turn.response(message.id.get(), message.model.get());
        for block in message.content.iter() {
            match block.kind.get() {
                "text" => turn.text(block.text.get()),
                "tool_use" => {
                    let Some(call) = turn.start(block.id.get(), block.name.get()) else { return };
                    add_input(block.input.0.unwrap_or_default(), call, turn);
                }
                // The server's own calls and unknown blocks are skipped (A1).
                _ => {}
            }
        }
        self.count(&message.usage, turn);
        stop(message.stop_reason.get(), turn);
    }

    fn end(&mut self, turn: &mut Writer<'_>) {
        for block in self.blocks.values_mut() {
            block.settle(turn);
        }
    }
}

impl Messages {
    fn event(&mut self, event: &Event<'_>, data: &str, turn: &mut Writer<'_>) {
        let index = event.index.0.unwrap_or(-1);
        match event.kind.get() {
            "error" => turn.fail(event_error(data, CodeIn::CodeOrType)),
            _ if event.error.0.is_some() => turn.fail(event_error(data, CodeIn::CodeOrType)),
            "message_start" => {
                let message = event.message.0.as_ref();
                let id = message.map_or("", |message| message.id.get());
                // A gateway that tries again in the middle sends a second message: no call of either may run.
                self.repeated = match &self.message {
                    Some(open) if open != id => return turn.fail_with(WireErrorKind::ProtocolViolation),
                    open => open.is_some(),
                };
                self.message = Some(id.to_owned());
                if let Some(message) = message {
                    turn.response(message.id.get(), message.model.get());
                    self.usage.provisional = true;
                    self.count(&message.usage, turn);
                }
            }
            "content_block_start" if self.message.is_none() => turn.fail_with(WireErrorKind::ProtocolViolation),
            "content_block_start" => {
                if let Some(block) = &event.content_block.0 {
                    self.start(index, block, turn);
                }
            }
            "content_block_delta" => match self.blocks.get_mut(&index) {
                // A delta for a block that never started (A4).
                None => turn.fail_with(WireErrorKind::ProtocolViolation),
                Some(block) => {
                    if let Some(delta) = &event.delta.0 {
                        block.delta(delta, turn);
                    }
                }
            },
            "content_block_stop" => {
                if let Some(block) = self.blocks.get_mut(&index) {
                    block.settle(turn);
                }
            }
            "message_delta" => {
                self.end(turn);
                self.usage.provisional = false;
                self.count(&event.usage, turn);
                if let Some(delta) = &event.delta.0 {
                    stop(delta.stop_reason.get(), turn);
                }
            }
            "message_stop" => turn.close(),
            // Unknown events are skipped (A1).
            _ => {}
        }
    }

    fn start(&mut self, index: i64, block: &ContentBlock<'_>, turn: &mut Writer<'_>) {
        // The blocks of a message that was announced again come again: a call would run twice.
        if self.repeated && self.blocks.contains_key(&index) {
            return turn.fail_with(WireErrorKind::ProtocolViolation);
        }
        let started = match block.kind.get() {
            "text" => {
                turn.text(block.text.get());
                Block::Text
            }
            "tool_use" => {
                let Some(call) = turn.start(block.id.get(), block.name.get()) else { return };
                turn.settle_id(call);
                turn.reopen();
                let input = block.input.0.filter(|input| !is_empty_object(input));
                Block::Call(call, input.map(str::to_owned))
            }
            _ => Block::Other,
        };
        // An index that is used again begins another block and ends the one before.
        if let Some(mut before) = self.blocks.insert(index, started) {
            before.settle(turn);
        }
    }

    fn count(&mut self, tokens: &Object<Tokens>, turn: &mut Writer<'_>) {
        if let Some(tokens) = &tokens.0 {
            tokens.update(&mut self.usage);
            turn.usage(self.usage);
        }
    }
}

impl Block {
    fn delta(&mut self, delta: &Delta<'_>, turn: &mut Writer<'_>) {
        match (self, delta.kind.get()) {
            (Self::Call(call, _), "input_json_delta") => {
                turn.reopen();
                turn.append_text(*call, delta.partial_json.get());
            }
            (Self::Text, "text_delta") => turn.text(delta.text.get()),
            _ => {}
        }
    }

    /// Takes the start block's input if no partial JSON came (A2).
    fn settle(&mut self, turn: &mut Writer<'_>) {
        if let Self::Call(call, input) = self
            && let Some(input) = input.take()
            && !turn.has_arguments(*call)
        {
            add_input(&input, *call, turn);
        }
    }
}

/// Adds an input that came whole, if one came.
fn add_input(input: &str, call: usize, turn: &mut Writer<'_>) {
    if let Ok(piece) = read::<Piece<'_>>(input) {
        piece.add(call, turn);
    }
}

fn is_empty_object(raw: &str) -> bool {
    raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).is_some_and(|inner| inner.trim().is_empty())
}

/// The meaning of a stop reason (A3). An unknown one fails the turn.
fn stop(reason: &str, turn: &mut Writer<'_>) {
    if reason.is_empty() {
        return;
    }
    turn.provider_finish(reason);
    match reason {
        "tool_use" | "end_turn" | "stop_sequence" => turn.end_well(),
        "max_tokens" | "model_context_window_exceeded" => turn.end_cut(Finish::Length),
        "refusal" => turn.end_cut(Finish::Refusal),
        "pause_turn" => turn.end_cut(Finish::Pause),
        _ => turn.fail_with(WireErrorKind::ProtocolViolation),
    }
}
