//! Renders short rules for the system prompt from definitions: rules that a schema cannot express.

use std::collections::HashSet;

use crate::tool::ToolSpec;

/// Renders the rules for these tools; empty when there are no tools. The text names only these tools, so that it never
/// refers a model to a tool that it cannot call.
pub(super) fn render<'a>(tools: impl Iterator<Item = &'a ToolSpec>) -> String {
    let tools: Vec<_> = tools.collect();
    if tools.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "Rules for calling tools:\n\
         - Never invent an id. Use ids only as tools returned them or as the user wrote them.\n\
         - When data that a call needs is missing, list it first or ask the user.\n",
    );
    let names: HashSet<_> = tools.iter().map(|spec| spec.name.as_str()).collect();
    for spec in &tools {
        for (argument, lister) in &spec.evidence {
            let rule = if names.contains(lister.as_str()) {
                format!(
                    "- `{}`: take `{argument}` from a result of `{lister}` or from the user's own words; call `{lister}` first when you have none.\n",
                    spec.name
                )
            } else {
                format!("- `{}`: take `{argument}` from a result or from the user's own words.\n", spec.name)
            };
            text.push_str(&rule);
        }
        if !spec.require_any.is_empty() {
            let fields: Vec<_> = spec.require_any.iter().map(|field| format!("`{field}`")).collect();
            text.extend(["- `", spec.name.as_str(), "`: give at least one of ", &fields.join(", "), ".\n"]);
        }
    }
    text
}
