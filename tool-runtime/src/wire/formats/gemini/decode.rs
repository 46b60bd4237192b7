//! Responses of Gemini, whole and streamed, read as borrowed types.

use crate::wire::decode::arguments::Piece;
use crate::wire::decode::fields::{Integer, List, Object, Raw, Text, read, shape};
use crate::wire::decode::provider_error::{CodeIn, event_error, provider_error};
use crate::wire::decode::turn::Writer;
use crate::wire::decode::{Dialect, Framing, unreadable};
use crate::wire::formats::gemini::partial::{self, PartialArguments};
use crate::wire::{ErrorCode, Finish, Format, Usage, WireError, WireErrorKind};

/// The provider's words for a turn that a filter cut.
const FILTERED: &[&str] = &[
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "ESCALATION",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// The provider's words for a turn that failed.
const FAILED: &[&str] = &[
    "LANGUAGE",
    "OTHER",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
    "PUP_LIMITED_DISABLED",
    "IMAGE_OTHER",
    "NO_IMAGE",
];

/// The state of one response.
#[derive(Default)]
pub(crate) struct Gemini {
    /// The call whose arguments still come.
    open: Option<Open>,
}

struct Open {
    call: usize,
    arguments: PartialArguments,
}

shape! {
    struct Response<'a> {
        "candidates" => candidates: List<Candidate<'a>>,
        "promptFeedback" => prompt_feedback: Object<PromptFeedback<'a>>,
        "usageMetadata" => usage: Object<Tokens>,
        "modelVersion" => model: Text<'a>,
        "responseId" => id: Text<'a>,
        "error" => error: Raw<'a>,
    }
}

shape! {
    struct PromptFeedback<'a> {
        "blockReason" => block_reason: Text<'a>,
    }
}

shape! {
    struct Candidate<'a> {
        "index" => index: Integer,
        "content" => content: Object<Content<'a>>,
        "finishReason" => finish_reason: Text<'a>,
    }
}

shape! {
    struct Content<'a> {
        "parts" => parts: List<Part<'a>>,
    }
}

shape! {
    struct Part<'a> {
        "text" => text: Text<'a>,
        "thought" => thought: Raw<'a>,
        "functionCall" => call: Object<FunctionCall<'a>>,
    }
}

shape! {
    struct FunctionCall<'a> {
        "id" => id: Text<'a>,
        "name" => name: Text<'a>,
        "args" => args: Piece<'a>,
        "partialArgs" => partial_args: List<partial::Value<'a>>,
        "willContinue" => will_continue: Raw<'a>,
    }
}

shape! {
    struct Tokens {
        "promptTokenCount" => prompt: Integer,
        "candidatesTokenCount" => candidates: Integer,
        "thoughtsTokenCount" => thoughts: Integer,
        "toolUsePromptTokenCount" => tool_use_prompt: Integer,
        "cachedContentTokenCount" => cached: Integer,
    }
}

impl Tokens {
    /// What was read and written; `None` without a count. The prompt includes what came from the cache, and the
    /// candidates do not include the thoughts. Results of the provider's own tools are read in a pass of their own.
    fn usage(&self) -> Option<Usage> {
        let counts = [self.prompt, self.candidates, self.thoughts, self.tool_use_prompt];
        let [prompt, candidates, thoughts, tool_use_prompt] = counts.map(|count| count.count().unwrap_or(0));
        if counts.iter().all(|count| count.count().is_none()) {
            return None;
        }
        Some(Usage {
            cache_read_tokens: self.cached.count().unwrap_or(0),
            reasoning_tokens: thoughts,
            earlier_input_tokens: tool_use_prompt,
            ..Usage::new(prompt, candidates.saturating_add(thoughts))
        })
    }
}

impl Dialect for Gemini {
    fn format(&self) -> Format {
        Format::Gemini
    }

    fn framing(&self) -> Framing {
        Framing::EventsOrArray
    }

    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>) {
        // Gateways end every stream with it; here it says nothing (G4).
        if data.trim() == "[DONE]" {
            return turn.close();
        }
        if event == b"error" {
            return turn.fail(event_error(data, CodeIn::Code));
        }
        match read::<Response<'_>>(data) {
            Ok(response) => self.response(&response, turn),
            Err(_) => turn.fail_with(WireErrorKind::MalformedFrame),
        }
    }

    fn body(&mut self, body: &str, turn: &mut Writer<'_>) {
        let Ok(response) = read::<Response<'_>>(body) else { return turn.fail_with(unreadable(body)) };
        self.response(&response, turn);
        if response.candidates.is_empty() && response.block_reason().is_empty() {
            turn.fail_with(WireErrorKind::ProtocolViolation);
        }
    }
}

