//! Cases of the policy: reading, deciding, checking.

mod check;
mod decide;
mod read;
mod restored;
mod servers;

use crate::tool::{Execution, Hash, Redaction, Schema, ToolEffect, ToolName, ToolSpec};

/// A definition. Only its name and its effect matter.
pub(super) fn spec(name: &str, effect: ToolEffect) -> ToolSpec {
    ToolSpec {
        name: ToolName::foreign(name).unwrap(),
        title: None,
        description: "A tool.".into(),
        input_schema: Schema::from_text("{}"),
        output_schema: Schema::from_text("{}"),
        summary: Vec::new(),
        effect,
        redaction: Redaction::default(),
        execution: Execution::Server,
        tags: Vec::new(),
        also: Vec::new(),
        sensitive: Vec::new(),
        evidence: std::collections::BTreeMap::new(),
        require_any: Vec::new(),
        idempotent: false,
        once: None,
        no_schema: None,
        pin: None,
        definition_hash: Hash([0; 32]),
    }
}
