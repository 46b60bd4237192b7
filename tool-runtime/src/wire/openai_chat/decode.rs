//! The decoder: streams and whole bodies of Chat Completions to calls.

use serde_json::Value;

use crate::wire::assemble::{Assembler, DecodeError, Decoded, Delta, DisplayEvent, Finish, Usage};
use crate::wire::openai_chat::FORMAT;
use crate::wire::openai_chat::frame::{CallFrame, Choice, Frame, FunctionFrame, Message, Piece};
use crate::wire::sse::Events;

/// R9: the old `function_call` is one call, kept apart from all that have an index.
const FUNCTION_CALL: i64 = i64::MIN;

/// What a decoder is told beforehand.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// The largest response, in bytes; 32 MiB by default.
    pub max_bytes: usize,
    /// The tool that the request forced: calls of others are flagged.
    pub forced: Option<String>,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { max_bytes: 32 * 1024 * 1024, forced: None }
    }
}

/// Decodes one response. Bytes may be cut anywhere.
///
/// ```
/// use tool_runtime::wire::openai_chat::{DecodeOptions, Decoder};
///
/// let mut decoder = Decoder::new(DecodeOptions::default());
/// decoder.push(br#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"core__ping","arguments":"{}"}}]}}]}"#);
/// decoder.push(b"\n\ndata: [DONE]\n\n");
/// let decoded = decoder.finish();
/// assert!(decoded.calls[0].executable);
/// ```
pub struct Decoder {
    options: DecodeOptions,
    source: Source,
    bytes: usize,
    state: State,
}

/// Where frames come from; known from the first byte that is not white space.
enum Source {
    Unknown(Vec<u8>),
    Stream(Events),
    Body(Vec<u8>),
}

#[derive(Default)]
struct State {
    assembler: Assembler,
    text: String,
    refusal: String,
    usage: Option<Usage>,
    response_id: Option<String>,
    provider_finish: Option<String>,
    error: Option<DecodeError>,
    done: bool,
    frame: usize,
}

impl Decoder {
    /// A decoder for one response.
    #[must_use]
    pub fn new(options: DecodeOptions) -> Self {
        Self { options, source: Source::Unknown(Vec::new()), bytes: 0, state: State::default() }
    }

    /// Takes bytes; what it gives is for display only.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<DisplayEvent> {
        let mut shown = Vec::new();
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.options.max_bytes {
            self.state.fail(DecodeError::MalformedFrame);
            return shown;
        }
        match &mut self.source {
            Source::Unknown(waiting) => {
                waiting.extend_from_slice(bytes);
                let waiting = std::mem::take(waiting);
                self.recognise(waiting, &mut shown);
            }
            Source::Stream(events) => events.push(bytes, |data| self.state.event(data, &mut shown)),
            Source::Body(body) => body.extend_from_slice(bytes),
        }
        shown
    }

    /// A body begins with a brace, a stream with a field. HTML and the like are taken for a body that is not JSON.
    fn recognise(&mut self, waiting: Vec<u8>, shown: &mut Vec<DisplayEvent>) {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let start = waiting.strip_prefix(MARK).unwrap_or(&waiting);
        let undecided = MARK.starts_with(&waiting);
        match start.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => self.source = Source::Unknown(waiting),
            Some(_) if undecided => self.source = Source::Unknown(waiting),
            Some(b'{' | b'[' | b'<') => self.source = Source::Body(start.to_vec()),
            Some(_) => {
                let mut events = Events::default();
                events.push(&waiting, |data| self.state.event(data, shown));
                self.source = Source::Stream(events);
            }
        }
    }

    /// Ends the response: the only place where calls come from.
    #[must_use]
    pub fn finish(self) -> Decoded {
        let Self { options, source, mut state, .. } = self;
        let mut unshown = Vec::new();
        match source {
            Source::Unknown(_) => {}
            Source::Stream(events) => {
                // Without its empty line an event counts only when it is whole.
                if let Some(data) = events.finish()
                    && (data == b"[DONE]" || serde_json::from_slice::<Frame<'_>>(&data).is_ok())
                {
                    state.event(&data, &mut unshown);
                }
            }
            Source::Body(body) => state.body(&body),
        }
        state.finish(options.forced.as_deref())
    }
}

