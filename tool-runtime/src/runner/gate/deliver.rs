//! Prepares projected values for the model, and applies their evidence and labels.

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
/// [`read`] once nothing can keep the value from the model.
#[inline]
pub(in crate::runner) fn delivered(projected: Projected) -> Delivered {
    let Projected { shown, model, attachments, .. } = projected;
    Delivered { shown, model, warning: None, attachments }
}

/// Adds the ids in a delivered value to the run's evidence and the tool's labels to the run, wherever the value comes
/// from.
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

/// Adds the ids in a projected value to the run's evidence. A graph's own output is written by a model, so it adds
/// nothing: the results of the graph's calls are in the run already.
fn evidence(run: &Run, tool: &str, value: &str) {
    if run.shared().catalog.asks_evidence
        && !is_graph(tool)
        // The value is our own JSON, so only its size is unbounded.
        && let Ok(tree) = json::parse_value(value, &Limits::UNBOUNDED)
    {
        run.evidence().insert_result(&tree);
    }
}

/// Puts the tool's labels on the run, because the model is about to read the tool's output.
pub(in crate::runner) fn label(run: &Run, entry: &Entry) {
    // Most policies have no labels, and building the list of them costs as much as a small call.
    if run.policy().puts_labels(entry.spec.name.as_str()) {
        run.remembered().label(run.policy().labels_of(&entry.policy_resource()));
    }
}
