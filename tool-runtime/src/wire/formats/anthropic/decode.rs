//! Decodes the events and whole bodies of Anthropic Messages.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::decode::fields::{Object, Raw, read};
use crate::wire::decode::provider_error::{CodeIn, event_error};
use crate::wire::decode::turn::{BoundTo, Writer};
use crate::wire::decode::{Dialect, fill_frame, unreadable};
use crate::wire::formats::anthropic::block::Block;
use crate::wire::formats::anthropic::shape::{Event, Message};
use crate::wire::formats::anthropic::usage::{Counts, Tokens};
use crate::wire::{FinishReason, Format, WireErrorKind};

/// The decoding state of one response.
#[derive(Default)]
pub(crate) struct Messages {
    /// The id of the message, once it has started.
    message: Option<String>,
    /// Whether the message started twice, in which case its blocks may be repeated.
    repeated: bool,
    blocks: BTreeMap<i64, Block>,
    /// The indices of the blocks that have not ended.
    open: BTreeSet<i64>,
    /// The container that ran code of the turn, as JSON. The next request names it.
    container: Option<String>,
    counts: Counts,
}

impl Dialect for Messages {
    fn format(&self) -> Format {
        Format::Anthropic
    }

    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>) {
        let mut parsed = Event::default();
        if fill_frame(&mut parsed, (event, data), CodeIn::CodeOrType, turn) {
            self.event(&parsed, data, turn);
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
        for block in &message.content.0 {
            let Some(mut block) = Block::start(block, false, turn) else { return };
            block.settle(true, turn);
        }
        self.take_container(message.container);
        self.count(&message.usage, turn);
        stop(message.stop_reason.get(), turn);
    }

    fn end(&mut self, turn: &mut Writer<'_>) {
        self.settle(false, turn);
        if let Some(container) = self.container.take() {
            turn.provider_state(format!("{{\"container\":{container}}}"), BoundTo::Format);
        }
    }
}

impl Messages {
    fn event(&mut self, event: &Event<'_>, data: &str, turn: &mut Writer<'_>) {
        let index = event.index.0.unwrap_or(-1);
        match event.kind.get() {
            "error" => turn.fail(event_error(data, CodeIn::CodeOrType)),
            _ if event.error.0.is_some() => turn.fail(event_error(data, CodeIn::CodeOrType)),
            "content_block_delta" => match self.blocks.get_mut(&index) {
                // A delta for a block that never started (rule A4 of `wire`).
                None => turn.fail_with(WireErrorKind::ProtocolViolation),
                Some(block) => {
                    if let Some(delta) = &event.delta.0 {
                        block.delta(delta, data, turn);
                    }
                }
            },
            "message_start" => self.begin(event.message, turn),
            "content_block_start" if self.message.is_none() => turn.fail_with(WireErrorKind::ProtocolViolation),
            "content_block_start" => self.start(index, event.content_block, turn),
            "content_block_stop" => {
                if let Some(block) = self.blocks.get_mut(&index) {
                    block.settle(true, turn);
                    self.open.remove(&index);
                }
            }
            "message_delta" => {
                self.settle(true, turn);
                self.counts.settle();
                match event.usage.known() {
                    Ok(usage) => self.count(&usage, turn),
                    Err(_) => return turn.fail_with(WireErrorKind::MalformedFrame),
                }
                if let Some(delta) = &event.delta.0 {
                    self.take_container(delta.container);
                    stop(delta.stop_reason.get(), turn);
                }
            }
            "message_stop" => turn.close(),
            // Unknown events are skipped (A1).
            _ => {}
        }
    }

    fn begin(&mut self, message: Raw<'_>, turn: &mut Writer<'_>) {
        let Ok(message) = message.known::<Message<'_>>() else { return turn.fail_with(WireErrorKind::MalformedFrame) };
        let id = message.0.as_ref().map_or("", |message| message.id.get());
        // A gateway that retries within a response sends a second message. No call of either message may run.
        self.repeated = match &self.message {
            Some(open) if open != id => return turn.fail_with(WireErrorKind::ProtocolViolation),
            open => open.is_some(),
        };
        self.message = Some(id.to_owned());
        if let Some(message) = &message.0 {
            turn.response(id, message.model.get());
            self.take_container(message.container);
            self.counts.begin();
            self.count(&message.usage, turn);
        }
    }

    fn start(&mut self, index: i64, block: Raw<'_>, turn: &mut Writer<'_>) {
        let before = self.blocks.get_mut(&index);
        // A message that starts twice repeats its blocks, so a call would run twice.
        if self.repeated && before.is_some() {
            return turn.fail_with(WireErrorKind::ProtocolViolation);
        }
        // A second block under one index ends the first.
        let is_open_call = before.is_some_and(|before| {
            let is_open_call = before.is_open_call();
            before.settle(true, turn);
            is_open_call
        });
        let Some(block) = Block::start(block.0.unwrap_or_default(), true, turn) else { return };
        // The deltas could belong to either call, and the second call could repeat the first.
        if is_open_call && block.is_open_call() {
            return turn.fail_with(WireErrorKind::ProtocolViolation);
        }
        self.blocks.insert(index, block);
        self.open.insert(index);
    }

    /// Ends the blocks that are still open.
    fn settle(&mut self, ended: bool, turn: &mut Writer<'_>) {
        for index in std::mem::take(&mut self.open) {
            if let Some(block) = self.blocks.get_mut(&index) {
                block.settle(ended, turn);
            }
        }
    }

    fn take_container(&mut self, container: Raw<'_>) {
        if let Some(container) = container.0 {
            self.container = Some(container.to_owned());
        }
    }

    fn count(&mut self, tokens: &Object<Tokens>, turn: &mut Writer<'_>) {
        if let Some(tokens) = &tokens.0 {
            turn.usage(self.counts.update(tokens));
        }
    }
}

/// Applies a stop reason (A3). An unknown one fails the turn.
fn stop(reason: &str, turn: &mut Writer<'_>) {
    if reason.is_empty() {
        return;
    }
    turn.provider_finish(reason);
    match reason {
        "tool_use" | "end_turn" | "stop_sequence" => turn.end_well(),
        "max_tokens" | "model_context_window_exceeded" => turn.end_cut(FinishReason::Length),
        "refusal" => turn.end_cut(FinishReason::Refusal),
        "pause_turn" | "compaction" => turn.end_cut(FinishReason::Pause),
        _ => turn.fail_with(WireErrorKind::ProtocolViolation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::decode::DecodeOptions;
    use crate::wire::decode::turn::Turn;

    #[test]
    fn an_ended_block_is_not_looked_at_again() {
        let mut turn = Turn::new(Format::Anthropic, &DecodeOptions::default());
        let mut messages = Messages::default();
        let mut frame = |messages: &mut Messages, data: &str| {
            messages.frame(b"", data, &mut Writer { turn: &mut turn, show: &mut |_| {} });
        };
        frame(&mut messages, r#"{"type":"message_start","message":{"id":"m"}}"#);
        for index in 0..100 {
            let block = r#"{"type":"text","text":"a"}"#;
            let start = format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#);
            frame(&mut messages, &start);
        }
        frame(&mut messages, r#"{"type":"content_block_stop","index":7}"#);
        assert_eq!((messages.blocks.len(), messages.open.len()), (100, 99));
        frame(&mut messages, r#"{"type":"message_delta","delta":{}}"#);
        assert_eq!((messages.blocks.len(), messages.open.len()), (100, 0));
    }
}
