//! Events and whole bodies of Anthropic Messages, read as borrowed types.

use std::collections::HashMap;

use crate::wire::decode::arguments::Piece;
use crate::wire::decode::fields::{Integer, List, Object, Raw, Text, read, shape};
use crate::wire::decode::provider_error::event_error;
use crate::wire::decode::turn::Writer;
use crate::wire::decode::{Dialect, unreadable};
use crate::wire::{Finish, Usage, WireErrorKind};

/// The blocks of one response.
#[derive(Default)]
pub(crate) struct Messages {
    started: bool,
    blocks: HashMap<i64, Block>,
    input_tokens: u64,
}

enum Block {
    /// A call, and the input of its start block until something else or the end shows which one counts.
    Call(usize, Option<String>),
    Text,
    /// A1: skipped.
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

shape! {
    struct Tokens {
        "input_tokens" => input_tokens: Integer,
        "output_tokens" => output_tokens: Integer,
    }
}

impl Dialect for Messages {
    fn name(&self) -> &'static str {
        super::NAME
    }

    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>) {
        if data.trim() == "[DONE]" {
            return turn.close();
        }
        if event == b"error" {
            return turn.fail(event_error(data, true));
        }
        match read::<Event<'_>>(data) {
            Ok(event) => self.event(&event, data, turn),
            Err(_) => turn.fail_with(WireErrorKind::MalformedFrame),
        }
    }

    fn body(&mut self, body: &str, turn: &mut Writer<'_>) {
        let Ok(message) = read::<Message<'_>>(body) else { return turn.fail_with(unreadable(body)) };
        if message.error.0.is_some() || message.kind.get() == "error" {
            return turn.fail(event_error(body, true));
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
                // A1: what the server did itself, and what is unknown, is skipped.
                _ => {}
            }
        }
        self.usage(message.usage.0.as_ref(), turn);
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
            "error" => turn.fail(event_error(data, true)),
            _ if event.error.0.is_some() => turn.fail(event_error(data, true)),
            "message_start" => {
                self.started = true;
                if let Some(message) = &event.message.0 {
                    turn.response(message.id.get(), message.model.get());
                    self.input_tokens =
                        message.usage.0.as_ref().and_then(|usage| usage.input_tokens.count()).unwrap_or(0);
                }
            }
            "content_block_start" if !self.started => turn.fail_with(WireErrorKind::ProtocolViolation),
            "content_block_start" => {
                if let Some(block) = &event.content_block.0 {
                    self.start(index, block, turn);
                }
            }
            "content_block_delta" => match self.blocks.get_mut(&index) {
                // A4: a delta for a block that never started.
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
                self.usage(event.usage.0.as_ref(), turn);
                if let Some(delta) = &event.delta.0 {
                    stop(delta.stop_reason.get(), turn);
                }
            }
            "message_stop" => turn.close(),
            // A1: unknown events are skipped.
            _ => {}
        }
    }

    fn start(&mut self, index: i64, block: &ContentBlock<'_>, turn: &mut Writer<'_>) {
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
        // An index that is used again is another block; the one before it is over.
        if let Some(mut before) = self.blocks.insert(index, started) {
            before.settle(turn);
        }
    }

    fn usage(&self, usage: Option<&Tokens>, turn: &mut Writer<'_>) {
        if let Some(Tokens { input_tokens, output_tokens }) = usage {
            turn.usage(Usage {
                input_tokens: input_tokens.count().filter(|tokens| *tokens > 0).unwrap_or(self.input_tokens),
                output_tokens: output_tokens.count().unwrap_or(0),
            });
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

    /// A2: the start block's input counts when no partial JSON came.
    fn settle(&mut self, turn: &mut Writer<'_>) {
        if let Self::Call(call, input) = self
            && let Some(input) = input.take()
            && !turn.has_arguments(*call)
        {
            add_input(&input, *call, turn);
        }
    }
}

/// The input as it came whole; nothing when none came.
fn add_input(input: &str, call: usize, turn: &mut Writer<'_>) {
    if let Ok(piece) = read::<Piece<'_>>(input) {
        piece.add(call, turn);
    }
}

fn is_empty_object(raw: &str) -> bool {
    raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).is_some_and(|inner| inner.trim().is_empty())
}

/// A3: what a stop reason means. An unknown one is not believed.
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
