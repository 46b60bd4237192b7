//! [`McpTool`]: a tool that a server lists, for review.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::catalog::{LockReport, compare_published};
use crate::error::{ParseError, Problem};
use crate::mcp::source::definition::Listed;
use crate::mcp::source::result;
use crate::policy::{ToolPolicy, Unready};
use crate::redact::nameable;
use crate::schema;
use crate::tool::Hash;

/// A tool that an MCP server lists.
///
/// [`ToolSource`](crate::mcp::source::ToolSource) has an example.
#[derive(Clone)]
pub struct McpTool {
    pub(super) server: Arc<str>,
    pub(super) listed: Arc<Listed>,
    pub(super) has_moved: bool,
}

/// The state of a tool under a policy.
enum ToolState {
    /// The policy does not pin it or does not allow it, so it is denied.
    Discovered,
    /// It is rejected, regardless of the policy.
    Quarantined(ParseError),
    /// The policy allows it and pins this definition, and calls can run.
    Enabled,
    /// The policy allows it and pins this definition, but no call can run, for this reason.
    Unready(Unready),
    /// The policy pins another definition, or the server switched between definitions or changed them too often: it is
    /// denied.
    Drifted,
}

impl McpTool {
    /// Returns the id of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the server's own name of the tool; empty if the name cannot be read. A longer name of a rejected tool is
    /// cut to 128 bytes, and followed by `..`. The name of a rejected tool can contain line ends and invisible
    /// characters.
    #[must_use]
    pub fn raw_name(&self) -> &str {
        &self.listed.raw
    }

    /// Returns the name of the tool in this library; `None` for a rejected tool.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.listed.admitted.as_ref().ok().map(|definition| definition.name.as_str())
    }

    /// Returns the hash for a policy to pin; `None` for a rejected tool.
    #[must_use]
    pub fn pin(&self) -> Option<Hash> {
        self.listed.admitted.as_ref().ok().map(|definition| definition.pin)
    }

    /// Returns the hash that a policy pins for a definition, as a server published it. The definition may come from a
    /// file.
    #[must_use]
    pub fn pin_of(definition: &Value) -> Hash {
        schema::pin(definition)
    }

    /// Returns the definition as the server published it; `None` for a rejected tool. Its `annotations` are unverified
    /// claims.
    #[must_use]
    pub fn definition(&self) -> Option<&Value> {
        self.listed.admitted.as_ref().ok().map(|definition| &definition.published)
    }

    /// Returns the paths in the tool's results that an allowlist (`redact`) can name, sorted; none for a rejected tool.
    /// For a very large output schema, some paths are left out.
    #[must_use]
    pub fn result_paths(&self) -> Vec<String> {
        let Ok(definition) = &self.listed.admitted else { return Vec::new() };
        match &definition.output {
            Some(output) => nameable(&schema::inlined(output)),
            None => nameable(&result::plain_schema()),
        }
    }

    /// Returns the differences from another definition of the tool, such as the pinned one; `None` for a rejected tool.
    /// Whatever the differences are, the tool is denied until the policy pins the new definition.
    #[must_use]
    pub fn changes(&self, pinned: &Value) -> Option<LockReport> {
        let definition = self.listed.admitted.as_ref().ok()?;
        Some(compare_published(&definition.name, pinned, &definition.published))
    }

    /// Returns the state of the tool under this policy:
    /// - `discovered`: the policy does not pin the tool or does not allow it, so it is denied.
    /// - `quarantined`: the tool is rejected, regardless of the policy.
    /// - `enabled`: the policy allows the tool and pins this definition, and calls can run.
    /// - `unready`: the policy allows the tool and pins this definition, but no call can run.
    /// - `drifted`: the policy pins another definition, or the server switched between definitions or changed them too
    ///   often, so the tool is denied.
    #[must_use]
    pub fn state(&self, policy: &ToolPolicy) -> &'static str {
        match self.look(policy) {
            ToolState::Discovered => "discovered",
            ToolState::Quarantined(_) => "quarantined",
            ToolState::Enabled => "enabled",
            ToolState::Unready(_) => "unready",
            ToolState::Drifted => "drifted",
        }
    }

    /// Returns why the tool is `quarantined` or `unready`; `None` in any other [state](Self::state).
    #[must_use]
    pub fn problem(&self, policy: &ToolPolicy) -> Option<Problem> {
        match self.look(policy) {
            ToolState::Quarantined(why) => Some(Problem::of(why.code(), why.to_string(), None)),
            ToolState::Unready(why) => Some(why.into()),
            ToolState::Discovered | ToolState::Enabled | ToolState::Drifted => None,
        }
    }

    fn look(&self, policy: &ToolPolicy) -> ToolState {
        let definition = match &self.listed.admitted {
            Ok(definition) => definition,
            Err(why) => return ToolState::Quarantined(why.clone()),
        };
        let published = (!self.has_moved).then_some(definition.pin);
        match Unready::of_pin(policy, &definition.name, Some(definition.pin), published) {
            _ if self.has_moved => ToolState::Drifted,
            Some(Unready::Drifted) => ToolState::Drifted,
            None if policy.mentions(&definition.name) => {
                let output = definition.output.clone().unwrap_or_else(result::plain_schema);
                Unready::of_allowlist(policy, &definition.name, Some(&output))
                    .map_or(ToolState::Enabled, ToolState::Unready)
            }
            _ => ToolState::Discovered,
        }
    }
}

impl fmt::Debug for McpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpTool").field("server", &self.server).field("name", &self.name()).finish_non_exhaustive()
    }
}