impl Response<'_> {
    fn block_reason(&self) -> &str {
        self.prompt_feedback.0.as_ref().map_or("", |feedback| feedback.block_reason.get())
    }
}

impl Gemini {
    fn response(&mut self, response: &Response<'_>, turn: &mut Writer<'_>) {
        turn.response(response.id.get(), response.model.get());
        if let Some(usage) = response.usage.0.as_ref().and_then(Tokens::usage) {
            turn.usage(usage);
        }
        if let Some(error) = response.error.0.and_then(|raw| provider_error(raw, CodeIn::Code)) {
            return turn.fail(error);
        }
        // A blocked prompt has no candidates (G4).
        if !response.block_reason().is_empty() {
            turn.end_cut(Finish::ContentFilter);
        }
        // Candidates other than index 0 are skipped (R6).
        let is_first = |candidate: &&Candidate<'_>| candidate.index.0.is_none_or(|index| index == 0);
        let Some(candidate) = response.candidates.iter().find(is_first) else { return };
        for part in candidate.content.0.iter().flat_map(|content| content.parts.iter()) {
            if self.part(part, turn).is_none() {
                return;
            }
        }
        self.finish(candidate.finish_reason.get(), turn);
    }

    /// Reads a part (G2); `None` if the turn failed.
    fn part(&mut self, part: &Part<'_>, turn: &mut Writer<'_>) -> Option<()> {
        if let Some(call) = &part.call.0 {
            return self.call(call, turn);
        }
        if part.thought.0 != Some("true") {
            turn.text(part.text.get());
        }
        Some(())
    }

    fn call(&mut self, call: &FunctionCall<'_>, turn: &mut Writer<'_>) -> Option<()> {
        let (id, name) = (call.id.get(), call.name.get());
        let continues = call.will_continue.0 == Some("true");
        let broken = |turn: &mut Writer<'_>| {
            turn.fail_with(WireErrorKind::ProtocolViolation);
            None
        };
        if let Some(open) = &self.open {
            // A call begins before the one that continues has its end.
            if !name.is_empty() && (name != turn.name(open.call) || call.partial_args.is_empty()) {
                return broken(turn);
            }
            turn.offer_id(open.call, id);
        } else {
            let at = self.start(id, name, turn)?;
            if !continues && call.partial_args.is_empty() {
                call.args.add(at, turn);
                return Some(());
            }
            self.open = Some(Open { call: at, arguments: PartialArguments::default() });
        }
        let Some(open) = &mut self.open else { return Some(()) };
        // Whole arguments beside pieces: which of them count, nobody says.
        if !matches!(call.args, Piece::Nothing | Piece::Object("{}")) {
            return broken(turn);
        }
        if call.partial_args.iter().try_for_each(|value| open.arguments.add(value)).is_err() {
            return broken(turn);
        }
        if !continues {
            if !open.arguments.is_whole() {
                return broken(turn);
            }
            turn.object(open.call, &open.arguments.to_json());
            self.open = None;
        }
        Some(())
    }

    /// A call that came before under its id, or a new one (R1, O1).
    fn start(&self, id: &str, name: &str, turn: &mut Writer<'_>) -> Option<usize> {
        let known = if id.is_empty() { None } else { turn.call_by_id(id) };
        let call = match known.filter(|call| turn.name(*call) == name) {
            Some(call) => call,
            None => turn.start(id, name)?,
        };
        turn.reopen();
        turn.settle_id(call);
        Some(call)
    }

    /// The meaning of the provider's word (R5, R10, G4). An unknown one fails the turn.
    fn finish(&mut self, word: &str, turn: &mut Writer<'_>) {
        if matches!(word, "" | "FINISH_REASON_UNSPECIFIED") {
            return;
        }
        turn.provider_finish(word);
        let word = word.to_ascii_uppercase();
        match word.as_str() {
            // A call that still continues never ends (G3).
            "STOP" if self.open.is_some() => turn.fail_with(WireErrorKind::ProtocolViolation),
            "STOP" => turn.end_well(),
            "MAX_TOKENS" | "CONTINUATION" => turn.end_cut(Finish::Length),
            filtered if FILTERED.contains(&filtered) => turn.end_cut(Finish::ContentFilter),
            // `finishMessage` stays out of the error: it can hold the arguments of the call.
            failed if FAILED.contains(&failed) => turn.fail(WireError::provider("", Some(ErrorCode::Text(word)))),
            _ => turn.fail_with(WireErrorKind::ProtocolViolation),
        }
    }
}
