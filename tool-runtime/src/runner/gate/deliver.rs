//! [`deliver`]: the one way in which a value reaches the model.

use crate::call::{Delivered, ToolExecResult};
use crate::catalog::Entry;
use crate::json::{self, Limits};
use crate::redact::Projected;
use crate::runner::Run;
use crate::tool::is_graph;

/// Delivers a projected value of the tool's own.
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

/// A projected value as it is delivered: a tool's own output, a person's in its place, or a client's result. It follows
/// that the model has [`read`] it once nothing can keep it from the model.
#[inline]
pub(in crate::runner) fn delivered(projected: Projected) -> Delivered {
    let Projected { shown, model, beside, .. } = projected;
    Delivered { shown, model, warning: None, beside }
}

/// Ids in what the model reads count as seen from now on, and the tool's labels are put on the run, for each origin of
/// the value.
#[inline]
pub(in crate::runner) fn read(run: &Run, entry: &Entry, delivered: &Delivered) {
    evidence(run, entry.spec.name.as_str(), delivered.model.as_ref().unwrap_or(&delivered.shown).get());
    label(run, entry);
}

/// The model is about to read what a tool returned in another process, or in an earlier attempt.
pub(in crate::runner) fn adopt(run: &Run, tool: &str, result: &ToolExecResult) {
    let Some(entry) = run.shared().catalog.entry(tool) else { return };
    if let Some(value) = result.value() {
        evidence(run, tool, value.get());
    }
    if result.executed() {
        label(run, entry);
    }
}

/// Ids in a projected value count as seen from now on. What a graph says is written by a model: of a graph, what its
/// calls returned counts, and that is in the run already.
fn evidence(run: &Run, tool: &str, value: &str) {
    if run.shared().catalog.asks_evidence
        && !is_graph(tool)
        // It is our own JSON, so only its size is unbounded.
        && let Ok(tree) = json::parse_value(value, &Limits::UNBOUNDED)
    {
        run.evidence().insert_result(&tree);
    }
}

/// Puts the tool's labels on the run: the model is about to read something of it.
pub(in crate::runner) fn label(run: &Run, entry: &Entry) {
    // Most policies have no labels, and what names them is as large as a call.
    if run.policy().puts_labels(entry.spec.name.as_str()) {
        run.remembered().label(run.policy().labels_of(&entry.subject()));
    }
}
