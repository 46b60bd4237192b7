//! What all encoders share: tools as the wire sees them, choices, checks, and the report of what was lost.

mod node;
mod nulls;
pub mod strict;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::tool::ToolSpec;

/// What of a definition goes to a provider; everything else of it stays here (E1).
#[derive(Debug, Clone, Copy)]
pub struct WireTool<'a> {
    /// The name, sent as it is.
    pub name: &'a str,
    /// The description; an empty one is left out.
    pub description: &'a str,
    /// The input schema as JSON text.
    pub input_schema: &'a str,
}

impl<'a> WireTool<'a> {
    /// A tool from its parts.
    #[must_use]
    pub const fn new(name: &'a str, description: &'a str, input_schema: &'a str) -> Self {
        Self { name, description, input_schema }
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
    /// Some call.
    Required,
    /// A call of this tool.
    Named(String),
}

/// How tools are offered.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EncodeOptions {
    /// The choice; nothing writes none, which every provider reads as `auto`.
    pub choice: Option<ToolChoice>,
    /// Whether one turn may hold several calls; nothing leaves it to the provider.
    pub parallel: Option<bool>,
    /// Send closed copies of the schemas that bind the model, where the format knows such.
    pub strict: bool,
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
}

/// Offered tools, ready to be put into a request body.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Encoded {
    /// The parts of the request body.
    pub body: Map<String, Value>,
    /// The tool for each name that the provider may answer with. Names are never rewritten, so both are equal.
    pub names: BTreeMap<String, String>,
    /// What the format cannot carry.
    pub losses: Vec<Loss>,
}

/// Something that a format cannot carry and that was left out of the copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// The tool; nothing when it concerns the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// JSON pointer into the input schema, or the name of the option.
    pub path: String,
    /// What was left out.
    pub what: String,
}

/// Why tools cannot be offered in a format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EncodeError {
    /// What is wrong.
    pub kind: EncodeErrorKind,
    /// The tool it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// JSON pointer into its input schema; nothing concerns the whole schema or the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl EncodeError {
    pub(crate) fn new(kind: EncodeErrorKind, tool: Option<&str>, path: Option<String>) -> Self {
        Self { kind, tool: tool.map(str::to_owned), path }
    }

    /// `{"error": {kind, tool?, path?}}`
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "error": self })
    }
}

/// The kinds of [`EncodeError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// A name outside `[a-zA-Z0-9_-]{1,64}`.
    InvalidToolName,
    /// Two tools have one name.
    DuplicateToolName,
    /// The provider refuses such a schema.
    UnsupportedSchema,
    /// The schema cannot be closed.
    StrictUnsupported,
    /// The choice names a tool that is not offered.
    UnknownToolChoice,
    /// The format has no such choice.
    UnsupportedToolChoice,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            EncodeErrorKind::InvalidToolName => "a tool name must match [a-zA-Z0-9_-]{1,64}",
            EncodeErrorKind::DuplicateToolName => "two tools have the same name",
            EncodeErrorKind::UnsupportedSchema => "the provider does not take this input schema",
            EncodeErrorKind::StrictUnsupported => "the input schema cannot be made strict",
            EncodeErrorKind::UnknownToolChoice => "the choice names a tool that is not offered",
            EncodeErrorKind::UnsupportedToolChoice => "the format has no such choice",
        })?;
        if let Some(tool) = &self.tool {
            write!(f, ": tool `{tool}`")?;
        }
        self.path.as_ref().map_or(Ok(()), |path| write!(f, " at `{path}`"))
    }
}

impl std::error::Error for EncodeError {}

/// What a format can carry.
pub(crate) struct Dialect {
    /// Keywords that the provider refuses at the root of a schema.
    pub(crate) refused_at_root: &'static [&'static str],
    /// It knows closed schemas.
    pub(crate) strict: bool,
    /// It can limit a turn to one call.
    pub(crate) parallel: bool,
    /// It knows choices other than `auto`.
    pub(crate) choice: bool,
}

/// A checked tool: its name, its description unless empty, the schema to send.
pub(crate) struct CheckedTool<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) schema: Value,
}

