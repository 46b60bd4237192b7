//! Responses that are longer than any model's: deltas of a few bytes, in the frames of the providers.

use std::fmt;

use tool_runtime::wire::Format;

/// The maximum number of calls of one response, because a turn has no more parts.
const MOST_CALLS: usize = 8_000;

/// The tokens of a model's text, as they are written inside a JSON string.
const TEXT: &[&str] = &[" the", " quick", " brown", " fox", ",", " caf\u{e9}", " jumps", ".\\n", " It", "'s"];

/// The tokens of argument text, which is JSON inside a JSON string: a quarter of them contain an escape.
const ARGUMENTS: &[&str] = &["Par", "is", "\\\",\\\"", "Lon", "don", " (", "UK", ")", "\\\",\\\"", "12", "3", "\\\\n"];

/// One response.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) format: Format,
    arguments: bool,
}

impl Stream {
    pub(crate) const ALL: [Self; 10] = [
        Self { format: Format::OpenAiChat, arguments: true },
        Self { format: Format::OpenAiChat, arguments: false },
        Self { format: Format::OpenAiResponses, arguments: true },
        Self { format: Format::OpenAiResponses, arguments: false },
        Self { format: Format::Anthropic, arguments: true },
        Self { format: Format::Anthropic, arguments: false },
        Self { format: Format::Ollama, arguments: true },
        Self { format: Format::Ollama, arguments: false },
        Self { format: Format::Gemini, arguments: true },
        Self { format: Format::Gemini, arguments: false },
    ];

    /// The bytes of the response. The template's frame with `TOKEN` is repeated for each delta.
    pub(crate) fn bytes(self, deltas: usize) -> Vec<u8> {
        let template = self.template();
        let end_of_frame = if self.format == Format::Ollama { "\n" } else { "\n\n" };
        let tokens = if self.arguments { ARGUMENTS } else { TEXT };
        let deltas = if self.is_whole_calls() { deltas.min(MOST_CALLS) } else { deltas };
        let mut body = String::new();
        for frame in template.split_inclusive(end_of_frame) {
            match frame.split_once("TOKEN") {
                None => body.push_str(frame),
                Some((before, after)) => {
                    tokens.iter().cycle().take(deltas).for_each(|token| body.extend([before, token, after]));
                }
            }
        }
        body.into_bytes()
    }

    /// Whether each delta is a separate call.
    pub(crate) fn is_whole_calls(self) -> bool {
        self.format == Format::Ollama && self.arguments
    }

    const fn template(self) -> &'static str {
        match (self.format, self.arguments) {
            (Format::OpenAiChat, true) => include_str!("frames/openai_chat_arguments.txt"),
            (Format::OpenAiChat, false) => include_str!("frames/openai_chat_text.txt"),
            (Format::OpenAiResponses, true) => include_str!("frames/openai_responses_arguments.txt"),
            (Format::OpenAiResponses, false) => include_str!("frames/openai_responses_text.txt"),
            (Format::Anthropic, true) => include_str!("frames/anthropic_arguments.txt"),
            (Format::Anthropic, false) => include_str!("frames/anthropic_text.txt"),
            (Format::Ollama, true) => include_str!("frames/ollama_arguments.txt"),
            (Format::Ollama, false) => include_str!("frames/ollama_text.txt"),
            (_, true) => include_str!("frames/gemini_arguments.txt"),
            (_, false) => include_str!("frames/gemini_text.txt"),
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deltas = match (self.format, self.arguments) {
            (_, false) => "text",
            (Format::Ollama, true) => "whole calls",
            (Format::Gemini, true) => "arguments in pieces",
            (_, true) => "arguments",
        };
        write!(f, "{}, {deltas}", self.format)
    }
}

/// The JSON documents of a response.
pub(crate) fn frames(body: &[u8]) -> Vec<&str> {
    let lines = str::from_utf8(body).unwrap_or_default().lines();
    lines.filter_map(|line| line.strip_prefix("data: ").or(line.starts_with('{').then_some(line))).collect()
}
