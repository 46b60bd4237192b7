//! Derives properties of graphs (agents and scripts that run as tools) from their tools.

use crate::catalog::problem::Problems;
use crate::catalog::{CatalogProblemKind, Entry, SourceServer};
use crate::error::Problem;
use crate::registration::Described;
use crate::text::nearest;
use crate::tool::{Execution, ToolEffect, is_graph};

/// Sets the effect of a graph to the strongest effect of its tools, and collects the hashes of their definitions.
///
/// `entries` contains no graphs, because a graph cannot run another one.
pub(super) fn bind(
    described: &mut Described,
    entries: &[Entry],
    servers: &[SourceServer],
    problems: &mut Vec<Problem>,
) {
    let Described { written, graph: Some(graph), effect, location, .. } = described else { return };
    let tool = written.escape_debug().to_string();
    let mut found = Problems { tool, location: *location, found: problems };
    let mut wrong = |message: &str| found.add(CatalogProblemKind::Graph, message);
    if graph.tools.is_empty() {
        wrong("it has no tools; name them with `tools([..])`");
    }
    if graph.version.is_empty() {
        wrong("its version is empty");
    }
    graph.tools.sort_unstable();
    graph.tools.dedup();
    *effect = ToolEffect::ReadOnly;
    for name in &graph.tools {
        let shown = name.escape_debug();
        match entries.iter().find(|entry| !is_graph(name) && entry.spec.name.as_str() == name) {
            None if is_graph(&name.to_ascii_lowercase()) => {
                wrong(&format!("`{shown}` is a graph, and a graph runs no graph; name the tools that it needs"));
            }
            // The definition of a graph includes the definitions of its tools, so they must be known now.
            None if servers.iter().any(|one| !one.is_listed && name.starts_with(one.server.prefix())) => {
                wrong(&format!(
                    "the server of `{shown}` has not listed its tools yet; wait for it before the catalog is built"
                ));
            }
            None => {
                let suggestion = nearest(name, entries.iter().map(|entry| entry.spec.name.as_str()));
                let suggestion =
                    suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default();
                wrong(&format!("there is no tool `{shown}`{suggestion}"));
            }
            Some(entry) if entry.spec.execution == Execution::Client => {
                wrong(&format!("`{shown}` is executed by the client, which a graph cannot ask; take it out"));
            }
            Some(entry) if graph.only_reads && entry.spec.effect != ToolEffect::ReadOnly => {
                wrong(&format!("`{shown}` has effects, and a script only reads; take it out, or declare `effects()`"));
            }
            Some(entry) => {
                *effect = (*effect).max(entry.spec.effect);
                graph.definitions.push(entry.spec.definition_hash);
            }
        }
    }
}
