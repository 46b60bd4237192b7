//! [`Unready`]: the reason why no call of a tool can run, regardless of its arguments and its caller.

use std::fmt;

use serde_json::Value;

use crate::error::Problem;
use crate::policy::tool_policy::ToolPolicy;
use crate::redact::Projector;
use crate::tool::Hash;

/// The reason why no call of a tool can run although a policy allows the tool.
/// A model never reads it, because its call is refused like a call of an unknown tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "mcp-client"), expect(dead_code, reason = "only sources of tools make some of them"))]
pub(crate) enum Unready {
    /// The policy does not pin this tool of a server.
    NotPinned,
    /// The server publishes another definition than the policy pins, or changed the pinned one and restored it.
    Drifted,
    /// Neither the tool nor the policy has an allowlist for its results.
    NoAllowlist,
    /// The rules of the policy do not fit the definition; the text names the place.
    Rules(String),
    /// The definition is excluded under every policy; the text gives the reason.
    KeptOut(String),
    /// The server does not list the tool.
    Unlisted,
    /// The server does not answer; the text gives the reason.
    ServerDown(String),
}

impl Unready {
    const fn code(&self) -> &'static str {
        match self {
            Self::NotPinned => "not_pinned",
            Self::Drifted => "drifted",
            Self::NoAllowlist => "no_allowlist",
            Self::Rules(_) => "rules",
            Self::KeptOut(_) => "kept_out",
            Self::Unlisted => "unlisted",
            Self::ServerDown(_) => "server_down",
        }
    }

    /// Returns the reason why the pin of a server's tool prevents calls. `pin` is the hash of its definition here,
    /// `None` for a tool without a server. `published` is the hash of the definition that the server publishes now.
    pub(crate) fn of_pin(policy: &ToolPolicy, name: &str, pin: Option<Hash>, published: Option<Hash>) -> Option<Self> {
        let pin = pin?;
        match policy.tool(name).and_then(|rule| rule.pin) {
            None => Some(Self::NotPinned),
            Some(pinned) if pinned != pin || published != Some(pin) => Some(Self::Drifted),
            Some(_) => None,
        }
    }

    /// Returns the reason why no result of a tool without its own allowlist may be shown. `schema` describes the
    /// results; without it, the policy's paths are not checked.
    pub(crate) fn of_allowlist(policy: &ToolPolicy, name: &str, schema: Option<&Value>) -> Option<Self> {
        let rule = policy.tool(name);
        let Some((rule, allow)) = rule.and_then(|rule| Some((rule, rule.redact.as_ref()?))) else {
            return Some(Self::NoAllowlist);
        };
        let wrong = Projector::compile(allow, &rule.model, schema?).err()?;
        Some(Self::Rules(format!("`redact`: {}", wrong.first()?)))
    }
}

impl From<Unready> for Problem {
    fn from(unready: Unready) -> Self {
        Self::of(unready.code(), unready.to_string(), None)
    }
}

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPinned => f.write_str("the policy pins no definition of it; review it and write `pin`, as `mcp pin` does"),
            Self::Drifted => f.write_str(
                "its definition is not the one that the policy pins, or its server switched between definitions; review the \
                 change and pin it again",
            ),
            Self::NoAllowlist => f.write_str("it has no allowlist for its results; write `redact`"),
            Self::Rules(why) => write!(f, "the policy does not fit its definition: {why}"),
            Self::KeptOut(why) => write!(f, "it is excluded: {why}"),
            Self::Unlisted => f.write_str("its server lists no such tool; correct the name, or take it out of the policy"),
            Self::ServerDown(why) => write!(f, "its server is down: {why}"),
        }
    }
}
