//! [`UiEvent`]: the protocol-independent input of an encoder.

use std::fmt;

use serde::Deserialize;

use crate::call::JsonText;
use crate::wire::Usage;

/// An event for a chat UI. It deserialises from JSON with the name in `type`, such as
/// `{"type":"text_delta","text":"Hi"}`.
///
/// Events may come in any order: the encoder leaves out events that a protocol would refuse, and adds missing ones.
///
/// ```
/// use tool_runtime::wire::ui::UiEvent;
///
/// let event: UiEvent = serde_json::from_str(r#"{"type":"text_delta","text":"Hi"}"#)?;
/// assert!(matches!(event, UiEvent::TextDelta { text } if text == "Hi"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Deserialize)]
#[serde(try_from = "Flat")]
#[non_exhaustive]
pub enum UiEvent {
    /// The message begins. If neither this event nor a [`StepStart`](Self::StepStart) comes first, the encoder
    /// generates the id of the message.
    MessageStart {
        /// The id of the message.
        id: String,
    },
    /// A request to the model begins.
    StepStart {
        /// The id of the message that the step belongs to.
        id: String,
    },
    /// Text of the model.
    TextDelta {
        /// The text.
        text: String,
    },
    /// Reasoning that may be shown.
    ReasoningDelta {
        /// The text.
        text: String,
    },
    /// A source of the text. Sources whose URL is not `http` or `https` are left out.
    Source {
        /// The id of the source.
        id: String,
        /// The URL of a page; `None` for a document without one.
        url: Option<String>,
        /// The title; `None` if the source has none.
        title: Option<String>,
    },
    /// A file. Files whose URL is not a data URL, `http` or `https` are left out.
    File {
        /// The media type, such as `image/png`.
        media_type: String,
        /// A data URL, or the URL from which to fetch the file.
        url: String,
    },
    /// Data of the application for its UI.
    Data {
        /// The kind of the data.
        name: String,
        /// The id of the data. In protocols that support it, data with the same name and id replaces the earlier data.
        /// `None` for data that replaces nothing.
        id: Option<String>,
        /// The data.
        value: JsonText,
    },
    /// A call begins.
    ToolStart {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
        /// The id of the sub-agent's call that makes this call, for protocols that can show it.
        parent_id: Option<String>,
        /// Whether the tool was discovered at run time, so that the UI has no specific type for it.
        dynamic: bool,
    },
    /// Argument text while the model writes it.
    ToolArgsDelta {
        /// The id of the call.
        id: String,
        /// The next piece of the text.
        delta: String,
    },
    /// The arguments are complete.
    ToolArgs {
        /// The id of the call.
        id: String,
        /// All arguments.
        arguments: JsonText,
    },
    /// The arguments could not be read; the UI shows `{}`.
    ToolArgsError {
        /// The id of the call.
        id: String,
        /// The error, without argument values.
        message: String,
    },
    /// A client has to execute the call, which stays open.
    ClientRequest {
        /// The id of the call.
        id: String,
    },
    /// A person has to decide on the call, which stays open.
    ApprovalRequest {
        /// The id of the call.
        id: String,
        /// The id of the question.
        approval_id: String,
        /// Why a person has to decide; `None` if there is no reason.
        reason: Option<String>,
    },
    /// A person decided.
    ApprovalResponse {
        /// The id of the question.
        approval_id: String,
        /// Whether the person approved the call.
        approved: bool,
        /// The reason of the person; `None` if they gave none.
        reason: Option<String>,
    },
    /// The call ended.
    ToolResult {
        /// The id of the call.
        id: String,
        /// The output. For a failure, it is an object with `message`, or a string.
        result: JsonText,
        /// Whether the call failed.
        is_error: bool,
        /// Additional data for the UI, for protocols that can carry it.
        artifact: Option<JsonText>,
    },
    /// The call ended because a person refused it.
    ToolDenied {
        /// The id of the call.
        id: String,
        /// The refusal as a failure, for protocols without a frame for refusals.
        result: JsonText,
    },
    /// A request to the model ended.
    StepFinish {
        /// The finish reason, such as `stop` or `tool-calls`.
        reason: String,
        /// The tokens of the step.
        usage: Usage,
        /// Whether the next step continues the same text.
        continued: bool,
    },
    /// The message ended.
    Finish {
        /// The finish reason, such as `stop` or `tool-calls`.
        reason: String,
        /// The tokens of all steps of the message.
        usage: Usage,
    },
    /// The message failed. No event follows this one.
    Error {
        /// A stable error code, which only AG-UI writes.
        code: Option<String>,
        /// A message that is safe to show.
        message: String,
    },
}

