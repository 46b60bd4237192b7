//! Prepares projected values (written through the tool's allowlist) for the model. Adds the ids in them to the run's
//! evidence (the ids that later arguments may contain), and puts the tool's labels on the run.

use crate::call::{Delivered, ToolExecResult};
use crate::catalog::Entry;
use crate::json::{self, Limits};
use crate::redact::Projected;
use crate::runner::Run;
use crate::tool::is_graph;

/// Delivers a projected value that the tool itself returned.
#[inline]
pub(in crate::runner) fn deliver(
    run: &Run,
    entry: &Entry,
    projected: Projected,
    warning: Option<&'static str>,
) -> Delivered {
    let value = Delivered { warning, ..delivered(projected) };
    read(run, entry, &value);
    value
}

/// Converts a projected value for delivery: a tool's own output, a person's replacement, or a client's result. Call
/// [`read`] once it is certain that the model gets the value.
#[inline]
pub(in crate::runner) fn delivered(projected: Projected) -> Delivered {
    let Projected { shown, model, attachments, .. } = projected;
    Delivered { shown, model, warning: None, attachments }
}

/// Adds the ids in a delivered value to the run's evidence, and the tool's labels to the run.
#[inline]
pub(in crate::runner) fn read(run: &Run, entry: &Entry, delivered: &Delivered) {
    evidence(run, entry.spec.name.as_str(), delivered.model.as_ref().unwrap_or(&delivered.shown).get());
    label(run, entry);
}

/// Applies the labels and evidence of a result that another process or an earlier attempt produced, before the model
/// reads it.
pub(in crate::runner) fn adopt(run: &Run, tool: &str, result: &ToolExecResult) {
    let Some(entry) = run.shared().catalog.entry(tool) else { return };
    if let Some(value) = result.value() {
        evidence(run, tool, value.get());
    }
    // An earlier call or a person can have produced the value.
    if result.executed() || result.value().is_some() {
        label(run, entry);
    }
}

/// Adds the ids in a projected value to the run's evidence. The output of a graph adds nothing, because a model wrote
/// it; the run already has the evidence of the graph's calls.
fn evidence(run: &Run, tool: &str, value: &str) {
    if run.shared().catalog.asks_evidence
        && !is_graph(tool)
        // The gate wrote this JSON, so the parser needs no limits.
        && let Ok(tree) = json::parse_value(value, &Limits::UNBOUNDED)
    {
        run.evidence().insert_result(&tree);
    }
}

/// Puts the tool's labels on the run before the model reads the tool's output.
pub(in crate::runner) fn label(run: &Run, entry: &Entry) {
    // Most policies have no labels, and to build their list costs as much as a small call.
    if run.policy().puts_labels(entry.spec.name.as_str()) {
        run.remembered().label(run.policy().labels_of(&entry.policy_resource()));
    }
}
