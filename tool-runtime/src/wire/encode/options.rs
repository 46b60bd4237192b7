//! The input of an encoder: [`WireTool`], [`ToolChoice`] and [`EncodeOptions`].

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::tool::ToolSpec;
use crate::wire::RequestSettings;
use crate::wire::encode::strict::remove_nulls;

/// The parts of a tool definition that a provider receives.
///
/// [`Encoded`](crate::wire::Encoded) has an example.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct WireTool<'a> {
    /// The name, sent unchanged.
    pub name: &'a str,
    /// The description; an empty one is left out.
    pub description: &'a str,
    /// The input schema as JSON text.
    pub input_schema: &'a str,
}

impl<'a> WireTool<'a> {
    /// Creates a tool from its parts.
    #[must_use]
    pub const fn new(name: &'a str, description: &'a str, input_schema: &'a str) -> Self {
        Self { name, description, input_schema }
    }

    /// Returns the arguments of a call without the nulls that only a closed copy of the schema allows
    /// (`closed_with_nulls` in [`Encoded::tools`](crate::wire::Encoded::tools)). Arguments that do not parse are
    /// returned unchanged.
    ///
    /// ```
    /// use tool_runtime::wire::WireTool;
    ///
    /// let schema = r#"{"type":"object","properties":{"note":{"type":"string"}}}"#;
    /// let tool = WireTool::new("tasks__add", "Adds a task.", schema);
    /// assert_eq!(tool.remove_nulls(r#"{"note":null}"#), "{}");
    /// ```
    #[must_use]
    pub fn remove_nulls<'b>(&self, arguments: &'b str) -> Cow<'b, str> {
        remove_nulls(self.input_schema, arguments)
    }
}

impl<'a> From<&'a ToolSpec> for WireTool<'a> {
    fn from(spec: &'a ToolSpec) -> Self {
        Self::new(spec.name.as_str(), &spec.description, spec.input_schema.as_str())
    }
}

/// Which tools the model may or has to call.
///
/// ```
/// use tool_runtime::wire::{EncodeOptions, Format, RequestSettings, ToolChoice, WireTool};
///
/// let add = WireTool::new("core__add", "Adds.", r#"{"type":"object"}"#);
/// let settings = RequestSettings::new().tool_choice(ToolChoice::Named("core__add".to_owned()));
/// let encoded = Format::Anthropic.encode_tools([add], &EncodeOptions::default().with_settings(settings))?;
/// assert_eq!(encoded.body["tool_choice"]["name"], "core__add");
/// # Ok::<(), tool_runtime::wire::EncodeError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call this tool.
    Named(String),
    /// The model may call only these tools.
    Allowed {
        /// The tools, at least one.
        names: Vec<String>,
        /// Whether the model has to call at least one of them.
        required: bool,
    },
}

impl ToolChoice {
    /// Whether the choice allows a call of this name.
    pub(crate) fn allows(&self, name: &str) -> bool {
        match self {
            Self::Auto | Self::Required => true,
            Self::None => false,
            Self::Named(only) => only == name,
            Self::Allowed { names, .. } => names.iter().any(|allowed| allowed == name),
        }
    }

    /// The tools that the choice names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::Named(name) => std::slice::from_ref(name),
            Self::Allowed { names, .. } => names.as_slice(),
            Self::Auto | Self::None | Self::Required => &[],
        };
        names.iter().map(String::as_str)
    }

    /// Whether the model must call a tool.
    pub(crate) const fn forces(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_) | Self::Allowed { required: true, .. })
    }
}

/// The options of [`Format::encode_tools`](crate::wire::Format::encode_tools).
///
/// ```
/// use tool_runtime::wire::{EncodeOptions, Format, WireTool};
///
/// let schema = r#"{"type":"object","properties":{"note":{"type":"string"}}}"#;
/// let tools = [WireTool::new("tasks__add", "Adds a task.", schema)];
/// let encoded = Format::OpenAiChat.encode_tools(tools, &EncodeOptions::default().with_strict(true))?;
/// assert_eq!(encoded.body["tools"][0]["function"]["strict"], true);
/// assert_eq!(encoded.tools().next(), Some(("tasks__add", "closed_with_nulls")));
/// # Ok::<(), tool_runtime::wire::EncodeError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EncodeOptions {
    /// The settings of the request. [`Format::encode_tools`](crate::wire::Format::encode_tools) uses only the tool
    /// choice and the limit to one call.
    pub settings: RequestSettings,
    /// Whether to send closed copies of the schemas, if the format supports them. A closed copy allows no other
    /// properties, and the provider makes the model's arguments match it.
    pub strict: bool,
    /// Whether to leave out a tool that the format cannot carry. `false`, the default, makes the encoding fail with an
    /// [`EncodeError`](crate::wire::EncodeError) that names the tool. With `true`, the other tools are offered and a
    /// [`Loss`](crate::wire::Loss) names the tool; a schema that cannot be closed is sent unchanged, a description that
    /// is too long is cut, and a tool choice that the format cannot express is not sent.
    pub leave_out_unsupported: bool,
    /// Whether the limits of the provider's own API apply: 1,024 characters in a description (OpenAI) and 128 tools in
    /// one request (OpenAI, Gemini). More tools are the error `too_many_tools`. `true` by default; compatible servers
    /// may accept more.
    pub provider_limits: bool,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            settings: RequestSettings::default(),
            strict: false,
            leave_out_unsupported: false,
            provider_limits: true,
        }
    }
}

impl EncodeOptions {
    /// Sets the settings of the request.
    #[must_use]
    pub fn with_settings(mut self, settings: RequestSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets whether closed copies of the schemas are sent.
    #[must_use]
    pub const fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets whether the limits of the provider's own API apply; `true` by default.
    #[must_use]
    pub const fn with_provider_limits(mut self, hold: bool) -> Self {
        self.provider_limits = hold;
        self
    }

    /// Sets whether a tool that the format cannot carry is left out.
    #[must_use]
    pub const fn with_leave_out_unsupported(mut self, leave_out: bool) -> Self {
        self.leave_out_unsupported = leave_out;
        self
    }
}