impl State {
    fn fail(&mut self, error: DecodeError) {
        self.error.get_or_insert(error);
    }

    fn event(&mut self, data: &[u8], shown: &mut Vec<DisplayEvent>) {
        // R5: after the end marker bytes are ignored; after a failure nothing can become good again.
        if self.done || self.error.is_some() {
            return;
        }
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return;
        }
        if data.trim_ascii().is_empty() {
            return;
        }
        // R10: a frame that is not JSON or not UTF-8 fails the turn.
        let Ok(frame) = serde_json::from_slice::<Frame<'_>>(data) else {
            self.fail(DecodeError::MalformedFrame);
            return;
        };
        self.head(&frame);
        for choice in frame.choices.iter().flatten().filter(|choice| is_first(choice)) {
            if let Some(delta) = &choice.delta {
                self.delta(delta, shown);
            } else if let Some(message) = &choice.message {
                self.message(message);
            }
            self.ended(choice);
        }
        self.frame += 1;
    }

    fn body(&mut self, body: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let Ok(frame) = serde_json::from_slice::<Frame<'_>>(body) else {
            let cut = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err_and(|error| error.is_eof());
            self.fail(if cut { DecodeError::TruncatedStream } else { DecodeError::MalformedFrame });
            return;
        };
        self.head(&frame);
        for choice in frame.choices.iter().flatten().filter(|choice| is_first(choice)) {
            if let Some(message) = choice.message.as_ref().or(choice.delta.as_ref()) {
                self.message(message);
            }
            self.ended(choice);
        }
    }

    fn head(&mut self, frame: &Frame<'_>) {
        if self.response_id.is_none() {
            self.response_id = frame.id.as_ref().map(|id| id.0.to_string()).filter(|id| !id.is_empty());
        }
        if let Some(usage) = &frame.usage {
            self.usage = Some(Usage {
                input_tokens: usage.prompt_tokens.unwrap_or(0),
                output_tokens: usage.completion_tokens.unwrap_or(0),
            });
        }
        if let Some(error) = frame.error.filter(|error| error.get() != "null") {
            self.fail(provider_error(error.get()));
        }
    }

    fn ended(&mut self, choice: &Choice<'_>) {
        if let Some(reason) = choice.finish_reason.as_ref().filter(|reason| !reason.0.is_empty()) {
            self.provider_finish = Some(reason.0.to_string());
        }
    }

    fn delta(&mut self, delta: &Message<'_>, shown: &mut Vec<DisplayEvent>) {
        self.words(delta, Some(shown));
        for call in delta.tool_calls.iter().flatten() {
            self.piece(call, shown);
        }
        if let Some(function) = &delta.function_call {
            self.function(Some(FUNCTION_CALL), None, Some(function), shown);
        }
    }

    fn words(&mut self, message: &Message<'_>, shown: Option<&mut Vec<DisplayEvent>>) {
        let text = message.text();
        if !text.is_empty() {
            self.text.push_str(&text);
            if let Some(shown) = shown {
                shown.push(DisplayEvent::Text(text.into_owned()));
            }
        }
        if let Some(refusal) = &message.refusal {
            self.refusal.push_str(&refusal.0);
        }
    }

    fn piece(&mut self, call: &CallFrame<'_>, shown: &mut Vec<DisplayEvent>) {
        let id = call.id.as_ref().map(|id| &*id.0);
        self.function(call.index, id, call.function.as_ref(), shown);
    }

    fn function(
        &mut self,
        index: Option<i64>,
        id: Option<&str>,
        function: Option<&FunctionFrame<'_>>,
        shown: &mut Vec<DisplayEvent>,
    ) {
        let name = function.and_then(|function| function.name.as_ref()).map(|name| &*name.0);
        let Some(piece) = function.map_or(Some(Piece::Nothing), FunctionFrame::piece) else {
            return self.fail(DecodeError::MalformedFrame);
        };
        let (at, named) = self.assembler.touch(Delta { index, id, name }, self.frame);
        if named {
            shown.push(DisplayEvent::CallStarted { call: at, name: name.unwrap_or_default().to_owned() });
        }
        match piece {
            Piece::Text(text) if !text.is_empty() => {
                self.assembler.text(at, &text);
                shown.push(DisplayEvent::ArgumentDelta { call: at, text: text.into_owned() });
            }
            Piece::Object(object) => self.assembler.object(at, object),
            Piece::Text(_) | Piece::Nothing => {}
        }
    }

    /// A whole message: each listed call is complete.
    fn message(&mut self, message: &Message<'_>) {
        self.words(message, None);
        let listed = message.tool_calls.iter().flatten().map(|call| (call.id.as_ref(), call.function.as_ref()));
        let old = message.function_call.iter().map(|function| (None, Some(function)));
        for (id, function) in listed.chain(old) {
            let name = function.and_then(|function| function.name.as_ref()).map(|name| &*name.0);
            let at = self.assembler.whole(id.map(|id| &*id.0), name, self.frame);
            match function.map_or(Some(Piece::Nothing), FunctionFrame::piece) {
                Some(Piece::Text(text)) => self.assembler.text(at, &text),
                Some(Piece::Object(object)) => self.assembler.object(at, object),
                Some(Piece::Nothing) => {}
                None => self.fail(DecodeError::MalformedFrame),
            }
        }
    }

    /// R5: calls decide, not the word. R10: on anything but a good end no call is executable.
    fn finish(mut self, forced: Option<&str>) -> Decoded {
        let has_calls = !self.assembler.is_empty();
        let finish = match (&self.error, self.provider_finish.as_deref()) {
            (Some(DecodeError::TruncatedStream), _) => Finish::Truncated,
            (Some(_), _) => Finish::Error,
            (None, Some("length" | "max_tokens")) => Finish::Length,
            (None, Some("content_filter")) => Finish::ContentFilter,
            (
                None,
                Some("tool_calls" | "function_call" | "stop" | "tool_use" | "end_turn" | "eos" | "stop_sequence"),
            ) => self.well(has_calls),
            (None, None) if self.done => self.well(has_calls),
            (None, None) => {
                self.error = Some(DecodeError::TruncatedStream);
                Finish::Truncated
            }
            // Nobody knows what this word means, so nothing runs.
            (None, Some(_)) => {
                self.error = Some(DecodeError::ProtocolViolation);
                Finish::Error
            }
        };
        let clean = finish == Finish::ToolCalls;
        let mut calls = self.assembler.finish(clean, FORMAT, self.response_id.as_deref());
        for call in &mut calls {
            call.call.outside_choice = forced.is_some_and(|forced| forced != call.call.name);
        }
        Decoded {
            calls,
            text: self.text,
            finish,
            provider_finish: self.provider_finish,
            error: self.error,
            refusal: Some(self.refusal).filter(|refusal| !refusal.is_empty()),
            usage: self.usage,
            response_id: self.response_id,
        }
    }

    fn well(&self, has_calls: bool) -> Finish {
        match (has_calls, self.refusal.is_empty()) {
            (true, _) => Finish::ToolCalls,
            (false, false) => Finish::Refusal,
            (false, true) => Finish::Stop,
        }
    }
}

/// R6: choices other than the first are skipped.
fn is_first(choice: &Choice<'_>) -> bool {
    choice.index.unwrap_or(0) == 0
}

/// An error object, or just its text.
fn provider_error(raw: &str) -> DecodeError {
    let error: Value = serde_json::from_str(raw).unwrap_or_default();
    let message = match &error {
        Value::String(text) => text.clone(),
        error => error.get("message").and_then(Value::as_str).unwrap_or("the provider gave no message").to_owned(),
    };
    let code = error.get("code").filter(|code| !code.is_null()).cloned();
    DecodeError::ProviderError { message, code }
}
