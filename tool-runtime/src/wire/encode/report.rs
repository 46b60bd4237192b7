//! The output of an encoder: [`Encoded`] with its [`Loss`]es, or an [`EncodeError`].

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// A part of a request body: the offered tools, the settings, or a history. A history is JSON text, which keeps
/// provider state byte for byte.
///
/// ```
/// use tool_runtime::wire::{EncodeOptions, Format, WireTool};
///
/// let schema = r#"{"type":"object","properties":{"note":{"type":"string"}}}"#;
/// let tools = [WireTool::new("tasks__add", "Adds a task.", schema)];
/// let encoded = Format::Anthropic.encode_tools(tools, &EncodeOptions::default())?;
/// assert_eq!(encoded.body["tools"][0]["name"], "tasks__add");
/// assert_eq!(encoded.tools().next(), Some(("tasks__add", "authoritative")));
/// assert!(encoded.losses.is_empty());
/// # Ok::<(), tool_runtime::wire::EncodeError>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Encoded<Body = Map<String, Value>> {
    /// The fields of the request body, such as `tools`, or `messages` and `system`.
    pub body: Body,
    pub(crate) tools: BTreeMap<String, SentSchema>,
    /// The parts that the format cannot carry.
    pub losses: Vec<Loss>,
}

impl<Body> Encoded<Body> {
    /// Returns the names of the offered tools, each with the schema that was sent: `authoritative`; `closed` for a
    /// closed copy in which optional properties stay optional; or `closed_with_nulls` for a closed copy in which they
    /// are required and nullable. Arguments for the last kind need
    /// [`WireTool::remove_nulls`](crate::wire::WireTool::remove_nulls) before they are validated.
    /// [`Decoder::with_offered`](crate::wire::Decoder::with_offered) takes the names.
    #[must_use]
    pub fn tools(&self) -> impl ExactSizeIterator<Item = (&str, &'static str)> {
        self.tools.iter().map(|(name, sent)| {
            let sent = match sent {
                SentSchema::Authoritative => "authoritative",
                SentSchema::Closed => "closed",
                SentSchema::ClosedWithNulls => "closed_with_nulls",
            };
            (&**name, sent)
        })
    }
}

// Message contents stay out of logs.
impl<Body> fmt::Debug for Encoded<Body> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoded").field("tools", &self.tools).field("losses", &self.losses).finish_non_exhaustive()
    }
}

/// Which schema of a tool was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentSchema {
    /// The tool's own schema.
    Authoritative,
    /// A closed copy in which optional properties stay optional.
    Closed,
    /// A closed copy in which optional properties are required and nullable. Its arguments need
    /// [`WireTool::remove_nulls`](crate::wire::WireTool::remove_nulls) before they are validated.
    ClosedWithNulls,
}

/// A part of a request that was left out or replaced, because the format or the provider does not accept it.
///
/// ```
/// use tool_runtime::wire::{EncodeOptions, Format, WireTool};
///
/// let list = WireTool::new("tasks__list", "Lists tasks.", r#"{"type":"array"}"#);
/// let options = EncodeOptions::default().with_leave_out_unsupported(true);
/// let encoded = Format::OpenAiChat.encode_tools([list], &options)?;
/// assert_eq!(encoded.losses[0].tool.as_deref(), Some("tasks__list"));
/// # Ok::<(), tool_runtime::wire::EncodeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// The name of the tool; `None` if the loss concerns the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A JSON pointer into the input schema or to the message (`/1`), or the name of a setting, an option or a field,
    /// such as `description`. Empty if the loss concerns the whole tool.
    pub path: String,
    /// The part, or the reason why it was left out or replaced, in words.
    pub what: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tool) = &self.tool {
            write!(f, "{tool}: ")?;
        }
        f.write_str(&self.what)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, " at {}", self.path) }
    }
}

