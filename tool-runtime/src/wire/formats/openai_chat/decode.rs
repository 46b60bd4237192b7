//! Decodes the frames and whole bodies of Chat Completions through borrowed types.

use crate::wire::decode::fields::read;
use crate::wire::decode::provider_error::{CodeIn, event_error, provider_error};
use crate::wire::decode::turn::Writer;
use crate::wire::decode::{Dialect, fill_frame, is_done, unreadable};
use crate::wire::formats::openai_chat::chunk::{Choice, Chunk, Delta, Function, ToolDelta};
use crate::wire::formats::openai_chat::message_members::MessageMembers;
use crate::wire::formats::openai_chat::select::Selector;
use crate::wire::formats::openai_chat::sources;
use crate::wire::formats::openai_chat::usage::Tokens;
use crate::wire::{FinishReason, Format, WireError, WireErrorKind};

/// The decoding state of one response.
#[derive(Default)]
pub(crate) struct Chat {
    selector: Selector,
    /// The call of the legacy `function_call` deltas (rule R9 of `wire`).
    legacy: Option<usize>,
    members: MessageMembers,
    /// The lists of sources and of their URLs that some servers send outside the message. Every chunk repeats them.
    sources: String,
    addresses: String,
}

impl Dialect for Chat {
    fn format(&self) -> Format {
        Format::OpenAiChat
    }

    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>) {
        // The end mark alone ends a turn well; bytes after it are ignored (R5).
        if is_done(data) {
            turn.end_well();
        }
        let mut chunk = Chunk::default();
        if !fill_frame(&mut chunk, (event, data), CodeIn::Code, turn) {
            return;
        }
        self.beside(&chunk);
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
        self.beside(&chunk);
        let Some(choice) = Self::head(&chunk, turn) else {
            return turn.fail_with(WireErrorKind::ProtocolViolation);
        };
        if let Some(message) = choice.message.object() {
            self.message(&message, turn);
        }
        // Snowflake Cortex sends `"finish_reason": ""` in a complete document, so an empty reason ends the turn well.
        if choice.finish_reason.came() && choice.finish_reason.get().is_empty() {
            turn.provider_finish("");
            return turn.end_well();
        }
        finish(choice.finish_reason.get(), turn);
    }

    fn end(&mut self, turn: &mut Writer<'_>) {
        sources::beside(&self.sources, &self.addresses, turn);
        self.selector.end(turn);
        self.members.end(turn);
    }
}

impl Chat {
    /// Reads the lists of sources outside the message.
    fn beside(&mut self, chunk: &Chunk<'_>) {
        for (list, kept) in [(chunk.sources, &mut self.sources), (chunk.addresses, &mut self.addresses)] {
            if let Some(list) = list.0 {
                list.clone_into(kept);
            }
        }
    }

    /// Reads a chunk except its choice, and returns the choice. Choices other than index 0 are skipped (R6).
    fn head<'c, 'a>(chunk: &'c Chunk<'a>, turn: &mut Writer<'_>) -> Option<&'c Choice<'a>> {
        turn.response(chunk.id.get(), chunk.model.get());
        if let Some(usage) = chunk.usage.object().and_then(|tokens: Tokens| tokens.usage()) {
            turn.usage(usage);
        }
        let choice = chunk.choices.iter().find(|choice| choice.index.0.is_none_or(|index| index == 0));
        // An error object outside or inside a choice fails the turn, as an error event does (R10).
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

    /// Reads a delta or a message, except its calls.
    fn text(&mut self, delta: &Delta<'_>, turn: &mut Writer<'_>) {
        self.members.before(delta, turn);
        turn.text(delta.content.text.get());
        if let Some(list) = delta.content.list {
            self.members.list(list, turn);
        }
        turn.refusal(delta.refusal.get());
        self.members.after(delta, turn);
    }

    fn delta(&mut self, delta: &Delta<'_>, turn: &mut Writer<'_>) {
        self.text(delta, turn);
        // Some servers send the same call in `tool_calls` and in `function_call`. It must not run twice.
        if delta.tool_calls.is_empty()
            && let Some(function) = delta.function_call.object::<Function<'_>>()
            && (self.legacy.is_some() || !function.is_empty())
        {
            self.legacy(&function, turn);
        }
        for part in delta.tool_calls.iter() {
            let custom = part.custom();
            let (name, arguments) = part.named(custom.as_ref());
            let input = custom.as_ref().map_or("", |custom| custom.input.get());
            let (id, empty) = (part.id.get(), arguments.is_empty() && input.is_empty());
            let Some(call) = self.selector.select(part.index.0, id, name, arguments, empty, turn) else { continue };
            turn.reopen();
            arguments.add(call, turn);
            turn.append_text(call, input);
            self.kept(call, part, custom.is_some());
        }
    }

    /// Keeps the members of a call other than its name and its arguments.
    fn kept(&mut self, call: usize, part: &ToolDelta<'_>, is_custom: bool) {
        if is_custom {
            self.members.custom(call);
        }
        if part.rare.is_empty() {
            return;
        }
        if let Some(extra) = part.rare.get("extra_content") {
            self.members.call(call, "extra_content", extra);
        }
        if let Some(fields) = part.rare.get("provider_specific_fields").filter(|fields| fields.contains("signature")) {
            self.members.call(call, "provider_specific_fields", fields);
        }
        part.rare.others().for_each(|(name, value)| self.members.call(call, name, value));
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
        self.members.call(call, "legacy", "true");
        turn.reopen();
        turn.settle_id(call);
        function.arguments.add(call, turn);
    }

    /// Reads a whole message: each entry of its list is one call.
    fn message(&mut self, message: &Delta<'_>, turn: &mut Writer<'_>) {
        self.text(message, turn);
        for part in message.tool_calls.iter() {
            let custom = part.custom();
            let (name, arguments) = part.named(custom.as_ref());
            let Some(call) = turn.start(part.id.get(), name) else { return };
            arguments.add(call, turn);
            turn.append_text(call, custom.as_ref().map_or("", |custom| custom.input.get()));
            self.kept(call, part, custom.is_some());
        }
        let legacy = message.function_call.object::<Function<'_>>();
        if let Some(function) = legacy.filter(|function| message.tool_calls.is_empty() && !function.is_empty()) {
            let (name, arguments) = function.parts();
            let Some(call) = turn.start("", name) else { return };
            arguments.add(call, turn);
            self.members.call(call, "legacy", "true");
        }
    }
}

/// Applies the provider's finish reason (R5, R10). An unknown one fails the turn.
fn finish(word: &str, turn: &mut Writer<'_>) {
    if word.is_empty() {
        return;
    }
    turn.provider_finish(word);
    match word.to_ascii_lowercase().as_str() {
        "tool_calls" | "stop" | "function_call" | "tool_call" | "tool_use" | "end_turn" | "stop_sequence" | "eos"
        | "eos_token" => turn.end_well(),
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => turn.end_cut(FinishReason::Length),
        "content_filter" | "safety" => turn.end_cut(FinishReason::ContentFilter),
        "refusal" => turn.end_cut(FinishReason::Refusal),
        "error" => turn.fail(WireError::provider("", None)),
        _ => turn.fail_with(WireErrorKind::ProtocolViolation),
    }
}
