//! The contents of notices (webhook messages) about a call, as the policies of its run define them. The store writes
//! the notices.

use std::sync::Arc;

use crate::call::{Caller, Outcome, ToolInvocationRecord};
use crate::contain::discard;
use crate::hydrate::Frozen;
use crate::policy::{NoticeEvent, NoticeTerms};
use crate::redact::summary;
use crate::runner::Run;
use crate::store::{Key, PendingCall};
use crate::tool::Digested as _;

/// The events of a waiting call. `Unknown` is among them because a client may have executed its call.
const OF_WAITING: [NoticeEvent; 4] =
    [NoticeEvent::Waiting, NoticeEvent::Decided, NoticeEvent::Expired, NoticeEvent::Unknown];

/// Returns the contents of the notices about a call that is about to wait. `None` for a call that a graph makes,
/// because the person decides on the graph's own call instead.
pub(in crate::runner) async fn of_waiting(run: &Run, call: &PendingCall) -> Option<Arc<NoticeTerms>> {
    if let Caller::Graph { .. } = call.caller {
        return None;
    }
    let mut terms = run.policy().notices(call.decided_tool(), &OF_WAITING)?;
    if let Some(graph) = &call.graph {
        terms.of_graph = run.policy().notices(call.tool.as_str(), &OF_WAITING).unwrap_or_default().arguments;
        // The sentence in the graph's document also contains the precondition, so the author's sentence is read from
        // the inner call.
        let options = run.options();
        let (tenant, principal) = (options.tenant.as_deref(), options.principal.as_deref());
        let key = Key::waiting(Arc::clone(&graph.run_id), tenant, principal, &graph.call_id);
        let inner = run.shared().store.waiting(key).await.map_err(discard).ok().flatten();
        terms.sentence = inner.and_then(|inner| inner.call.sentence().map(str::to_owned));
    }
    Some(Arc::new(terms))
}

/// Returns the contents of a notice about the unknown outcome of a call that is about to begin.
pub(in crate::runner) fn of_begun(run: &Run, frozen: &Frozen) -> Option<Arc<NoticeTerms>> {
    let spec = &frozen.entry.spec;
    let terms = run.policy().notices(spec.name.as_str(), &[NoticeEvent::Unknown])?;
    Some(Arc::new(NoticeTerms { sentence: summary(spec, frozen.effective(), &[]), ..terms }))
}

/// Returns the contents of a notice about a call that ended with this record and has no entry in the ledger.
pub(in crate::runner) fn of_ended(run: &Run, record: &ToolInvocationRecord) -> Option<Arc<NoticeTerms>> {
    match record.outcome {
        Outcome::OutcomeUnknown => run.policy().notices(&record.name, &[NoticeEvent::Unknown]).map(Arc::new),
        _ => None,
    }
}