impl UiEvent {
    /// The id of the call that the event is about; `None` for other events.
    pub(super) fn call(&self) -> Option<&str> {
        match self {
            Self::ToolStart { id, .. }
            | Self::ToolArgsDelta { id, .. }
            | Self::ToolArgs { id, .. }
            | Self::ToolArgsError { id, .. }
            | Self::ClientRequest { id }
            | Self::ApprovalRequest { id, .. }
            | Self::ToolResult { id, .. }
            | Self::ToolDenied { id, .. } => Some(id),
            _ => None,
        }
    }
}

// Texts, arguments, outputs and data URLs stay out of logs.
impl fmt::Debug for UiEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiEvent").field("call", &self.call()).finish_non_exhaustive()
    }
}

/// The members of all events. A derived tagged enum would buffer the JSON, and lose the exact text of numbers and
/// strings.
#[derive(Deserialize)]
struct Flat {
    r#type: String,
    id: Option<String>,
    name: Option<String>,
    parent_id: Option<String>,
    text: Option<String>,
    delta: Option<String>,
    code: Option<String>,
    message: Option<String>,
    approval_id: Option<String>,
    approved: Option<bool>,
    reason: Option<String>,
    arguments: Option<JsonText>,
    result: Option<JsonText>,
    artifact: Option<JsonText>,
    value: Option<JsonText>,
    url: Option<String>,
    title: Option<String>,
    media_type: Option<String>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    dynamic: bool,
    #[serde(default)]
    usage: [u64; 2],
    #[serde(default)]
    continued: bool,
}

impl TryFrom<Flat> for UiEvent {
    type Error = String;

    fn try_from(flat: Flat) -> Result<Self, String> {
        let missing = |member| format!("`{}` needs `{member}`", flat.r#type);
        let id = flat.id.clone().ok_or_else(|| missing("id"));
        let text = |member, value: Option<String>| value.ok_or_else(|| missing(member));
        let usage = || Usage::new(flat.usage[0], flat.usage[1]);
        let null = JsonText::null;
        Ok(match flat.r#type.as_str() {
            "message_start" => Self::MessageStart { id: id? },
            "step_start" => Self::StepStart { id: id? },
            "text_delta" => Self::TextDelta { text: text("text", flat.text)? },
            "reasoning_delta" => Self::ReasoningDelta { text: text("text", flat.text)? },
            "source" => Self::Source { id: id?, url: flat.url, title: flat.title },
            "file" => Self::File { media_type: text("media_type", flat.media_type)?, url: text("url", flat.url)? },
            "data" => {
                Self::Data { name: text("name", flat.name)?, id: flat.id, value: flat.value.unwrap_or_else(null) }
            }
            "tool_start" => Self::ToolStart {
                id: id?,
                name: text("name", flat.name)?,
                parent_id: flat.parent_id,
                dynamic: flat.dynamic,
            },
            "tool_args_delta" => Self::ToolArgsDelta { id: id?, delta: text("delta", flat.delta)? },
            "tool_args" => match flat.arguments {
                Some(arguments) => Self::ToolArgs { id: id?, arguments },
                None => Self::ToolArgsError { id: id?, message: "The arguments are not a JSON object".to_owned() },
            },
            "tool_args_error" => Self::ToolArgsError { id: id?, message: text("message", flat.message)? },
            "client_request" => Self::ClientRequest { id: id? },
            "approval_request" => Self::ApprovalRequest {
                id: id?,
                approval_id: text("approval_id", flat.approval_id)?,
                reason: flat.reason,
            },
            "approval_response" => Self::ApprovalResponse {
                approval_id: text("approval_id", flat.approval_id)?,
                approved: flat.approved.ok_or_else(|| missing("approved"))?,
                reason: flat.reason,
            },
            "tool_result" => Self::ToolResult {
                id: id?,
                result: flat.result.unwrap_or_else(null),
                is_error: flat.is_error,
                artifact: flat.artifact,
            },
            "tool_denied" => Self::ToolDenied { id: id?, result: flat.result.unwrap_or_else(null) },
            "step_finish" => {
                Self::StepFinish { reason: text("reason", flat.reason)?, usage: usage(), continued: flat.continued }
            }
            "finish" => Self::Finish { reason: text("reason", flat.reason)?, usage: usage() },
            "error" => Self::Error { code: flat.code, message: text("message", flat.message)? },
            other => return Err(format!("unknown event `{other}`")),
        })
    }
}
