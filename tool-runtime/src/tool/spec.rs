//! [`ToolSpec`]: the authoritative definition of a tool.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::tool::{Hash, Redaction, ToolEffect, ToolName};

/// The authoritative definition of a tool. Immutable once it is in a catalog; encoders work on copies.
///
/// [`definition!`](crate::definition) reads one without a catalog.
///
/// ```
/// use tool_runtime::{ToolEffect, ToolError, definition, tool};
///
/// /// Doubles a number.
/// #[tool(name = "math__double", effect = read_only, redact = ["$"])]
/// fn double(
///     /// The number.
///     number: i64,
/// ) -> Result<i64, ToolError> {
///     Ok(2 * number)
/// }
///
/// let spec = definition!(double)?;
/// assert_eq!((spec.name.as_str(), &*spec.description), ("math__double", "Doubles a number."));
/// assert_eq!(spec.effect, ToolEffect::ReadOnly);
/// assert_eq!(spec.input_schema.to_value()["properties"]["number"]["type"], "integer");
/// assert_eq!(spec.output_schema.to_value()["type"], "integer");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The stable name, the same for every provider.
    pub name: ToolName,
    /// A short name for people; `None` if the author wrote none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The description, verbatim from the doc comment; a model reads it.
    pub description: Arc<str>,
    /// JSON Schema of the arguments.
    pub input_schema: Schema,
    /// JSON Schema of the output, before redaction.
    pub output_schema: Schema,
    /// Sentences for the person who decides on a call, with the names of arguments in braces and optional parts in
    /// brackets; may be empty. The person reads the first sentence whose arguments outside of optional parts are all
    /// present, or else the last one. Models do not read them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<Arc<str>>,
    /// How far the effects of the tool reach.
    pub effect: ToolEffect,
    /// The allowlist for outputs.
    pub redaction: Redaction,
    pub(crate) execution: Execution,
    /// Words that a policy can match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Arc<str>>,
    /// Additional search words: words of users that the description lacks. Models do not read them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Arc<str>>,
    /// Arguments that are masked in events, records, approvals and logs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// Arguments whose values the run must have seen before, each with the tool that lists such values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, String>,
    /// Alternative arguments: a call needs at least one of them. Empty without such a rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub require_any: Vec<String>,
    /// Whether running the tool again with the same arguments has no further effect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) once: Option<Once>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_schema: Option<NoSchemaMode>,
    /// The hash that a policy pins: SHA-256 of the canonical JSON of the definition that a server published. `None` for
    /// a tool that no MCP server lists.
    ///
    /// Canonical JSON has no white space, sorted keys, and integers digit for digit, as in RFC 8785 except for integers
    /// beyond 2^53. Every key of the definition counts, including unknown ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<Hash>,
    /// SHA-256 over the canonical JSON (RFC 8785) of all fields above except the title, and of each borrowed capability
    /// with its effect. For a tool of an MCP server, it also covers the pin; for a graph, its version and the
    /// definitions of its tools. It does not cover limits.
    pub definition_hash: Hash,
}

impl ToolSpec {
    /// Returns the rule for a tool whose arguments have no schema: `reject_effects` if calls run only when the tool is
    /// `read_only`, or `approve_each` if each call needs an approval. `None` for a tool with a schema.
    #[must_use]
    pub fn no_schema_mode(&self) -> Option<&'static str> {
        self.no_schema.map(NoSchemaMode::as_str)
    }

    /// Returns the effect key of the tool with the names of arguments in braces, its scope (`tenant`, `principal` or
    /// `run`), and how long it keeps the result, if not forever. Within the scope, calls with an equal key take effect
    /// once. `None` for a tool without such a key.
    ///
    /// ```
    /// use tool_runtime::{ToolError, definition, tool};
    ///
    /// /// Pays a payment back.
    /// #[tool(name = "pay__refund", effect = external_side_effect, redact = ["$"], once = "refund:{payment_id}")]
    /// fn refund(
    ///     /// Which payment.
    ///     payment_id: String,
    /// ) -> Result<bool, ToolError> {
    ///     Ok(!payment_id.is_empty())
    /// }
    ///
    /// assert_eq!(definition!(refund)?.once(), Some(("refund:{payment_id}", "tenant", None)));
    /// # Ok::<(), tool_runtime::error::BuildError>(())
    /// ```
    #[must_use]
    pub fn once(&self) -> Option<(&str, &'static str, Option<Duration>)> {
        self.once.as_ref().map(|once| (&*once.key, once.scope.as_str(), once.keep.map(Duration::from_secs)))
    }
}

/// A JSON Schema as text (keys sorted, no white space). Encoders send this text to a provider, or a copy that they have
/// adapted to the provider.
///
/// [`ToolSpec`] has an example.
#[derive(Clone, PartialEq, Eq)]
pub struct Schema(Arc<str>);

impl Schema {
    /// Wraps text that the schema compiler wrote.
    pub(crate) fn from_text(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the schema as JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the schema as a value that can be changed.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Bool(true))
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Schema {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl ToolSpec {
    /// Whether a client finishes the calls of the tool: the server validates and prepares them, the client executes
    /// them and sends the result back.
    #[must_use]
    pub fn is_client(&self) -> bool {
        self.execution == Execution::Client
    }
}

/// The place where a tool is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Execution {
    /// On the server, inside the runner.
    Server,
    /// The server validates and prepares; a client executes and sends the result back.
    Client,
}

impl Execution {
    /// Returns the name used in listings: `server` or `client`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// The effect key of a tool, `once`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Once {
    /// The key, with the names of arguments in braces.
    pub(crate) key: Arc<str>,
    pub(crate) scope: OnceScope,
    /// How long the key keeps the result, in seconds. `None` if it keeps it forever.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub(crate) keep: Option<u64>,
}

/// The scope of an effect key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnceScope {
    /// Once in the tenant of the run.
    Tenant,
    /// Once for the principal of the run.
    Principal,
    /// Once in the run.
    Run,
}

impl OnceScope {
    /// Returns the word in definitions.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Principal => "principal",
            Self::Run => "run",
        }
    }
}

/// The rule for a tool whose arguments have no schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoSchemaMode {
    /// Calls run only when the tool is `read_only`.
    RejectEffects,
    /// Each call needs an approval.
    ApproveEach,
}

impl NoSchemaMode {
    /// Returns the word in definitions and policies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RejectEffects => "reject_effects",
            Self::ApproveEach => "approve_each",
        }
    }
}

#[cfg(test)]
impl ToolSpec {
    /// Returns a read-only definition with empty schemas, for tests of single fields.
    pub(crate) fn plain(name: &str) -> Self {
        Self {
            name: ToolName::foreign(name).expect("a name"),
            title: None,
            description: "A tool.".into(),
            input_schema: Schema::from_text("{}"),
            output_schema: Schema::from_text("{}"),
            summary: Vec::new(),
            effect: ToolEffect::ReadOnly,
            redaction: Redaction::default(),
            execution: Execution::Server,
            tags: Vec::new(),
            also: Vec::new(),
            sensitive: Vec::new(),
            evidence: BTreeMap::new(),
            require_any: Vec::new(),
            idempotent: false,
            once: None,
            no_schema: None,
            pin: None,
            definition_hash: Hash([0; 32]),
        }
    }
}
