//! Frames and whole bodies of Chat Completions, read as borrowed types.

use crate::wire::decode::arguments::Piece;
use crate::wire::decode::fields::{Content, Integer, List, Object, Raw, Text, read, shape};
use crate::wire::decode::provider_error::{CodeIn, event_error, provider_error};
use crate::wire::decode::turn::Writer;
use crate::wire::decode::{Dialect, unreadable};
use crate::wire::formats::openai_chat::select::Selector;
use crate::wire::{Finish, Format, Usage, WireError, WireErrorKind};

/// The state for attributing deltas to calls.
#[derive(Default)]
pub(crate) struct Chat {
    selector: Selector,
    /// The one call of the legacy `function_call` deltas (R9).
    legacy: Option<usize>,
}

shape! {
    struct Chunk<'a> {
        "id" => id: Text<'a>,
        "model" => model: Text<'a>,
        "choices" => choices: List<Choice<'a>>,
        "usage" => usage: Raw<'a>,
        "error" => error: Raw<'a>,
        "object" => object: Text<'a>,
    }
}

shape! {
    struct Choice<'a> {
        "index" => index: Integer,
        "delta" => delta: Object<Delta<'a>>,
        /// Read in whole bodies only: small structs make small frames cheap.
        "message" => message: Raw<'a>,
        "finish_reason" => finish_reason: Text<'a>,
        "error" => error: Raw<'a>,
    }
}

shape! {
    struct Delta<'a> {
        "content" => content: Content<'a>,
        "refusal" => refusal: Text<'a>,
        "tool_calls" => tool_calls: List<ToolDelta<'a>>,
        "function_call" => function_call: Raw<'a>,
    }
}

shape! {
    struct ToolDelta<'a> {
        "index" => index: Integer,
        "id" => id: Text<'a>,
        "function" => function: Object<Function<'a>>,
    }
}

shape! {
    struct Function<'a> {
        "name" => name: Text<'a>,
        "arguments" => arguments: Piece<'a>,
    }
}

shape! {
    struct Tokens {
        "prompt_tokens" => prompt_tokens: Integer,
        "completion_tokens" => completion_tokens: Integer,
        "prompt_tokens_details" => read: Object<Read>,
        "completion_tokens_details" => written: Object<Written>,
        /// DeepSeek's word for `cached_tokens`.
        "prompt_cache_hit_tokens" => hit: Integer,
        /// What gateways to Anthropic add.
        "cache_read_input_tokens" => cache_read: Integer,
        "cache_creation_input_tokens" => cache_write: Integer,
    }
}

shape! {
    struct Read {
        "cached_tokens" => cached: Integer,
        "cache_write_tokens" => cache_write: Integer,
    }
}

shape! {
    struct Written {
        "reasoning_tokens" => reasoning: Integer,
    }
}

impl Tokens {
    /// `None` if the provider counted none.
    fn usage(&self) -> Option<Usage> {
        let (input, output) = (self.prompt_tokens, self.completion_tokens);
        if input.0.is_none() && output.0.is_none() {
            return None;
        }
        let mut usage = Usage::new(input.count().unwrap_or(0), output.count().unwrap_or(0));
        let read = self.read.0.as_ref();
        let cached = [read.map(|read| read.cached), Some(self.hit), Some(self.cache_read)];
        let written = [read.map(|read| read.cache_write), Some(self.cache_write)];
        usage.cache_read_tokens = most(&cached);
        usage.cache_write_tokens = most(&written);
        usage.reasoning_tokens = self.written.0.as_ref().and_then(|written| written.reasoning.count()).unwrap_or(0);
        Some(usage)
    }
}

/// Gateways write one count under several names, and zero where they have none.
fn most(counts: &[Option<Integer>]) -> u64 {
    counts.iter().flatten().filter_map(|count| count.count()).max().unwrap_or(0)
}

