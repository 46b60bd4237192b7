//! [`McpRule`]: the options of the MCP server through which an application offers its tools.

use serde::{Deserialize, Serialize};

use crate::policy::window::Window;

/// The options of the MCP server through which an application offers its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct McpRule {
    /// How long the server keeps a request open while its call waits for a person. Without it, the server answers at
    /// once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Window>,
    /// How long a session keeps its run, with the run's budgets and loop guard; an hour if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The server's instructions, which a client may pass to its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl McpRule {
    /// Whether no option is set.
    pub(super) fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}
