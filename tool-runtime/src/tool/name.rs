//! Tool names: `<namespace>__<tool>`, stable, at most 64 bytes, safe for every provider.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest name that every provider takes, in bytes.
const MAX_BYTES: usize = 64;

/// The name of a tool.
///
/// ```
/// use tool_runtime::ToolName;
///
/// let name = ToolName::parse("tasks__update_task")?;
/// assert_eq!(name.namespace(), Some("tasks"));
/// assert!(ToolName::parse("update_task").is_err());
/// assert!(ToolName::foreign("update_task").is_ok());
/// # Ok::<(), tool_runtime::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// Parses the name of an authored tool: a namespace that starts with a letter, `__`, and a tool part without a
    /// second `__`, in ASCII letters, digits, `_` and `-`. `mcp__` is reserved for discovered tools.
    ///
    /// # Errors
    /// The text is not such a name; the error says which part is wrong.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        check_alphabet(name)?;
        let Some((namespace, tool)) = name.split_once("__") else {
            return Err(NameError::NoNamespace);
        };
        if !namespace.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Err(NameError::Namespace);
        }
        if tool.is_empty() || tool.contains("__") {
            return Err(NameError::ToolPart);
        }
        if namespace == "mcp" {
            return Err(NameError::Reserved);
        }
        Ok(Self(name.into()))
    }

    /// Takes the name of a dynamic or discovered tool, which keeps the legal name it was published under.
    ///
    /// # Errors
    /// The text is empty, longer than 64 bytes, or holds another character.
    pub fn foreign(name: &str) -> Result<Self, NameError> {
        check_alphabet(name)?;
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

    /// Returns the part before the first `__`, if there is one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once("__").map(|(namespace, _)| namespace)
    }
}

/// Whether a name lies under `mcp__`, which is reserved for discovered tools.
pub(crate) fn is_discovered(name: &str) -> bool {
    name.starts_with("mcp__")
}

fn check_alphabet(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_BYTES {
        return Err(NameError::TooLong);
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
        return Err(NameError::Character);
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

/// Takes any legal name, as [`ToolName::foreign`] does.
impl std::str::FromStr for ToolName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::foreign(name)
    }
}

/// Takes any legal name, as [`ToolName::foreign`] does.
impl TryFrom<String> for ToolName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
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

/// Why a text is not a tool name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The text is empty.
    Empty,
    /// Over 64 bytes.
    TooLong,
    /// A character outside `a-z A-Z 0-9 _ -`.
    Character,
    /// There is no `__`.
    NoNamespace,
    /// The namespace does not start with a letter.
    Namespace,
    /// The tool part is empty or holds a second `__`.
    ToolPart,
    /// `mcp__` belongs to discovered tools.
    Reserved,
    /// A discovered tool was given a namespace.
    Discovered,
}

impl NameError {
    /// Returns a stable code for each case.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Empty => "name_empty",
            Self::TooLong => "name_too_long",
            Self::Character => "name_character",
            Self::NoNamespace => "name_without_namespace",
            Self::Namespace => "name_namespace",
            Self::ToolPart => "name_tool_part",
            Self::Reserved => "name_reserved",
            Self::Discovered => "name_discovered",
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the tool name is empty; write `<namespace>__<tool>`",
            Self::TooLong => "the tool name is longer than 64 bytes",
            Self::Character => "the tool name holds a character other than ASCII letters, digits, `_` and `-`",
            Self::NoNamespace => "the tool name has no namespace; write `<namespace>__<tool>`",
            Self::Namespace => "the namespace of the tool name does not start with an ASCII letter",
            Self::ToolPart => "the part after the first `__` is empty or holds a second `__`",
            Self::Reserved => "the namespace `mcp` is reserved for tools discovered from MCP servers",
            Self::Discovered => {
                "a discovered tool is called `mcp__<server>__<tool>`; give it no namespace, or make it with \
                 `DynamicTool::new` if it is not a server's"
            }
        })
    }
}

impl std::error::Error for NameError {}
