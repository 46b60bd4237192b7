//! Reads an [`Event`] from its JSON document.

use serde::{Deserialize, Deserializer};

use crate::call::{ArgumentChange, CallId, Event, JsonText, LeftOut, NamedArgument, Outcome, Question, SafeError};

/// The fields of all variants. Serde cannot read raw JSON text in a tagged enum.
#[derive(Deserialize)]
struct Document {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    name: Option<String>,
    delta: Option<String>,
    arguments: Option<JsonText>,
    summary: Option<String>,
    #[serde(default)]
    changes: Vec<ArgumentChange>,
    #[serde(default)]
    names: Vec<NamedArgument>,
    outcome: Option<Outcome>,
    prepared: Option<JsonText>,
    question: Option<Question>,
    value: Option<JsonText>,
    error: Option<SafeError>,
    executed: Option<bool>,
    #[serde(default)]
    left_out: LeftOut,
    earlier_call: Option<CallId>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_tokens: u64,
    #[serde(default)]
    cache_write_tokens: u64,
    #[serde(default)]
    reasoning_tokens: u64,
    #[serde(default)]
    estimated: bool,
    text: Option<String>,
    code: Option<String>,
    message: Option<String>,
    reason: Option<String>,
    url: Option<String>,
    title: Option<String>,
    media_type: Option<String>,
    event: Option<Box<Event>>,
}

/// Reads the JSON document of an event, for example from another process.
impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;

        let read = Document::deserialize(deserializer)?;
        macro_rules! needed {
            ($($field:ident),+) => { ($(read.$field.ok_or_else(|| D::Error::missing_field(stringify!($field)))?),+) };
        }
        Ok(match read.kind.as_str() {
            "text_delta" => Self::TextDelta { text: needed!(text) },
            "reasoning_delta" => Self::ReasoningDelta { text: needed!(text) },
            "source" => Self::Source { id: needed!(id), url: read.url, title: read.title },
            "file" => {
                let (media_type, url) = needed!(media_type, url);
                Self::File { media_type, url }
            }
            "data" => {
                // `null` is a valid value too.
                let value = read.value.unwrap_or_else(JsonText::null);
                Self::Data { name: needed!(name), id: read.id, value }
            }
            "tool_call_delta" => {
                let (id, name, delta) = needed!(id, name, delta);
                Self::ToolCallDelta { id: id.into(), name, delta }
            }
            "tool_call_start" => {
                let (id, name) = needed!(id, name);
                Self::ToolCallStart { id: id.into(), name }
            }
            "tool_call_suspended" => {
                let (id, name, outcome, question) = needed!(id, name, outcome, question);
                let Document { arguments, summary, changes, names, prepared, .. } = read;
                let id = id.into();
                Self::ToolCallSuspended { id, name, arguments, summary, changes, names, outcome, prepared, question }
            }
            "tool_call_result" => {
                let (id, name, outcome, executed) = needed!(id, name, outcome, executed);
                let Document { arguments, value, error, left_out, earlier_call, .. } = read;
                let id = id.into();
                Self::ToolCallResult { id, name, arguments, outcome, value, error, executed, left_out, earlier_call }
            }
            "graph" => {
                let (id, name, event) = needed!(id, name, event);
                Self::Graph { id: id.into(), name, event }
            }
            "usage" => {
                let (input_tokens, output_tokens) = needed!(input_tokens, output_tokens);
                let Document { cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated, .. } = read;
                Self::Usage {
                    input_tokens,
                    output_tokens,
                    cache_read_tokens,
                    cache_write_tokens,
                    reasoning_tokens,
                    estimated,
                }
            }
            "status" => Self::Status { text: needed!(text) },
            "error" => {
                let (code, message) = needed!(code, message);
                Self::Error { code, message }
            }
            "done" => Self::Done { reason: needed!(reason) },
            other => return Err(D::Error::custom(format_args!("`{other}` is not an event of this library"))),
        })
    }
}
