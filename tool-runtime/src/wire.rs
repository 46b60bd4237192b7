//! Wire formats: encodes definitions and messages as provider requests, and decodes provider bytes into calls.
//!
//! Sans-IO: decoders take bytes and return [`Decoded`]. This module calls no tool, reads no catalog and opens no
//! connection. [`Format`] provides all encoders and decoders. [`history`] holds conversations independent of a
//! provider, and [`ui`] the streams of chat UIs.
//!
//! Comments refer to these rules by their letters:
//!
//! | rule | meaning |
//! | --- | --- |
//! | R1 | The call of a delta, first match wins: a known id (unless the name differs); a new id with a name starts a call; a known index; an unknown index with an id or a name starts a call; an unknown index alone is the call touched last; without an index a name starts a call |
//! | R2 | An empty or null id or name is absent; the first id of a call stays |
//! | R3 | The same name again is a repeat; another name is appended before argument text, and starts a new call after it |
//! | R4 | A call without a usable id gets a generated one and keeps it; two calls never share an id |
//! | R5 | A turn with calls always has the finish reason of calls, even if the provider states another; bytes after the end mark are ignored |
//! | R6 | Unknown and empty values, and values for other readers, are skipped without error |
//! | R7 | Arguments may be an object; null means that they are absent; a string is JSON text |
//! | R8 | Arguments are one JSON object after trimming white space; empty text means `{}`; arguments are not repaired |
//! | R9 | The legacy `function_call` is one call without an id |
//! | R10 | Fail closed: after an unclean end no call of the turn may run |
//! | R11 | If a server gives two calls one id or one index, the second call begins where the name is sent again and complete arguments begin again; an equal second call is a repeat |
//! | S1 | In item streams the output index identifies an item; the call's own id is the id |
//! | S2 | Done events are authoritative over deltas; either alone is enough |
//! | S3 | A stream ends cleanly only with the completed event |
//! | A1 | The type inside the data identifies an event; unknown events and deltas are skipped; blocks other than text, thinking and calls are kept as provider state; calls of the server's own tools are not calls |
//! | A2 | The input is the joined partial JSON, or the input of the start block if there is none |
//! | A3 | A stop reason ends the turn; the closing event may be missing |
//! | A4 | A block before the start, a delta for a block that never started, a block that is not an object, or a second call under the index of an open one breaks the protocol |
//! | A5 | Thinking without its end or its signature is not sent back; the call of a server tool without its result is sent back until the user writes |
//! | O1 | A call has the server's id, or a generated one; each listed call is complete; the calls of several lists add up |
//! | O2 | Lines end in LF or CRLF; empty lines are skipped; the last line needs no end |
//! | G1 | A stream is server-sent events, or one array with a response in each object; an array without its closing bracket broke off |
//! | G2 | `functionCall` is a call, text of a thought is reasoning, `inlineData` is media, and every other part is kept as provider state; a part with a signature is joined with no other and goes back in its place |
//! | G3 | A call with `willContinue` continues until a part without it; each piece of its arguments has a path; a path that has its value, or a call without its end, breaks the protocol |
//! | G4 | The finish reason ends a turn, and a blocked prompt is a content filter; each later call needs another reason |
//! | E1 | Exact key sets; an empty description is left out; fields of this crate never reach the wire |
//! | E2 | No tools: no tools key, no choice |
//! | E3 | A choice that the format cannot express is refused |
//! | E4 | Names match `[a-zA-Z0-9_-]{1,64}` to the last byte and are unique |
//! | E5 | A root other than an object, and a part that a provider refuses, is reported with tool and pointer |
//! | T1 | Strict: a closed copy is sent; the authoritative schema is not touched |
//! | T2 | A schema that cannot be closed is refused |
//! | T3 | Nulls that only the closed copy allows are removed before validation |
//! | M1 | Every call gets exactly one result, in call order, directly after the assistant's message |
//!
//! ```
//! use tool_runtime::wire::{FinishReason, Format};
//!
//! let mut decoder = Format::OpenAiChat.decoder();
//! let events = decoder.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n");
//! assert_eq!(events.len(), 1);
//! let decoded = decoder.finish();
//! assert_eq!((decoded.text.as_str(), decoded.finish), ("Hi", FinishReason::Stop));
//! ```

mod decode;
mod encode;
mod format;
mod formats;
pub mod history;
mod settings;
pub mod ui;

pub use crate::call::usage::Usage;
pub(crate) use decode::CallStatus;
#[cfg(feature = "http")]
pub(crate) use decode::DecodeOptions;
#[cfg(feature = "http")]
pub(crate) use decode::ErrorCode;
pub(crate) use decode::WireErrorKind;
#[cfg(feature = "mcp-client")]
pub(crate) use decode::framing::EventStream;
#[cfg(feature = "http")]
pub(crate) use decode::provider_error::{CodeIn, event_error};
pub use decode::{Decoded, DecodedCall, Decoder, DisplayEvent, FinishReason, WireError};
#[cfg(feature = "http")]
pub(crate) use encode::{AnswerMode, OfferedTools, SentSchema};
pub use encode::{EncodeError, EncodeOptions, Encoded, Loss, ToolChoice, WireTool};
pub(crate) use encode::{Request, RequestInput};
pub use format::Format;
pub use history::message::Message;
pub use settings::{ReasoningEffort, RequestSettings};
