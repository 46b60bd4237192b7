//! [`McpTool`]: a tool that a server lists, for those who decide about it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::catalog::{ToolChanges, compare_published};
use crate::mcp::source::definition::{Listed, Quarantine};
use crate::mcp::source::result;
use crate::policy::{ToolPolicy, Unready};
use crate::schema;
use crate::tool::Hash;

/// A tool that a server lists.
#[derive(Clone)]
pub struct McpTool {
    pub(super) server: Arc<str>,
    pub(super) listed: Arc<Listed>,
    pub(super) has_moved: bool,
}

/// What may become of a tool under a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpToolState {
    /// No policy pins it, so it is denied.
    Discovered,
    /// It is kept out, whatever the policy says.
    Quarantined(Quarantine),
    /// The policy allows it and pins this definition, and calls can run.
    Enabled,
    /// The policy allows it and pins this definition, and no call can run; it says why.
    Unready(Unready),
    /// The policy pins another definition, or the server switched between definitions: it is denied.
    Drifted,
}

impl McpToolState {
    /// Returns the word in listings: `discovered`, `quarantined`, `enabled`, `unready` or `drifted`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Discovered => "discovered",
            Self::Quarantined(_) => "quarantined",
            Self::Enabled => "enabled",
            Self::Unready(_) => "unready",
            Self::Drifted => "drifted",
        }
    }
}

impl McpTool {
    /// The id of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What the server calls the tool, cut to 128 bytes; empty if that cannot be read. It can hold any character.
    #[must_use]
    pub fn raw_name(&self) -> &str {
        &self.listed.raw
    }

    /// What the tool is called here; `None` for one that is kept out.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.listed.admitted.as_ref().ok().map(|definition| definition.name.as_str())
    }

    /// The hash that a policy pins; `None` for a tool that is kept out.
    #[must_use]
    pub fn pin(&self) -> Option<Hash> {
        self.listed.admitted.as_ref().ok().map(|definition| definition.pin)
    }

    /// Returns the hash that a policy pins for a definition as a server published it, such as one that was kept in a file.
    #[must_use]
    pub fn pin_of(definition: &Value) -> Hash {
        schema::pin(definition)
    }

    /// The definition as the server published it; `None` for a tool that is kept out. Its `annotations` are claims.
    #[must_use]
    pub fn definition(&self) -> Option<&Value> {
        self.listed.admitted.as_ref().ok().map(|definition| &definition.published)
    }

    /// What is different from another definition of the tool, such as the one that was pinned; `None` for a tool that is
    /// kept out. Whatever the verdict, the tool is denied until the policy pins the new definition.
    #[must_use]
    pub fn changes(&self, pinned: &Value) -> Option<ToolChanges> {
        let definition = self.listed.admitted.as_ref().ok()?;
        Some(compare_published(&definition.name, pinned, &definition.published))
    }

    /// What may become of the tool under this policy.
    #[must_use]
    pub fn state(&self, policy: &ToolPolicy) -> McpToolState {
        let definition = match &self.listed.admitted {
            Ok(definition) => definition,
            Err(why) => return McpToolState::Quarantined(why.clone()),
        };
        let published = (!self.has_moved).then_some(definition.pin);
        match policy.unpinned(&definition.name, Some(definition.pin), published) {
            _ if self.has_moved => McpToolState::Drifted,
            Some(Unready::Drifted) => McpToolState::Drifted,
            None if policy.mentions(&definition.name) => {
                let output = definition.output.clone().unwrap_or_else(result::plain_schema);
                policy.unshown(&definition.name, Some(&output)).map_or(McpToolState::Enabled, McpToolState::Unready)
            }
            _ => McpToolState::Discovered,
        }
    }
}

impl fmt::Debug for McpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpTool").field("server", &self.server).field("name", &self.name()).finish_non_exhaustive()
    }
}
