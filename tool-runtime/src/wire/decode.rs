//! [`Decoder`]: decodes the bytes of one response, split anywhere, into [`Decoded`].

pub(crate) mod arguments;
pub(crate) mod cursor;
mod decoded;
mod display;
pub(crate) mod fields;
pub(super) mod framing;
pub(crate) mod members;
mod options;
pub(crate) mod provider_error;
pub(crate) mod rare;
pub(crate) mod turn;
mod wire_error;

use std::fmt;
use std::sync::Arc;

use serde::de::IgnoredAny;

use crate::wire::decode::fields::{Field, fill};
use crate::wire::decode::framing::{EventStream, Frame, JsonLines, ObjectArray};
use crate::wire::decode::provider_error::{CodeIn, event_error};
use crate::wire::decode::turn::{Turn, Writer};
use crate::wire::{Format, ToolChoice};

pub(crate) use decoded::CallStatus;
pub use decoded::{Decoded, DecodedCall, FinishReason};
pub use display::DisplayEvent;
pub(crate) use options::DecodeOptions;
pub use wire_error::WireError;
pub(crate) use wire_error::{ErrorCode, WireErrorKind};

/// The part of a decoder that is specific to one format.
pub(crate) trait Dialect: Send {
    /// The format that this dialect reads.
    fn format(&self) -> Format;

    /// How a stream is cut into frames.
    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// Reads one frame of a stream. `event` is the name of the event; it is empty if the frame has none.
    fn frame(&mut self, event: &[u8], data: &str, turn: &mut Writer<'_>);

    /// Reads a whole response that is one JSON document.
    fn body(&mut self, body: &str, turn: &mut Writer<'_>);

    /// Ends the response: writes the parts that the dialect held back.
    fn end(&mut self, _turn: &mut Writer<'_>) {}
}

/// How a stream is cut into frames.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events; a response that begins with `{` or `[` is one document instead.
    Events,
    /// Like [`Framing::Events`], but a response that begins with `[` is an array with one frame in each object (rule G1
    /// of `wire`).
    EventsOrArray,
    /// One JSON document per line; a response that is not streamed is a single line.
    Lines,
}

/// Decodes one response, streamed or whole, within limits. Created by
/// [`Format::decoder`](crate::wire::Format::decoder).
///
/// ```
/// use tool_runtime::wire::Format;
///
/// let mut decoder = Format::Ollama.decoder();
/// // The bytes may be cut anywhere.
/// decoder.push(br#"{"message":{"tool_calls":[{"function":{"name":"core__add","arg"#);
/// decoder.push(br#"uments":{"a":1}}}]},"done":true}"#);
/// let decoded = decoder.finish();
/// assert!(decoded.calls[0].is_executable());
///
/// // No call of a response that breaks off may run.
/// let mut decoder = Format::Ollama.decoder();
/// decoder.push(br#"{"message":{"tool_calls":[{"function":{"name":"core__add"}}]},"done":false}"#);
/// assert!(!decoder.finish().ended_well());
/// ```
pub struct Decoder {
    dialect: Box<dyn Dialect>,
    options: DecodeOptions,
    turn: Turn,
    reader: Reader,
    taken: usize,
    /// The number of bytes that could not be read.
    unread: usize,
}

enum Reader {
    /// So far, the bytes contain only white space and a part of the byte order mark.
    Start {
        mark: usize,
    },
    Events(EventStream),
    Lines(JsonLines),
    Array(ObjectArray),
    Body(Vec<u8>),
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl Decoder {
    pub(crate) fn new(dialect: impl Dialect + 'static) -> Self {
        let options = DecodeOptions::default();
        let turn = Turn::new(dialect.format(), &options);
        Self { dialect: Box::new(dialect), options, turn, reader: Reader::Start { mark: 0 }, taken: 0, unread: 0 }
    }

    /// Sets the maximum number of bytes of one response; 32 MiB by default.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.options.max_bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes of one frame of a stream; 8 MiB by default.
    #[must_use]
    pub fn with_max_frame_bytes(mut self, bytes: usize) -> Self {
        self.options.max_frame_bytes = bytes;
        self
    }

    /// Sets the maximum number of calls of one response; 1,024 by default.
    #[must_use]
    pub fn with_max_calls(mut self, calls: usize) -> Self {
        self.options.max_calls = calls;
        self.turn.limit(&self.options);
        self
    }

    /// Sets the maximum number of bytes of provider state, such as encrypted reasoning; 8 MiB by default.
    #[must_use]
    pub fn with_max_provider_state_bytes(mut self, bytes: usize) -> Self {
        self.options.max_provider_state_bytes = bytes;
        self.turn.limit(&self.options);
        self
    }

    /// Sets the model that the request named. Provider state records it; by default, it records the model that the
    /// response names.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.options.model = Some(model.into());
        self
    }

    /// Sets the tool choice that the request sent. A call that the choice does not allow has
    /// [`outside_choice`](crate::ToolCall::outside_choice) set.
    #[must_use]
    pub fn with_choice(mut self, choice: ToolChoice) -> Self {
        self.options.choice = choice;
        self
    }

    /// Sets the names of the tools that the request offered. A call of any other name has
    /// [`offered`](DecodedCall::offered) set to `false`.
    ///
    /// ```
    /// use tool_runtime::wire::Format;
    ///
    /// let mut decoder = Format::Ollama.decoder().with_offered(["core__add"]);
    /// decoder.push(br#"{"message":{"tool_calls":[{"function":{"name":"core__ad","arguments":{}}}]},"done":true}"#);
    /// let decoded = decoder.finish();
    /// // The runner refuses the call, because no tool has this name.
    /// assert!(!decoded.calls[0].offered);
    /// ```
    #[must_use]
    pub fn with_offered<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.options.offered = Some(Arc::new(names.into_iter().map(Into::into).collect()));
        self
    }

    /// Sets all limits and all properties of the request at once.
    #[cfg(feature = "http")]
    pub(crate) fn with_options(mut self, options: DecodeOptions) -> Self {
        self.turn.limit(&options);
        self.options = options;
        self
    }

    /// Reads the next bytes and returns the events to show. [`Decoder::finish`] reports failures.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<DisplayEvent<'static>> {
        let mut events = Vec::new();
        self.push_with(bytes, |event| events.push(event.into_owned()));
        events
    }

