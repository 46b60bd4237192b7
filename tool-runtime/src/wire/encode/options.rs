//! What goes into an encoder: [`WireTool`], [`ToolChoice`] and [`EncodeOptions`].

use std::borrow::Cow;

use crate::tool::ToolSpec;
use crate::wire::encode::strict::remove_nulls;

/// The parts of a definition that a provider receives (E1).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct WireTool<'a> {
    /// The name, sent as it is.
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
    /// ([`SentSchema::ClosedWithNulls`](crate::wire::SentSchema::ClosedWithNulls)). Arguments that do not parse are
    /// returned as they are.
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

/// Whether and which tool the model must call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No call.
    None,
    /// At least one call.
    Required,
    /// A call of this tool.
    Named(String),
}

impl ToolChoice {
    /// Whether a call of this name is within the choice.
    pub(crate) fn allows(&self, name: &str) -> bool {
        match self {
            Self::Auto | Self::Required => true,
            Self::None => false,
            Self::Named(only) => only == name,
        }
    }
}

/// What happens to a tool that the format cannot carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnUnsupported {
    /// The encoding fails with an [`EncodeError`](crate::wire::EncodeError) that names the tool.
    #[default]
    Refuse,
    /// The other tools are offered; the [`Loss`](crate::wire::Loss) names the tool. A schema that cannot be closed is
    /// sent as it is.
    LeaveOut,
}

/// How tools are offered.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EncodeOptions {
    /// The choice; `None` writes no choice, which every provider reads as `auto`.
    pub choice: Option<ToolChoice>,
    /// Whether one turn may hold several calls; `None` leaves it to the provider.
    pub parallel: Option<bool>,
    /// Sends closed copies of the schemas that bind the model, if the format supports them.
    pub strict: bool,
    /// What happens to a tool that the format cannot carry.
    pub on_unsupported: OnUnsupported,
}

impl EncodeOptions {
    /// Sets the choice.
    #[must_use]
    pub fn with_choice(mut self, choice: ToolChoice) -> Self {
        self.choice = Some(choice);
        self
    }

    /// Sets whether one turn may hold several calls.
    #[must_use]
    pub const fn with_parallel(mut self, parallel: bool) -> Self {
        self.parallel = Some(parallel);
        self
    }

    /// Sets whether closed copies are sent.
    #[must_use]
    pub const fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets what happens to a tool that the format cannot carry.
    #[must_use]
    pub const fn with_on_unsupported(mut self, on_unsupported: OnUnsupported) -> Self {
        self.on_unsupported = on_unsupported;
        self
    }
}
