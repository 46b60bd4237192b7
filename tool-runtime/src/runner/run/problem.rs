//! The names in a run's options that its runner does not know.

use std::collections::BTreeSet;

use crate::error::ParseError;
use crate::runner::RunOptions;
use crate::runner::shared::Shared;
use crate::text::nearest;

/// Logs a problem. Only unknown tools and connections are warnings, because roles, attributes and labels often come
/// from other systems, where they have a meaning.
pub(in crate::runner) fn log(problem: &ParseError, run: &str) {
    let code = problem.code();
    match code {
        "unknown_role" | "unknown_attribute" | "unknown_label" => tracing::debug!(run, code, "{problem}"),
        _ => tracing::warn!(run, code, "{problem}"),
    }
}

/// Returns a problem for each name in the options that neither the catalog nor the policy contains.
pub(in crate::runner) fn of(options: &RunOptions, shared: &Shared) -> Vec<ParseError> {
    let mut problems = Vec::new();
    let mut unknown = |code, method: &str, name: &str, known: &mut dyn Iterator<Item = &str>, what: &str| {
        let suggestion = nearest(name, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        let name = name.escape_debug();
        let message = format!("`RunOptions::{method}` names `{name}`, but {what}{suggestion}");
        problems.push(ParseError::formatted(code, message));
    };
    if let Some(tools) = &options.tools {
        for name in tools.iter().filter(|name| shared.catalog.entry(name).is_none()) {
            let mut known = shared.catalog.specs().map(|spec| spec.name.as_str());
            unknown("unknown_tool", "tools", name, &mut known, "the catalog has no such tool");
        }
    }
    let kinds = &shared.catalog.connections;
    for kind in options.connections.keys().filter(|kind| !kinds.contains(kind.as_str())) {
        let what = "no tool of the catalog borrows a connection of this kind";
        unknown("unknown_connection", "connection", kind, &mut kinds.iter().copied(), what);
    }
    let policy = shared.policy.data();
    // Collecting the known roles costs a walk through the policy, so it is done only for runs that have roles.
    let roles = if options.roles.is_empty() { BTreeSet::new() } else { shared.policy.roles() };
    for role in options.roles.iter().filter(|role| !roles.contains(&***role)) {
        unknown("unknown_role", "role", role, &mut roles.iter().copied(), "the policy has no such role");
    }
    let attributes = if options.attributes.is_empty() { BTreeSet::new() } else { shared.policy.attributes() };
    let named: BTreeSet<_> = options.attributes.iter().map(|(name, _)| &**name).collect();
    for name in named.into_iter().filter(|name| !attributes.contains(name)) {
        let mut known = attributes.iter().copied();
        unknown("unknown_attribute", "attribute", name, &mut known, "the policy has no such attribute");
    }
    for label in options.labels.iter().filter(|label| !policy.labels.contains_key(&***label)) {
        let mut known = policy.labels.keys().map(String::as_str);
        unknown("unknown_label", "label", label, &mut known, "the policy has no such label");
    }
    problems
}