    /// Like [`Decoder::push`], but passes each event to `show` without copying it.
    pub fn push_with(&mut self, bytes: &[u8], mut show: impl FnMut(DisplayEvent<'_>)) {
        self.take(bytes, &mut show);
    }

    /// Returns whether the result is final: the turn ended or failed, and the decoder ignores further bytes.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.turn.is_closed()
    }

    /// Ends the response and returns the decoded turn.
    #[must_use]
    pub fn finish(mut self) -> Decoded {
        let mut ignore = |_: DisplayEvent<'_>| {};
        let (dialect, turn) = (&mut *self.dialect, &mut self.turn);
        if !turn.is_closed() {
            match std::mem::replace(&mut self.reader, Reader::Start { mark: 0 }) {
                Reader::Body(bytes) => {
                    match std::str::from_utf8(&bytes) {
                        Ok(body) => dialect.body(body, &mut Writer { turn, show: &mut ignore }),
                        Err(_) => turn.fail(WireError::new(WireErrorKind::MalformedFrame)),
                    }
                    if turn.is_unreadable() {
                        self.unread = bytes.len();
                    }
                }
                // The last line needs no line end (O2).
                Reader::Lines(lines) => match lines.rest() {
                    Some(line) if is_cut(line) => self.unread = line.len(),
                    Some(line) => read_frame(dialect, turn, &mut ignore, &Frame { event: b"", data: line }),
                    None => {}
                },
                // An array without its closing bracket was cut off (G1).
                Reader::Array(array) if !array.is_closed() => {
                    turn.fail(WireError::new(WireErrorKind::TruncatedStream));
                }
                // By the SSE specification, an event without its closing blank line is discarded.
                Reader::Start { .. } | Reader::Events(_) | Reader::Array(_) => {}
            }
        }
        dialect.end(&mut Writer { turn, show: &mut ignore });
        self.turn.finish(&self.options, self.unread)
    }

