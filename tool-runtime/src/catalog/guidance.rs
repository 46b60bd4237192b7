//! Short rules for the system prompt, rendered from the definitions: what a schema cannot tell a model.

use crate::catalog::Semantics;
use crate::tool::ToolSpec;

/// The rules for these tools; empty when there are none.
pub(super) fn render<'a>(tools: impl Iterator<Item = (&'a ToolSpec, &'a Semantics)>) -> String {
    let mut rules = Vec::new();
    let mut any = false;
    for (spec, semantics) in tools {
        any = true;
        for (argument, lister) in &semantics.evidence {
            rules.push(format!(
                "- `{}`: take `{argument}` from a result of `{lister}` or from the user's own words; call `{lister}` first when you have none.",
                spec.name
            ));
        }
        if !semantics.require_any.is_empty() {
            let fields: Vec<_> = semantics.require_any.iter().map(|field| format!("`{field}`")).collect();
            rules.push(format!("- `{}`: give at least one of {}.", spec.name, fields.join(", ")));
        }
    }
    if !any {
        return String::new();
    }
    let mut text = String::from(
        "Rules for calling tools:\n\
         - Never invent an id. Use ids only as tools returned them or as the user wrote them.\n\
         - When data that a call needs is missing, list it first or ask the user.\n",
    );
    for rule in rules {
        text.push_str(&rule);
        text.push('\n');
    }
    text
}
