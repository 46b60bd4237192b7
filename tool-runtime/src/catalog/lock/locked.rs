//! [`Locked`]: the entry of a lock (`tools.lock`) for one tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::capability::InjectedFrom;
use crate::catalog::Entry;
use crate::tool::{Execution, Hash, NoSchemaMode, Once, Redaction, ToolEffect};

/// The entry of a lock for one tool: everything that its hash covers, its title and its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Locked {
    pub(super) hash: Hash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// The lines of the description, so that a diff shows only the changed ones.
    pub(super) description: Vec<String>,
    pub(super) input_schema: Value,
    pub(super) output_schema: Value,
    /// The schema of the payload for a client; `None` for a tool that no client executes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payload_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) summary: Vec<String>,
    pub(super) effect: ToolEffect,
    /// `None` if the tool has no allowlist of its own. The policy's allowlist may then name any leaf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) redaction: Option<Redaction>,
    pub(super) execution: Execution,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) also: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sensitive: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) evidence: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) require_any: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) idempotent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) once: Option<Once>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) no_schema: Option<NoSchemaMode>,
    /// Capabilities by name, and connections by name and kind, each with its effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) borrows: BTreeMap<String, ToolEffect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_result_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) graph: Option<LockedGraph>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LockedGraph {
    pub(super) version: String,
    pub(super) tools: Vec<String>,
}

impl Locked {
    pub(super) fn of(entry: &Entry) -> Self {
        let spec = &*entry.spec;
        let texts = |texts: &[std::sync::Arc<str>]| texts.iter().map(ToString::to_string).collect();
        let borrows = entry.requirements.iter().filter_map(|one| match one.source {
            // Every tool may read the context of its own call.
            InjectedFrom::Context => None,
            InjectedFrom::Capability => Some((one.name.to_owned(), one.effect)),
            InjectedFrom::Connection(kind) => Some((format!("{} ({kind})", one.name), one.effect)),
        });
        let is_client = spec.execution == Execution::Client;
        Self {
            hash: spec.definition_hash,
            title: spec.title.as_deref().map(str::to_owned),
            description: spec.description.split('\n').map(str::to_owned).collect(),
            input_schema: spec.input_schema.to_value(),
            output_schema: spec.output_schema.to_value(),
            payload_schema: entry.payload.as_ref().filter(|_| is_client).map(crate::tool::Schema::to_value),
            summary: texts(&spec.summary),
            effect: spec.effect,
            redaction: entry.projector.is_some().then(|| spec.redaction.clone()),
            execution: spec.execution,
            tags: texts(&spec.tags),
            also: texts(&spec.also),
            sensitive: spec.sensitive.clone(),
            evidence: spec.evidence.clone(),
            require_any: spec.require_any.clone(),
            idempotent: spec.idempotent,
            once: spec.once.clone(),
            no_schema: spec.no_schema,
            borrows: borrows.collect(),
            timeout_ms: entry.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            max_result_bytes: entry.max_result_bytes.map(|bytes| bytes as u64),
            graph: entry
                .graph
                .as_ref()
                .map(|graph| LockedGraph { version: graph.version.clone(), tools: graph.tools.clone() }),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        // Serialising fails only for maps without text keys, and this document has none.
        serde_json::to_value(self).unwrap_or_default()
    }
}
