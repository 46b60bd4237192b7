//! Frames and whole bodies of Chat Completions, read as borrowed types.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::assemble::Writer;
use crate::wire::decode::Dialect;
use crate::wire::lenient::{Content, Integer, List, Object, Text};
use crate::wire::openai_chat::select::Selector;
use crate::wire::piece::Piece;
use crate::wire::provider_error::{event_error, provider_error};
use crate::wire::{Finish, Usage, WireError, WireErrorKind};

/// What one response has told so far about which call is which.
#[derive(Default)]
pub(super) struct Chat {
    selector: Selector,
    /// R9: the one call of the old `function_call` deltas.
    legacy: Option<usize>,
}

#[derive(Default, Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow, default)]
    choices: List<Choice<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Text<'a>,
}

#[derive(Default, Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Integer,
    #[serde(borrow, default)]
    delta: Object<Delta<'a>>,
    /// Read further in whole bodies only: small structs make small frames cheap.
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow, default)]
    tool_calls: List<ToolDelta<'a>>,
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ToolDelta<'a> {
    #[serde(default)]
    index: Integer,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    function: Object<Function<'a>>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: Integer,
    #[serde(default)]
    completion_tokens: Integer,
}

impl Dialect for Chat {
    fn name(&self) -> &'static str {
        super::NAME
    }

    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>) {
        // R5: the mark alone ends a turn well; after it nothing is read.
        if data.trim() == "[DONE]" {
            turn.end_well();
            turn.close();
            return;
        }
        if event == b"error" {
            turn.fail(event_error(data, false));
            return;
        }
        let Ok(Object(Some(chunk))) = serde_json::from_str::<Object<Chunk<'_>>>(data) else {
            turn.fail_with(WireErrorKind::MalformedFrame);
            return;
        };
        if let Some(choice) = Self::head(chunk, turn) {
            if let Some(delta) = choice.delta.0 {
                self.delta(delta, turn);
            }
            finish(choice.finish_reason.get(), turn);
        }
    }

    fn body(&mut self, body: &str, turn: &mut Writer<'_>) {
        let chunk = match serde_json::from_str::<Object<Chunk<'_>>>(body) {
            Ok(Object(Some(chunk))) => chunk,
            Err(error) if error.is_eof() => return turn.fail_with(WireErrorKind::TruncatedStream),
            Ok(_) | Err(_) => return turn.fail_with(WireErrorKind::MalformedFrame),
        };
        if chunk.object.get() == "error" {
            return turn.fail(event_error(body, false));
        }
        let Some(choice) = Self::head(chunk, turn) else {
            return turn.fail_with(WireErrorKind::ProtocolViolation);
        };
        if let Some(message) = choice.message.and_then(read) {
            Self::message(message, turn);
        }
        finish(choice.finish_reason.get(), turn);
    }
}

impl Chat {
    /// Everything of a chunk but its choice, which is returned; R6: choices other than index 0 are skipped.
    fn head<'a>(chunk: Chunk<'a>, turn: &mut Writer<'_>) -> Option<Choice<'a>> {
        turn.response(chunk.id.get(), chunk.model.get());
        if let Some(Tokens { prompt_tokens, completion_tokens }) = chunk.usage.and_then(read)
            && (prompt_tokens.0.is_some() || completion_tokens.0.is_some())
        {
            turn.usage(Usage {
                input_tokens: prompt_tokens.count().unwrap_or(0),
                output_tokens: completion_tokens.count().unwrap_or(0),
            });
        }
        let choice = chunk.choices.into_iter().find(|choice| choice.index.0.is_none_or(|index| index == 0));
        // R10: an error object beside or inside a choice counts like one that stands alone.
        let error = [chunk.error, choice.as_ref().and_then(|choice| choice.error)];
        if let Some(error) = error.into_iter().flatten().find_map(|raw| provider_error(raw.get(), false)) {
            if let Some(word) = choice.as_ref().map(|choice| choice.finish_reason.get()).filter(|word| !word.is_empty())
            {
                turn.provider_finish(word);
            }
            turn.fail(error);
            return None;
        }
        choice
    }

    fn delta(&mut self, delta: Delta<'_>, turn: &mut Writer<'_>) {
        turn.text(delta.content.get());
        turn.refusal(delta.refusal.get());
        // Servers that fill both fields mean the same call, and it must not run twice.
        let legacy = delta.function_call.filter(|_| delta.tool_calls.is_empty()).and_then(read);
        for part in delta.tool_calls.into_iter() {
            let function = part.function.0.unwrap_or_default();
            let name = function.name.get();
            let arguments = Piece::read(function.arguments);
            let empty = arguments.is_empty();
            let Some(call) = self.selector.select(part.index.0, part.id.get(), name, empty, turn) else { continue };
            turn.reopen();
            arguments.add(call, turn);
        }
        if let Some(function) = legacy {
            self.legacy(&function, turn);
        }
    }

    fn legacy(&mut self, function: &Function<'_>, turn: &mut Writer<'_>) {
        let name = function.name.get();
        let call = match self.legacy {
            Some(call) => {
                if name != turn.name(call) && (turn.name(call).is_empty() || !turn.has_arguments(call)) {
                    turn.append_name(call, name);
                }
                call
            }
            None => match turn.start("", name) {
                Some(call) => call,
                None => return,
            },
        };
        self.legacy = Some(call);
        turn.reopen();
        turn.settle_id(call);
        Piece::read(function.arguments).add(call, turn);
    }

    /// A message that came whole: each entry is one call.
    fn message(message: Delta<'_>, turn: &mut Writer<'_>) {
        turn.text(message.content.get());
        turn.refusal(message.refusal.get());
        let legacy = message.function_call.filter(|_| message.tool_calls.is_empty()).and_then(read);
        let listed = message.tool_calls.into_iter().map(|part| (part.id, part.function.0.unwrap_or_default()));
        for (id, function) in listed.chain(legacy.map(|function| (Text::default(), function))) {
            let Some(call) = turn.start(id.get(), function.name.get()) else { return };
            Piece::read(function.arguments).add(call, turn);
        }
    }
}

/// An object that was left unread; nothing for other JSON.
fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str::<Object<T>>(raw.get()).ok()?.0
}

/// R5, R10: what the provider's word means. An unknown one is not believed.
fn finish(word: &str, turn: &mut Writer<'_>) {
    if word.is_empty() {
        return;
    }
    turn.provider_finish(word);
    match word.to_ascii_lowercase().as_str() {
        "tool_calls" | "stop" | "function_call" | "tool_call" | "tool_use" | "end_turn" | "stop_sequence" | "eos"
        | "eos_token" => turn.end_well(),
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => turn.end_cut(Finish::Length),
        "content_filter" | "safety" => turn.end_cut(Finish::ContentFilter),
        "refusal" => turn.end_cut(Finish::Refusal),
        "error" => turn.fail(WireError::provider("", None)),
        _ => turn.fail_with(WireErrorKind::ProtocolViolation),
    }
}
