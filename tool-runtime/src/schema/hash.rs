//! The hash of a definition: what a lock file pins and a record names.

use serde_json::{Value, json};

use crate::json::{canonical, digest};
use crate::tool::{Hash, ToolSpec};

/// SHA-256 over the canonical JSON (RFC 8785) of a definition without its title and the hash itself. Limits are no
/// part of a definition.
pub(crate) fn definition_hash(spec: &ToolSpec) -> Hash {
    let parts: Value = json!({
        "name": spec.name.as_str(),
        "description": &*spec.description,
        "input_schema": spec.input_schema.to_value(),
        "output_schema": spec.output_schema.to_value(),
        "effect": spec.effect.as_str(),
        "redaction": {
            "allow": spec.redaction.allow,
            "model": spec.redaction.model,
            "prepare": spec.redaction.prepare,
        },
        "execution": spec.execution.as_str(),
        "tags": spec.tags.iter().map(|tag| &**tag).collect::<Vec<_>>(),
    });
    digest(canonical::rfc8785(&parts))
}
