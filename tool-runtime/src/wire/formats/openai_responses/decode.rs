//! Decodes the events and whole bodies of Responses through borrowed types.

use crate::wire::decode::arguments::Piece;
use crate::wire::decode::fields::{Count, Integer, List, Object, Raw, Text, Whole, read, shape};
use crate::wire::decode::provider_error::{CodeIn, event_error, provider_error};
use crate::wire::decode::turn::Writer;
use crate::wire::decode::{Dialect, fill_frame, unreadable};
use crate::wire::formats::openai::{OutputDetails, Read};
use crate::wire::formats::openai_responses::item::Item;
use crate::wire::formats::openai_responses::items::{Form, Items};
use crate::wire::formats::openai_responses::places::Key;
use crate::wire::{FinishReason, Format, Usage, WireError, WireErrorKind};

/// The decoding state of one response.
#[derive(Default)]
pub(crate) struct Responses {
    items: Items,
}

shape! {
    struct Event<'a> {
        "type" => kind: Text<'a>,
        "output_index" => output_index: Integer,
        "content_index" => content_index: Integer,
        "item_id" => item_id: Text<'a>,
        "summary_index" => summary_index: Integer,
        "item" => item: Object<Box<Whole<'a, Item<'a>>>>,
        "delta" => delta: Text<'a>,
        "text" => text: Text<'a>,
        "refusal" => refusal: Text<'a>,
        "name" => name: Text<'a>,
        "arguments" => arguments: Piece<'a>,
        "input" => input: Text<'a>,
        "response" => response: Object<Box<Response<'a>>>,
        "error" => error: Raw<'a>,
    }
}

shape! {
    struct Response<'a> {
        "id" => id: Text<'a>,
        "model" => model: Text<'a>,
        "status" => status: Text<'a>,
        "store" => store: Raw<'a>,
        "output" => output: List<Whole<'a, Item<'a>>>,
        "usage" => usage: Object<Tokens>,
        "incomplete_details" => incomplete_details: Object<Incomplete<'a>>,
        "error" => error: Raw<'a>,
    }
}

shape! {
    struct Incomplete<'a> {
        "reason" => reason: Text<'a>,
    }
}

shape! {
    struct Tokens {
        "input_tokens" => input_tokens: Count,
        "output_tokens" => output_tokens: Count,
        "input_tokens_details" => read: Object<Read>,
        "output_tokens_details" => written: Object<OutputDetails>,
    }
}

impl Tokens {
    /// The token counts; `None` if the provider counted none.
    fn usage(&self) -> Option<Usage> {
        let (input, output) = (self.input_tokens, self.output_tokens);
        if input.count().is_none() && output.count().is_none() {
            return None;
        }
        let mut usage = Usage::new(input.count().unwrap_or(0), output.count().unwrap_or(0));
        if let Some(read) = &self.read.0 {
            usage.cache_read_tokens = read.cached.count().unwrap_or(0);
            usage.cache_write_tokens = read.cache_write.count().unwrap_or(0);
        }
        usage.reasoning_tokens = self.written.0.as_ref().and_then(|written| written.reasoning.count()).unwrap_or(0);
        Some(usage)
    }
}

impl Dialect for Responses {
    fn format(&self) -> Format {
        Format::OpenAiResponses
    }

    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>) {
        let mut parsed = Event::default();
        if fill_frame(&mut parsed, (event, data), CodeIn::Code, turn) {
            self.event(&parsed, data, turn);
        }
    }

    fn body(&mut self, body: &str, turn: &mut Writer<'_>) {
        match read::<Response<'_>>(body) {
            Ok(response) => self.last(&response, response.status.get(), turn),
            Err(_) => turn.fail_with(unreadable(body)),
        }
    }
}