    fn take(&mut self, bytes: &[u8], show: &mut dyn FnMut(DisplayEvent<'_>)) {
        if self.turn.is_closed() {
            return;
        }
        // Bytes within the limit are read before the limit is reported: the result must not depend on how they are
        // split.
        let room = self.options.max_bytes.saturating_sub(self.taken);
        let fits = bytes.get(..room).unwrap_or(bytes);
        self.taken += fits.len();
        let read = self.read(fits, show);
        if self.turn.is_closed() {
            return;
        }
        let beyond = (fits.len() < bytes.len()).then_some(WireErrorKind::LimitExceeded);
        if let Some(kind) = read.err().or(beyond) {
            self.unread = match (read, &self.reader) {
                (Err(_), _) => self.options.max_frame_bytes.min(self.taken),
                (Ok(()), Reader::Body(_)) => self.taken,
                (Ok(()), _) => 0,
            };
            self.turn.fail(WireError::new(kind));
            // The content of the reader is no longer needed.
            self.reader = Reader::Start { mark: 0 };
        }
    }

    fn read(&mut self, mut bytes: &[u8], show: &mut dyn FnMut(DisplayEvent<'_>)) -> Result<(), WireErrorKind> {
        if let Reader::Start { mark } = &mut self.reader {
            let mut mark = *mark;
            while let Some((&first, rest)) = bytes.split_first() {
                if BYTE_ORDER_MARK.get(mark) == Some(&first) {
                    mark += 1;
                } else if !matches!(first, b' ' | b'\n' | b'\r' | b'\t') {
                    break;
                }
                bytes = rest;
            }
            let Some(first) = bytes.first() else {
                self.reader = Reader::Start { mark };
                return Ok(());
            };
            let max = self.options.max_frame_bytes;
            self.reader = match (self.dialect.framing(), first) {
                (Framing::Lines, _) => Reader::Lines(JsonLines::new(max)),
                (Framing::EventsOrArray, b'[') => Reader::Array(ObjectArray::new(max)),
                (_, b'{' | b'[') => Reader::Body(Vec::new()),
                (_, _) => Reader::Events(EventStream::new(max)),
            };
        }
        let (dialect, turn) = (&mut *self.dialect, &mut self.turn);
        let mut each = |frame: &Frame<'_>| {
            read_frame(dialect, turn, show, frame);
            !turn.is_closed()
        };
        match &mut self.reader {
            Reader::Start { .. } => Ok(()),
            Reader::Body(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Reader::Events(events) => events.push(bytes, &mut each),
            Reader::Lines(lines) => lines.push(bytes, &mut each),
            Reader::Array(array) => array.push(bytes, &mut each),
        }
    }
}

/// Whether JSON text ends too early; other malformed text returns `false`.
fn is_cut(json: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(json).is_err_and(|error| error.is_eof())
}

/// Reads the data of a frame into an object. Returns `false` if the frame ends the turn: it is the end mark or an error
/// event, or it cannot be read.
pub(crate) fn fill_frame<'a, T: Field<'a>>(
    object: &mut T,
    (event, data): (&[u8], &'a str),
    code_in: CodeIn,
    turn: &mut Writer<'_>,
) -> bool {
    if is_done(data) {
        turn.close();
    } else if event == b"error" {
        turn.fail(event_error(data, code_in));
    } else if fill(object, data).is_err() {
        turn.fail_with(WireErrorKind::MalformedFrame);
    } else {
        return true;
    }
    false
}

/// Whether a frame is the end mark `[DONE]`. Nearly all frames begin with a brace, and are not trimmed.
pub(crate) fn is_done(data: &str) -> bool {
    !data.starts_with('{') && data.trim() == "[DONE]"
}

/// The error kind of a whole response that cannot be read.
pub(crate) fn unreadable(body: &str) -> WireErrorKind {
    if is_cut(body.as_bytes()) { WireErrorKind::TruncatedStream } else { WireErrorKind::MalformedFrame }
}

fn read_frame(dialect: &mut dyn Dialect, turn: &mut Turn, show: &mut dyn FnMut(DisplayEvent<'_>), frame: &Frame<'_>) {
    // A frame without data is skipped (R6); one that is not UTF-8 fails the turn (R10).
    match std::str::from_utf8(frame.data) {
        Ok(data) if !data.starts_with('{') && data.trim_start().is_empty() => {}
        Ok(data) => {
            dialect.frame(frame.event, data, &mut Writer { turn, show });
            turn.frame += 1;
        }
        Err(_) => turn.fail(WireError::new(WireErrorKind::MalformedFrame)),
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("format", &self.dialect.format())
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}
