//! Decodes Gemini's responses, whole and streamed, through borrowed types.

use std::collections::HashSet;

use crate::wire::decode::ErrorCode;
use crate::wire::decode::fields::read;
use crate::wire::decode::provider_error::{CodeIn, provider_error};
use crate::wire::decode::turn::Writer;
use crate::wire::decode::{Dialect, Framing, fill_frame, unreadable};
use crate::wire::formats::gemini::part::Parts;
use crate::wire::formats::gemini::shape::{Candidate, Chunk, GroundingSource, Response, Tokens};
use crate::wire::history::Citation;
use crate::wire::{FinishReason, Format, WireError, WireErrorKind};

/// The maximum number of sources of one response.
const MAX_SOURCES: usize = 1024;

/// Finish reasons of a turn that a filter cut off.
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

/// Finish reasons of a turn that failed.
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

/// The decoding state of one response.
#[derive(Default)]
pub(crate) struct Gemini {
    parts: Parts,
    /// The URLs and titles of the sources so far, because a chunk may repeat the sources of the previous chunk.
    sources: HashSet<(String, String)>,
}

impl Dialect for Gemini {
    fn format(&self) -> Format {
        Format::Gemini
    }

    fn framing(&self) -> Framing {
        Framing::EventsOrArray
    }

    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>) {
        // Gateways end every stream with `[DONE]`. It ends the reading, but not the turn: a turn ends only with a
        // finish reason (rule G4 of `wire`).
        let mut response = Response::default();
        if fill_frame(&mut response, (event, data), CodeIn::Code, turn) {
            self.response(&response, turn);
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
            turn.end_cut(FinishReason::ContentFilter);
        }
        // Candidates other than index 0 are skipped (R6).
        let is_first = |candidate: &&Candidate<'_>| candidate.index.0.is_none_or(|index| index == 0);
        let Some(candidate) = response.candidates.iter().find(is_first) else { return };
        for part in candidate.parts() {
            if self.parts.add(part, turn).is_none() {
                return;
            }
        }
        // Grounding sources are outside the content, so requests do not contain them.
        if let Some(grounding) = &candidate.grounding.0 {
            grounding.chunks.iter().filter_map(Chunk::source).for_each(|source| self.cite(source, turn));
        }
        if let Some(quoted) = &candidate.quoted.0 {
            quoted.older.iter().chain(quoted.newer.iter()).for_each(|source| self.cite(source, turn));
        }
        self.finish(candidate.finish_reason.get(), turn);
    }

    fn cite(&mut self, source: &GroundingSource<'_>, turn: &mut Writer<'_>) {
        let [url, title, quote] = [source.address(), source.title.get(), source.text.get()].map(str::to_owned);
        if (url.is_empty() && title.is_empty() && quote.is_empty()) || self.sources.len() == MAX_SOURCES {
            return;
        }
        if self.sources.insert((url.clone(), title.clone())) {
            let [url, title, quote] = [url, title, quote].map(|text| Some(text).filter(|text| !text.is_empty()));
            turn.citation(Citation { title, url, quote });
        }
    }

    /// Applies the provider's finish reason (R5, R10, G4). An unknown one fails the turn.
    fn finish(&self, word: &str, turn: &mut Writer<'_>) {
        if matches!(word, "" | "FINISH_REASON_UNSPECIFIED") {
            return;
        }
        turn.provider_finish(word);
        let word = word.to_ascii_uppercase();
        match word.as_str() {
            // The call was never completed (G3).
            "STOP" if self.parts.is_open() => turn.fail_with(WireErrorKind::ProtocolViolation),
            "STOP" => turn.end_well(),
            "MAX_TOKENS" | "CONTINUATION" => turn.end_cut(FinishReason::Length),
            filtered if FILTERED.contains(&filtered) => turn.end_cut(FinishReason::ContentFilter),
            // `finishMessage` stays out of the error, because it can contain the arguments of the call.
            failed if FAILED.contains(&failed) => turn.fail(WireError::provider("", Some(ErrorCode::Text(word)))),
            _ => turn.fail_with(WireErrorKind::ProtocolViolation),
        }
    }
}