impl Responses {
    // The `type` inside the data decides, not the `event` line (rule S1 of `wire`).
    fn event(&mut self, event: &Event<'_>, data: &str, turn: &mut Writer<'_>) {
        let id = event.item.0.as_ref().map_or(event.item_id.get(), |item| item.value.id.get());
        let key = Key { index: event.output_index.0, id };
        let part = event.content_index.0.unwrap_or(0);
        match event.kind.get() {
            "error" => turn.fail(event_error(data, CodeIn::Code)),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let status = event.kind.get().trim_start_matches("response.");
                self.last(event.response.0.as_deref().unwrap_or(&Response::default()), status, turn);
                turn.close();
            }
            "response.output_item.added" => {
                if let Some(item) = &event.item.0 {
                    self.items.added(key, &item.value, turn);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = &event.item.0 {
                    self.items.done(key, item, turn);
                }
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let Some(call) = self.items.call(key, turn) else { return };
                turn.append_text(call, event.delta.get());
            }
            "response.function_call_arguments.done" => {
                let Some(call) = self.items.call(key, turn) else { return };
                Items::name(call, event.name.get(), turn);
                event.arguments.replace(call, turn);
            }
            "response.custom_tool_call_input.done" => {
                let Some(call) = self.items.call(key, turn) else { return };
                turn.replace_text(call, event.input.get());
            }
            "response.output_text.delta" => self.items.text(key, part, event.delta.get(), Form::Delta, turn),
            "response.output_text.done" => self.items.text(key, part, event.text.get(), Form::Whole, turn),
            "response.refusal.delta" => self.items.refusal(key, part, event.delta.get(), Form::Delta, turn),
            "response.refusal.done" => self.items.refusal(key, part, event.refusal.get(), Form::Whole, turn),
            "response.reasoning_summary_text.delta" => {
                self.items.reasoning(key, event.summary_index.0.unwrap_or(0), event.delta.get(), turn);
            }
            // An item has either a summary or a text of its reasoning.
            "response.reasoning_text.delta" => self.items.reasoning(key, part, event.delta.get(), turn),
            _ if event.error.0.is_some_and(|raw| provider_error(raw, CodeIn::Code).is_some()) => {
                turn.fail(event_error(data, CodeIn::Code));
            }
            _ => {
                if let Some(response) = &event.response.0 {
                    self.begin(response, turn);
                }
            }
        }
    }

    /// Reads the response's id and model, and whether the provider stores it.
    fn begin(&mut self, response: &Response<'_>, turn: &mut Writer<'_>) {
        turn.response(response.id.get(), response.model.get());
        if let Some(store) = response.store.0.filter(|store| *store != "null") {
            self.items.stored(store != "false");
        }
    }

    /// Reads the whole response. Only a completed one ends the turn well (S3).
    fn last(&mut self, response: &Response<'_>, status: &str, turn: &mut Writer<'_>) {
        self.begin(response, turn);
        if let Some(usage) = response.usage.0.as_ref().and_then(Tokens::usage) {
            turn.usage(usage);
        }
        self.items.begin_list();
        for (at, item) in response.output.iter().enumerate() {
            self.items.listed(i64::try_from(at).ok(), item, turn);
        }
        if !status.is_empty() {
            turn.provider_finish(status);
        }
        if let Some(error) = response.error.0.and_then(|raw| provider_error(raw, CodeIn::Code)) {
            return turn.fail(error);
        }
        match status {
            "completed" => {
                turn.end_well();
                if let Some(kind) = self.items.unanswered() {
                    turn.fail(WireError::unsupported_item(kind));
                }
            }
            "incomplete" => match response.incomplete_details.0.as_ref().map_or("", |details| details.reason.get()) {
                "content_filter" => turn.end_cut(FinishReason::ContentFilter),
                _ => turn.end_cut(FinishReason::Length),
            },
            "failed" | "cancelled" => turn.fail(WireError::provider("", None)),
            "queued" | "in_progress" => {}
            _ => turn.fail_with(WireErrorKind::ProtocolViolation),
        }
    }
}
