//! Wire formats: encoders write tools and conversations as provider requests, and decoders read provider responses.
//!
//! This module does no I/O: decoders take bytes and return [`Decoded`]. It calls no tool, reads no catalog and opens no
//! connection, and a call may run only once its response is complete. [`Format`] creates every encoder and decoder.
//! [`history`] holds provider-independent conversations, and [`ui`] the streams of chat UIs.
//!
//! Comments refer to these rules (R: all formats, S: Responses, A: Anthropic, O: Ollama, G: Gemini, E, T and M:
//! requests):
//!
//! | rule | meaning |
//! | --- | --- |
//! | R1 | The call that a delta belongs to; the first match wins: (a) a known id, unless the name differs; (b) a new id with a name: a new call; (c) a known index; (d) an unknown index with an id or a name: a new call; (e) an unknown index alone: the call that changed last; (f) no index: a name starts a new call, otherwise the call that changed last |
//! | R2 | An empty or null id or name is treated as absent; a call keeps its first id |
//! | R3 | A name that equals the call's name is a repeat; a different name is appended before argument text, and starts a new call after it |
//! | R4 | A call without a usable id gets a generated one; two calls never share an id |
//! | R5 | A turn that ends well and has calls finishes with `ToolCalls`, whatever finish reason the provider sent; bytes after the end mark are ignored |
//! | R6 | Unknown and empty values are skipped without error |
//! | R7 | An arguments object is kept as written; a null is absent; a string is parsed as JSON text |
//! | R8 | Argument text is one JSON object after trimming white space; empty text means `{}`; invalid text is not repaired |
//! | R9 | The legacy `function_call` is one call without an id |
//! | R10 | Fail closed: if a turn does not end well, none of its calls may run |
//! | R11 | If several calls share an id or an index, a new call starts where a complete call is named again and new arguments begin; the same name with the same arguments is a repeat |
//! | S1 | In a stream, the `type` inside the data identifies the event, and the output index the item; the id of a call is its `call_id` |
//! | S2 | A done event replaces the text of its deltas; the deltas or the done event alone are enough |
//! | S3 | Only `response.completed` ends a turn well |
//! | A1 | The `type` inside the data decides, not the name of the event; unknown events and deltas are skipped; blocks other than text, thinking and calls are kept as provider state; calls of server tools are not calls for the client |
//! | A2 | The joined `partial_json` is the input of a call; without any, the input is that of the start block |
//! | A3 | A stop reason ends the turn; `message_stop` may be missing |
//! | A4 | These break the protocol: a block before `message_start`, a delta for a block that never started, a block that is not an object, and a second call under the index of an open one |
//! | A5 | Requests omit thinking that lacks its end or its signature; until the user's next message, they repeat a server tool's call that has no result |
//! | O1 | The server's id is used; without one, an id is generated; each listed call is complete; the lists of several lines add up |
//! | O2 | Lines end in LF or CRLF; empty lines are skipped; the last line needs no line end |
//! | G1 | A stream is server-sent events, or one array in which each object is a response; an array without its closing bracket is truncated |
//! | G2 | `functionCall` is a call, text with `thought` is reasoning, `inlineData` is media, and every other part is kept as provider state; a part with a signature is not joined with other parts, and is sent back in its place |
//! | G3 | A call with `willContinue` continues until a part without it; each piece of its arguments has a path; a second value for a path, or a call without its end, breaks the protocol |
//! | G4 | A finish reason ends a turn; a blocked prompt is a content filter; a call after the finish reason needs another finish reason |
//! | E1 | Requests have exactly the keys of the format; an empty description is left out; fields of this crate are never sent |
//! | E2 | Without tools, a request has neither a tools key nor a tool choice |
//! | E3 | A tool choice that the format cannot express is refused |
//! | E4 | All of a tool's name matches `[a-zA-Z0-9_-]{1,64}`, and names are unique |
//! | E5 | A schema whose root is not an object, or that has a part that the provider refuses, is reported with the tool and a JSON pointer |
//! | T1 | Strict mode sends a closed copy of the schema, which allows no undeclared properties; for OpenAI, it also requires every property; the authoritative schema is not changed |
//! | T2 | A schema that cannot be closed is refused |
//! | T3 | Nulls that only the closed copy allows are removed before validation |
//! | M1 | Every call gets exactly one result; the results follow the assistant's message directly, in call order |
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
