//! Tool names: `<namespace>__<tool>`, stable, at most 64 bytes, safe for every provider.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::ParseError;

/// The longest name that every provider accepts, in bytes.
const MAX_BYTES: usize = 64;

const EMPTY: ParseError = ParseError::new("name_empty", "the tool name is empty; write `<namespace>__<tool>`");
const TOO_LONG: ParseError = ParseError::new("name_too_long", "the tool name is longer than 64 bytes");
const CHARACTER: ParseError =
    ParseError::new("name_character", "the tool name has a character other than ASCII letters, digits, `_` and `-`");
const NO_NAMESPACE: ParseError =
    ParseError::new("name_without_namespace", "the tool name has no namespace; write `<namespace>__<tool>`");
const NAMESPACE: ParseError =
    ParseError::new("name_namespace", "the namespace of the tool name does not start with an ASCII letter");
const TOOL_PART: ParseError =
    ParseError::new("name_tool_part", "the part after the first `__` is empty or contains a second `__`");
pub(crate) const RESERVED: ParseError =
    ParseError::new("name_reserved", "the namespace `mcp` is reserved for tools discovered from MCP servers");
pub(crate) const GRAPH: ParseError = ParseError::new(
    "name_reserved",
    "the namespace `graph` is reserved for graphs; make a graph with `agent::Graph::new`",
);
pub(crate) const BUILT_IN: ParseError = ParseError::new(
    "name_reserved",
    "the name `tools__search` is reserved for the tool that `DynamicTool::search_tools` makes; choose another one",
);
pub(crate) const DISCOVERED: ParseError = ParseError::new(
    "name_discovered",
    "a discovered tool is called `mcp__<server>__<tool>`; give it no namespace, or, if no MCP server lists the tool, make it with `DynamicTool::new`",
);

/// The name of the built-in tool with which a model searches for tools.
pub(crate) const SEARCH: &str = "tools__search";

/// The name of a tool.
///
/// ```
/// use tool_runtime::ToolName;
///
/// let name = ToolName::parse("tasks__update_task")?;
/// assert_eq!(name.namespace(), Some("tasks"));
/// assert!(ToolName::parse("update_task").is_err());
/// assert!(ToolName::foreign("update_task").is_ok());
/// # Ok::<(), tool_runtime::error::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Parses the name of an authored tool: a namespace that starts with a letter, `__`, and a tool part without a
    /// second `__`, in at most 64 ASCII letters, digits, `_` and `-`. `mcp__` is reserved for tools that MCP servers
    /// list (discovered tools), `graph__` for graphs (agents and scripts that run as tools), and `tools__search` for
    /// the built-in tool with which a model searches for tools.
    ///
    /// # Errors
    /// The text is not such a name; the error names the wrong part.
    pub fn parse(name: &str) -> Result<Self, ParseError> {
        check_alphabet(name)?;
        let (namespace, tool) = parts(name)?.ok_or(NO_NAMESPACE)?;
        if tool.contains("__") {
            return Err(TOOL_PART);
        }
        if namespace == "mcp" {
            return Err(RESERVED);
        }
        if namespace == "graph" {
            return Err(GRAPH);
        }
        if name == SEARCH {
            return Err(BUILT_IN);
        }
        Ok(Self(name.into()))
    }

    /// Accepts a legal name with or without a namespace, for example from a document or a server. The name is not
    /// changed.
    ///
    /// # Errors
    /// The text is empty, longer than 64 bytes, or contains an illegal character.
    pub fn foreign(name: &str) -> Result<Self, ParseError> {
        check_alphabet(name)?;
        Ok(Self(name.into()))
    }

    /// Parses the name of a tool that is made at run time. It needs a namespace. The part after the namespace may
    /// contain another `__`, which is refused in the name of an authored tool.
    pub(crate) fn dynamic(name: &str) -> Result<Self, ParseError> {
        check_alphabet(name)?;
        if parts(name)?.is_none() {
            let message = format!(
                "the tool name has no namespace; add `.namespace(\"core\")` to the tool, or write `core__{name}`"
            );
            return Err(ParseError::formatted(NO_NAMESPACE.code(), message));
        }
        Ok(Self(name.into()))
    }

    /// Returns the whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the name is under `mcp__`, which is reserved for discovered tools.
    #[must_use]
    pub fn is_discovered(&self) -> bool {
        is_discovered(&self.0)
    }

    /// Returns the shared text of the name, so that a record needs no copy.
    pub(crate) const fn shared(&self) -> &Arc<str> {
        &self.0
    }

    /// Returns the part before the first `__`; `None` if the name has no `__`.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once("__").map(|(namespace, _)| namespace)
    }
}

/// Whether a name lies under `mcp__`, which is reserved for discovered tools.
pub(crate) fn is_discovered(name: &str) -> bool {
    name.starts_with("mcp__")
}

/// The prefix of the names of graphs' tools.
const GRAPHS: &str = "graph__";

/// Whether a name lies under `graph__`, which is reserved for graphs.
pub(crate) fn is_graph(name: &str) -> bool {
    name.starts_with(GRAPHS)
}

/// Returns the name of the graph behind a tool. `None` if the tool is not a graph.
pub(crate) fn graph_of(tool: &str) -> Option<&str> {
    tool.strip_prefix(GRAPHS)
}

/// Returns the name of a graph's tool.
pub(crate) fn graph(name: &str) -> String {
    format!("{GRAPHS}{name}")
}

/// Splits a name into its namespace and its tool part. `None` if it has no namespace.
fn parts(name: &str) -> Result<Option<(&str, &str)>, ParseError> {
    let Some((namespace, tool)) = name.split_once("__") else { return Ok(None) };
    if !namespace.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Err(NAMESPACE);
    }
    if tool.is_empty() {
        return Err(TOOL_PART);
    }
    Ok(Some((namespace, tool)))
}

fn check_alphabet(name: &str) -> Result<(), ParseError> {
    if name.is_empty() {
        return Err(EMPTY);
    }
    if name.len() > MAX_BYTES {
        return Err(TOO_LONG);
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
        return Err(CHARACTER);
    }
    Ok(())
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl AsRef<str> for ToolName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Accepts any legal name, like [`ToolName::foreign`].
impl std::str::FromStr for ToolName {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Self, ParseError> {
        Self::foreign(name)
    }
}

/// Accepts any legal name, like [`ToolName::foreign`].
impl TryFrom<String> for ToolName {
    type Error = ParseError;

    fn try_from(name: String) -> Result<Self, ParseError> {
        Self::foreign(&name)
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::foreign(&name).map_err(serde::de::Error::custom)
    }
}
