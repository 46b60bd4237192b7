//! Lines of Ollama's chat, read as borrowed types.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::assemble::Writer;
use crate::wire::decode::{Dialect, Framing};
use crate::wire::lenient::{Integer, List, Object, Text};
use crate::wire::piece::Piece;
use crate::wire::provider_error::provider_error;
use crate::wire::{Finish, Usage, WireErrorKind};

/// Nothing has to be remembered from line to line.
pub(super) struct Ollama;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    model: Text<'a>,
    #[serde(borrow)]
    message: Object<Message<'a>>,
    #[serde(borrow)]
    done: Option<&'a RawValue>,
    #[serde(borrow)]
    done_reason: Text<'a>,
    prompt_eval_count: Integer,
    eval_count: Integer,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow)]
    tool_calls: List<Call<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Call<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    function: Object<Function<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Dialect for Ollama {
    fn name(&self) -> &'static str {
        super::NAME
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn frame(&mut self, _event: &[u8], data: &str, turn: &mut Writer<'_>) {
        let Ok(Object(Some(line))) = serde_json::from_str::<Object<Line<'_>>>(data) else {
            return turn.fail_with(WireErrorKind::MalformedFrame);
        };
        if let Some(error) = line.error.and_then(|raw| provider_error(raw.get(), false)) {
            return turn.fail(error);
        }
        turn.response("", line.model.get());
        if let Some(message) = line.message.0 {
            turn.text(message.content.get());
            // O1: each listed call is complete, and lists add up.
            for call in message.tool_calls.into_iter() {
                let function = call.function.0.unwrap_or_default();
                let Some(at) = turn.start(call.id.get(), function.name.get()) else { return };
                turn.settle_id(at);
                Piece::read(function.arguments).add(at, turn);
            }
        }
        if line.done.is_some_and(|done| done.get() == "true") {
            let (input, output) = (line.prompt_eval_count.count(), line.eval_count.count());
            if input.is_some() || output.is_some() {
                turn.usage(Usage { input_tokens: input.unwrap_or(0), output_tokens: output.unwrap_or(0) });
            }
            done(line.done_reason.get(), turn);
            turn.close();
        }
    }

    fn body(&mut self, body: &str, turn: &mut Writer<'_>) {
        self.frame(b"", body, turn);
    }
}

/// R5, R10: what the reason means; older servers give none. An unknown one is not believed.
fn done(reason: &str, turn: &mut Writer<'_>) {
    if !reason.is_empty() {
        turn.provider_finish(reason);
    }
    match reason {
        "" | "stop" | "tool_calls" | "load" | "unload" => turn.end_well(),
        "length" => turn.end_cut(Finish::Length),
        _ => turn.fail_with(WireErrorKind::ProtocolViolation),
    }
}