impl Dialect for Chat {
    fn format(&self) -> Format {
        Format::OpenAiChat
    }

    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>) {
        // The mark alone ends a turn well; bytes after it are ignored (R5).
        if data.trim() == "[DONE]" {
            turn.end_well();
            turn.close();
            return;
        }
        if event == b"error" {
            turn.fail(event_error(data, CodeIn::Code));
            return;
        }
        let Ok(chunk) = read::<Chunk<'_>>(data) else {
            turn.fail_with(WireErrorKind::MalformedFrame);
            return;
        };
        if let Some(choice) = Self::head(&chunk, turn) {
            if let Some(delta) = &choice.delta.0 {
                self.delta(delta, turn);
            }
            finish(choice.finish_reason.get(), turn);
        }
    }

    fn body(&mut self, body: &str, turn: &mut Writer<'_>) {
        let Ok(chunk) = read::<Chunk<'_>>(body) else { return turn.fail_with(unreadable(body)) };
        if chunk.object.get() == "error" {
            return turn.fail(event_error(body, CodeIn::Code));
        }
        let Some(choice) = Self::head(&chunk, turn) else {
            return turn.fail_with(WireErrorKind::ProtocolViolation);
        };
        if let Some(message) = choice.message.object() {
            Self::message(&message, turn);
        }
        // Snowflake Cortex sends `"finish_reason": ""` in a document that is whole.
        if choice.finish_reason.came() && choice.finish_reason.get().is_empty() {
            turn.provider_finish("");
            return turn.end_well();
        }
        finish(choice.finish_reason.get(), turn);
    }
}

impl Chat {
    /// Reads a chunk except its choice, which is returned. Choices other than index 0 are skipped (R6).
    fn head<'c, 'a>(chunk: &'c Chunk<'a>, turn: &mut Writer<'_>) -> Option<&'c Choice<'a>> {
        turn.response(chunk.id.get(), chunk.model.get());
        if let Some(usage) = chunk.usage.object().and_then(|tokens: Tokens| tokens.usage()) {
            turn.usage(usage);
        }
        let choice = chunk.choices.iter().find(|choice| choice.index.0.is_none_or(|index| index == 0));
        // An error object next to or inside a choice counts like one of its own (R10).
        let error = [chunk.error.0, choice.and_then(|choice| choice.error.0)];
        if let Some(error) = error.into_iter().flatten().find_map(|raw| provider_error(raw, CodeIn::Code)) {
            if let Some(word) = choice.map(|choice| choice.finish_reason.get()).filter(|word| !word.is_empty()) {
                turn.provider_finish(word);
            }
            turn.fail(error);
            return None;
        }
        choice
    }

    fn delta(&mut self, delta: &Delta<'_>, turn: &mut Writer<'_>) {
        turn.text(delta.content.get());
        turn.refusal(delta.refusal.get());
        // Servers that fill both fields mean the same call, and it must not run twice.
        if delta.tool_calls.is_empty()
            && let Some(function) = delta.function_call.object::<Function<'_>>()
            && (self.legacy.is_some() || !function.is_empty())
        {
            self.legacy(&function, turn);
        }
        for part in delta.tool_calls.iter() {
            let (name, arguments) = part.function.0.as_ref().map_or(("", &Piece::Nothing), Function::parts);
            let (id, empty) = (part.id.get(), arguments.is_empty());
            let Some(call) = self.selector.select(part.index.0, id, name, empty, turn) else { continue };
            turn.reopen();
            arguments.add(call, turn);
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
        function.arguments.add(call, turn);
    }

    /// Reads a message that came whole: each entry is one call.
    fn message(message: &Delta<'_>, turn: &mut Writer<'_>) {
        turn.text(message.content.get());
        turn.refusal(message.refusal.get());
        let legacy = message.function_call.object::<Function<'_>>();
        let legacy = legacy.filter(|function| message.tool_calls.is_empty() && !function.is_empty());
        let listed = message.tool_calls.iter().map(|part| (part.id.get(), part.function.0.as_ref()));
        for (id, function) in listed.chain(legacy.iter().map(|function| ("", Some(function)))) {
            let (name, arguments) = function.map_or(("", &Piece::Nothing), Function::parts);
            let Some(call) = turn.start(id, name) else { return };
            arguments.add(call, turn);
        }
    }
}

impl<'a> Function<'a> {
    fn parts(&self) -> (&str, &Piece<'a>) {
        (self.name.get(), &self.arguments)
    }

    /// Some servers fill the legacy field of every message: `"function_call": {"name": "", "arguments": ""}` (R2).
    fn is_empty(&self) -> bool {
        self.name.get().is_empty() && self.arguments.is_empty()
    }
}

/// The meaning of the provider's word (R5, R10). An unknown one fails the turn.
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
