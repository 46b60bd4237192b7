//! Names that decide nothing, told to operators: starting a run or building a runner cannot fail because of them.

use crate::capability::requirement::Source;
use crate::runner::{RunOptions, Shared};
use crate::text::nearest;

/// Logs what the options of a run name and nothing has: tools, labels, kinds of connections.
pub(super) fn in_options(shared: &Shared, options: &RunOptions, run: &str) {
    let warn = |of: &str, name: &str, meant: Option<&str>| {
        tracing::warn!(run, name, meant, "the options of a run name a {of} that does not exist");
    };
    for name in options.tools.iter().flat_map(|tools| tools.names()) {
        if shared.catalog.get(name).is_none() {
            warn("tool", name, nearest(name, shared.catalog.specs().map(|spec| spec.name.as_str())));
        }
    }
    let labels = &shared.policy.data().labels;
    for label in options.labels.iter().filter(|label| !labels.contains_key(&***label)) {
        warn("label", label, nearest(label, labels.keys().map(String::as_str)));
    }
    if options.connections.is_empty() {
        return;
    }
    let kinds: Vec<&str> = shared
        .catalog
        .entries()
        .flat_map(|entry| &entry.requirements)
        .filter_map(|requirement| match requirement.source {
            Source::Connection(kind) => Some(kind),
            _ => None,
        })
        .collect();
    for kind in options.connections.keys().filter(|kind| !kinds.contains(&kind.as_str())) {
        warn("kind of connection", kind, nearest(kind, kinds.iter().copied()));
    }
}

/// Logs the discovered tools that the policy allows and that stay denied because their definition is not pinned.
pub(super) fn in_pins(shared: &Shared) {
    for spec in shared.catalog.specs().filter(|spec| spec.name.is_discovered()) {
        let name = spec.name.as_str();
        let pin = shared.policy.tool(name).and_then(|rule| rule.pin);
        if shared.policy.mentions(name) && pin != Some(spec.definition_hash) {
            tracing::warn!(tool = name, definition = %spec.definition_hash, "the policy pins another definition of this tool or none; it is denied");
        }
    }
}
