//! Decodes the lines of Ollama's chat through borrowed types.

use std::borrow::Cow;

use crate::media::Media;
use crate::wire::decode::arguments::Piece;
use crate::wire::decode::cursor::Json;
use crate::wire::decode::fields::{Count, Flag, List, Object, Raw, Text, Whole, fill, shape};
use crate::wire::decode::members::{Members, without};
use crate::wire::decode::provider_error::{CodeIn, provider_error};
use crate::wire::decode::turn::{BoundTo, Writer};
use crate::wire::decode::{Dialect, Framing};
use crate::wire::{FinishReason, Format, Usage, WireErrorKind};

/// The decoding state: the members of the response other than its text and its calls.
#[derive(Default)]
pub(crate) struct Ollama(Members);

shape! {
    struct Line<'a> {
        "model" => model: Text<'a>,
        "message" => message: Object<Message<'a>>,
        "done" => done: Flag,
        "done_reason" => done_reason: Text<'a>,
        "prompt_eval_count" => prompt_eval_count: Count,
        "eval_count" => eval_count: Count,
        "error" => error: Raw<'a>,
    }
}

shape! {
    struct Message<'a> {
        "thinking" => thinking: Text<'a>,
        "content" => content: Text<'a>,
        "tool_calls" => tool_calls: List<Whole<'a, Call<'a>>>,
        rare rare: ["images"] and all but ["role"],
    }
}

shape! {
    struct Call<'a> {
        "id" => id: Text<'a>,
        "function" => function: Object<Whole<'a, Function<'a>>>,
    }
}

shape! {
    struct Function<'a> {
        "name" => name: Text<'a>,
        "arguments" => arguments: Piece<'a>,
        "index" => index: Raw<'a>,
    }
}

impl Dialect for Ollama {
    fn format(&self) -> Format {
        Format::Ollama
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn frame(&mut self, _event: &[u8], data: &str, turn: &mut Writer<'_>) {
        let mut line = Line::default();
        if fill(&mut line, data).is_err() {
            return turn.fail_with(WireErrorKind::MalformedFrame);
        }
        if let Some(error) = line.error.0.and_then(|raw| provider_error(raw, CodeIn::Code)) {
            return turn.fail(error);
        }
        turn.response("", line.model.get());
        if let Some(message) = &line.message.0 {
            if let Some(part) = turn.reasoning(message.thinking.get()) {
                // The server accepts its thinking as plain text, so the provider state only records the model.
                turn.bind(part, "{}".to_owned(), BoundTo::Model);
            }
            turn.text(message.content.get());
            message.rare.others().for_each(|(name, value)| self.0.add(name, value));
            for image in message.rare.get("images").map(strings).unwrap_or_default() {
                // The server sends no media type, so it is detected from the bytes.
                if let Ok(media) = Media::unlabelled(&image) {
                    turn.media(media);
                }
            }
            // Each listed call is complete, and the lists of several lines add up (rule O1 of `wire`).
            for Whole { value: call, text } in message.tool_calls.iter() {
                let function = call.function.0.as_ref();
                let name = function.map_or("", |function| function.value.name.get());
                let Some(at) = turn.start(call.id.get(), name) else { return };
                turn.settle_id(at);
                if let Some(function) = function {
                    function.value.arguments.add(at, turn);
                    if call.id.came() || function.value.index.0.is_some() {
                        let rest = without(function.text, &["name", "arguments"]);
                        let call = without(text, &["function"]);
                        turn.bind_call(at, format!("{{\"call\":{call},\"function\":{rest}}}"), BoundTo::Model);
                    }
                }
            }
        }
        if line.done.0 {
            let (input, output) = (line.prompt_eval_count.count(), line.eval_count.count());
            if input.is_some() || output.is_some() {
                turn.usage(Usage::new(input.unwrap_or(0), output.unwrap_or(0)));
            }
            done(line.done_reason.get(), turn);
            turn.close();
        }
    }

    fn body(&mut self, body: &str, turn: &mut Writer<'_>) {
        self.frame(b"", body, turn);
    }

    fn end(&mut self, turn: &mut Writer<'_>) {
        if !self.0.is_empty() {
            turn.provider_state(format!("{{\"message\":{}}}", self.0.object()), BoundTo::Model);
        }
    }
}

/// The strings of a list.
fn strings(list: &str) -> Vec<Cow<'_, str>> {
    let (mut json, mut strings) = (Json::new(list), Vec::new());
    // Values that are not strings are skipped (R6).
    let _ =
        json.array(|json| if json.peek() == b'"' { json.string().map(|text| strings.push(text)) } else { json.skip() });
    strings
}

/// Applies the finish reason, which older servers omit. An unknown reason fails the turn (R5, R10).
fn done(reason: &str, turn: &mut Writer<'_>) {
    if !reason.is_empty() {
        turn.provider_finish(reason);
    }
    match reason {
        "" | "stop" | "tool_calls" | "load" | "unload" => turn.end_well(),
        "length" => turn.end_cut(FinishReason::Length),
        _ => turn.fail_with(WireErrorKind::ProtocolViolation),
    }
}
