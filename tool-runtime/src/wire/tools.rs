//! What every encoder takes and answers: tools, choice, options, errors.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::tool::{ToolName, ToolSpec};

/// A tool as encoders see it: nothing of the project's own reaches the wire (E1).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WireTool {
    /// The name. It is checked, never rewritten (E4).
    pub name: String,
    /// What it is for; left out when empty.
    pub description: String,
    /// A copy of the schema of its arguments.
    pub input_schema: Value,
}

impl WireTool {
    /// A tool from its parts.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Value) -> Self {
        Self { name: name.into(), description: description.into(), input_schema }
    }
}

impl From<&ToolSpec> for WireTool {
    fn from(spec: &ToolSpec) -> Self {
        Self::new(spec.name.as_str(), &*spec.description, spec.input_schema.to_value())
    }
}

/// Whether and what the model has to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// Nothing.
    None,
    /// Something.
    Required,
    /// This tool.
    Named(String),
}

/// How tools are encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// What the model has to call; the provider's default when nothing is said.
    pub choice: Option<ToolChoice>,
    /// Whether it may make several calls at once; the provider's default when nothing is said.
    pub parallel: Option<bool>,
    /// Close the schemas for the provider's strict mode.
    pub strict: bool,
}

/// Parts of a request body.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Encoded {
    /// The parts, as an object.
    pub body: Value,
    /// From the provider's name of a tool to its own. They are equal; names are never rewritten.
    pub names: BTreeMap<String, String>,
}

/// Why tools cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncodeError {
    /// A stable word, for example `invalid_tool_name`.
    pub kind: &'static str,
    /// The tool.
    pub tool: Option<String>,
    /// JSON Pointer into its schema; nothing when the whole schema or the name is meant.
    pub path: Option<String>,
}

impl EncodeError {
    pub(super) fn of(kind: &'static str, tool: &str, path: Option<String>) -> Self {
        Self { kind, tool: Some(tool.to_owned()), path }
    }

    /// `{"error": {"kind", "tool"?, "path"?}}`
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut error = Map::new();
        error.insert("kind".into(), self.kind.into());
        error.extend(self.tool.as_ref().map(|tool| ("tool".to_owned(), Value::from(tool.as_str()))));
        error.extend(self.path.as_ref().map(|path| ("path".to_owned(), Value::from(path.as_str()))));
        json!({ "error": error })
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        if let Some(tool) = &self.tool {
            write!(f, ": `{}`", tool.escape_debug())?;
        }
        match &self.path {
            Some(path) => write!(f, " at `{}`", path.escape_debug()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for EncodeError {}

/// E4, E5: names fit every provider and are unique; every schema is an object's.
pub(super) fn check(tools: &[WireTool]) -> Result<BTreeMap<String, String>, EncodeError> {
    let mut names = BTreeMap::new();
    for tool in tools {
        if ToolName::foreign(&tool.name).is_err() {
            return Err(EncodeError::of("invalid_tool_name", &tool.name, None));
        }
        if names.insert(tool.name.clone(), tool.name.clone()).is_some() {
            return Err(EncodeError::of("duplicate_tool_name", &tool.name, None));
        }
        if tool.input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(EncodeError::of("unsupported_schema", &tool.name, None));
        }
    }
    Ok(names)
}