impl CheckedTool<'_> {
    /// `{name, description?, <key>: schema}`
    pub(crate) fn object(self, schema_key: &str) -> Map<String, Value> {
        let mut out = Map::new();
        out.insert("name".to_owned(), self.name.into());
        if let Some(description) = self.description {
            out.insert("description".to_owned(), description.into());
        }
        out.insert(schema_key.to_owned(), self.schema);
        out
    }
}

/// Everything that was checked; without tools there is no choice either (E2).
pub(crate) struct Checked<'a> {
    pub(crate) tools: Vec<CheckedTool<'a>>,
    pub(crate) choice: Option<ToolChoice>,
    pub(crate) parallel: Option<bool>,
    pub(crate) losses: Vec<Loss>,
}

impl Checked<'_> {
    pub(crate) fn names(&self) -> BTreeMap<String, String> {
        self.tools.iter().map(|tool| (tool.name.to_owned(), tool.name.to_owned())).collect()
    }
}

/// Checks the tools (E4, E5), closes copies where asked (T1, T2), checks the choice (E3).
pub(crate) fn check<'a, T: Into<WireTool<'a>>>(
    tools: impl IntoIterator<Item = T>,
    options: &EncodeOptions,
    dialect: &Dialect,
) -> Result<Checked<'a>, EncodeError> {
    let mut names = BTreeSet::new();
    let mut checked = Vec::new();
    let mut losses = Vec::new();
    for tool in tools {
        let tool: WireTool<'a> = tool.into();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if tool.name.is_empty() || tool.name.len() > 64 || !tool.name.bytes().all(legal) {
            return Err(EncodeError::new(EncodeErrorKind::InvalidToolName, Some(tool.name), None));
        }
        if !names.insert(tool.name) {
            return Err(EncodeError::new(EncodeErrorKind::DuplicateToolName, Some(tool.name), None));
        }
        let schema = check_schema(tool, options, dialect, &mut losses)?;
        let description = Some(tool.description).filter(|text| !text.is_empty());
        checked.push(CheckedTool { name: tool.name, description, schema });
    }
    match &options.choice {
        Some(ToolChoice::Named(name)) if !names.contains(name.as_str()) => {
            return Err(EncodeError::new(EncodeErrorKind::UnknownToolChoice, Some(name), None));
        }
        Some(choice) if *choice != ToolChoice::Auto && !dialect.choice => {
            return Err(EncodeError::new(EncodeErrorKind::UnsupportedToolChoice, None, None));
        }
        _ => {}
    }
    let mut lose = |path: &str, what: &str| {
        losses.push(Loss { tool: None, path: path.to_owned(), what: what.to_owned() });
    };
    if options.strict && !dialect.strict {
        lose("strict", "the format has no strict schemas");
    }
    if options.parallel == Some(false) && !dialect.parallel {
        lose("parallel", "the format cannot limit a turn to one call");
    }
    let offered = !checked.is_empty();
    Ok(Checked {
        tools: checked,
        choice: options.choice.clone().filter(|_| offered),
        parallel: options.parallel.filter(|_| offered && dialect.parallel),
        losses,
    })
}

fn check_schema(
    tool: WireTool<'_>,
    options: &EncodeOptions,
    dialect: &Dialect,
    losses: &mut Vec<Loss>,
) -> Result<Value, EncodeError> {
    let refuse = |kind, path| EncodeError::new(kind, Some(tool.name), path);
    let schema: Value =
        serde_json::from_str(tool.input_schema).map_err(|_| refuse(EncodeErrorKind::UnsupportedSchema, None))?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(refuse(EncodeErrorKind::UnsupportedSchema, None));
    }
    if options.strict && dialect.strict {
        let closed =
            strict::close(tool.input_schema).map_err(|path| refuse(EncodeErrorKind::StrictUnsupported, Some(path)))?;
        let tool = Some(tool.name.to_owned());
        losses.extend(closed.dropped.into_iter().map(|(path, what)| Loss { tool: tool.clone(), path, what }));
        return Ok(closed.schema);
    }
    if let Some(keyword) = dialect.refused_at_root.iter().find(|keyword| schema.get(**keyword).is_some()) {
        return Err(refuse(EncodeErrorKind::UnsupportedSchema, Some(format!("/{keyword}"))));
    }
    Ok(schema)
}