/// The reason why a request cannot be encoded in a format.
///
/// ```
/// use tool_runtime::wire::{EncodeOptions, Format, WireTool};
///
/// let list = WireTool::new("tasks__list", "Lists tasks.", r#"{"type":"array"}"#);
/// let refused = Format::OpenAiChat.encode_tools([list], &EncodeOptions::default());
/// assert_eq!(refused.err().map(|error| error.code()), Some("unsupported_schema"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EncodeError {
    kind: EncodeErrorKind,
    /// The name of the tool; `None` if the error concerns the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A JSON pointer into the tool's input schema, or the name of a setting or a field. `None` if the error concerns
    /// a whole schema, a tool's name or description, the number of tools or the tool choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl EncodeError {
    pub(super) fn new(kind: EncodeErrorKind, tool: Option<&str>, path: Option<String>) -> Self {
        Self { kind, tool: tool.map(str::to_owned), path }
    }

    /// Creates the error `unsupported_schema` for a tool. Encoders in other crates use it if their client's types
    /// cannot hold a definition.
    ///
    /// ```
    /// use tool_runtime::wire::EncodeError;
    ///
    /// let error = EncodeError::unsupported_schema("core__add");
    /// assert_eq!((error.code(), error.tool.as_deref()), ("unsupported_schema", Some("core__add")));
    /// ```
    #[must_use]
    pub fn unsupported_schema(tool: &str) -> Self {
        Self::new(EncodeErrorKind::UnsupportedSchema, Some(tool), None)
    }

    /// Returns the stable code of the error, such as `invalid_tool_name` or `unsupported_schema`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.kind.code()
    }

    /// Returns the error as `{"error": {kind, tool?, path?}}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "error": self })
    }
}

/// The kinds of [`EncodeError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EncodeErrorKind {
    /// A name outside `[a-zA-Z0-9_-]{1,64}`.
    InvalidToolName,
    /// Two tools have the same name.
    DuplicateToolName,
    /// The description is longer than the provider accepts.
    DescriptionTooLong,
    /// There are more tools than the provider accepts.
    TooManyTools,
    /// The provider refuses the schema.
    UnsupportedSchema,
    /// The schema cannot be closed.
    StrictUnsupported,
    /// The choice names a tool that is not offered.
    UnknownToolChoice,
    /// The format cannot express the choice.
    UnsupportedToolChoice,
    /// A setting has a value that no provider accepts; the path names the setting.
    InvalidSetting,
    /// An extra field of the body would override a field that the request or a setting writes; the path names it.
    ReservedField,
    /// The extra fields of the body have more than 64 KiB.
    ExtraTooLarge,
}

impl EncodeErrorKind {
    const fn code(self) -> &'static str {
        match self {
            Self::InvalidToolName => "invalid_tool_name",
            Self::DuplicateToolName => "duplicate_tool_name",
            Self::DescriptionTooLong => "description_too_long",
            Self::TooManyTools => "too_many_tools",
            Self::UnsupportedSchema => "unsupported_schema",
            Self::StrictUnsupported => "strict_unsupported",
            Self::UnknownToolChoice => "unknown_tool_choice",
            Self::UnsupportedToolChoice => "unsupported_tool_choice",
            Self::InvalidSetting => "invalid_setting",
            Self::ReservedField => "reserved_field",
            Self::ExtraTooLarge => "extra_too_large",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::InvalidToolName => "a tool name must match [a-zA-Z0-9_-]{1,64}",
            Self::DuplicateToolName => "two tools have the same name",
            Self::DescriptionTooLong => "the provider accepts at most 1,024 characters in a description; shorten it",
            Self::TooManyTools => {
                "the provider accepts at most 128 tools in one request; let the agent pick (`Agent::pick`, `--pick`), or offer fewer"
            }
            Self::UnsupportedSchema => "the provider does not take this input schema",
            Self::StrictUnsupported => "the input schema cannot be made strict",
            Self::UnknownToolChoice => "the tool choice names a tool that is not offered",
            Self::UnsupportedToolChoice => "the format cannot express this tool choice",
            Self::InvalidSetting => "a setting has a value that no provider accepts",
            Self::ReservedField => "the request or a setting writes this field of the body; remove the extra field",
            Self::ExtraTooLarge => "the extra fields of the body are larger than 64 KiB",
        }
    }
}

impl Serialize for EncodeErrorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl From<EncodeError> for Loss {
    fn from(error: EncodeError) -> Self {
        Self { tool: error.tool, path: error.path.unwrap_or_default(), what: error.kind.sentence().to_owned() }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.sentence())?;
        if let Some(tool) = &self.tool {
            write!(f, ": tool `{tool}`")?;
        }
        self.path.as_ref().map_or(Ok(()), |path| write!(f, " at `{path}`"))
    }
}

impl std::error::Error for EncodeError {}
