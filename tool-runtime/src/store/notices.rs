//! Notices inform a webhook of the events of calls. The transaction that changes a call also writes its notice. A
//! process sends the notice later.
//!
//! Only this file decides which changes of a call are events. For example, the first of two required approvals is not
//! an event.

#[cfg(any(test, feature = "http", feature = "testing"))]
mod delivery;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::call::{Caller, Decider, JsonText, Outcome, Question, RecordedArguments, Suspension, ToolInvocationRecord};
use crate::policy::{LinkIds, NoticeEvent, NoticeTerms};
use crate::store::pages::Search;
use crate::store::transact;
use crate::store::{
    DecisionKind, Document, DocumentKind, Finding, Key, PendingCall, Query, Store, StoreError, StoredDocument,
    StoredNotice, Transaction, Waiting,
};
use crate::text::sentence;
use crate::tool::{Hash, graph_of};

#[cfg(feature = "http")]
pub(crate) use delivery::WAITS;
#[cfg(any(test, feature = "http", feature = "testing"))]
pub(crate) use delivery::{Tried, claim, settle};

/// The maximum length of a sentence in a notice, in bytes.
const SENTENCE: usize = 4096;

/// The payload, in the form of Standard Webhooks.
#[derive(Serialize)]
struct Payload<'a> {
    r#type: &'a str,
    timestamp: Timestamp,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    run_id: &'a str,
    call_id: &'a str,
    tool: &'a str,
    /// The graph (an agent or a script that runs as a tool) that makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    graph: Option<&'a str>,
    /// The id of the run that called the graph, if `run_id` is the id of the graph's run.
    #[serde(skip_serializing_if = "Option::is_none")]
    caller_run_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sentence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    arguments: BTreeMap<&'a str, JsonText>,
    #[serde(flatten)]
    facts: Facts<'a>,
}

/// The facts about one event.
#[derive(Serialize)]
#[serde(untagged)]
enum Facts<'a> {
    Waiting {
        question: Question,
        waits_for: Suspension,
        expires_at: Timestamp,
        required_approvals: u32,
    },
    Decided {
        question: Question,
        decision: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        decider: Option<&'a str>,
    },
    Expired {
        question: Question,
    },
    Unknown {
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<&'static str>,
    },
}

/// The call that a notice describes.
struct Called<'a> {
    run_id: &'a Arc<str>,
    call_id: &'a crate::call::CallId,
    tool: &'a str,
    graph: Option<&'a str>,
    caller_run_id: Option<&'a str>,
    tenant: &'a Option<Arc<str>>,
    principal: &'a Option<Arc<str>>,
    sentence: Option<&'a str>,
    shown: Option<&'a str>,
}

impl<'a> Called<'a> {
    /// Returns the call on which a person decides.
    fn waiting(call: &'a PendingCall, terms: &'a NoticeTerms) -> Self {
        let (shown, graph, sentence) = match &call.graph {
            Some(graph) => (graph.shown_arguments.as_ref(), graph_of(call.tool.as_str()), terms.sentence.as_deref()),
            None => (Some(&call.shown_arguments), None, call.sentence()),
        };
        Self {
            run_id: &call.run_id,
            call_id: &call.call_id,
            tool: call.decided_tool(),
            graph,
            caller_run_id: None,
            tenant: &call.tenant,
            principal: &call.principal,
            sentence,
            shown: shown.map(JsonText::get),
        }
    }

    fn ended(record: &'a ToolInvocationRecord, sentence: Option<&'a str>) -> Self {
        let (graph, caller_run_id) = match &record.caller {
            Caller::Direct => (graph_of(&record.name), None),
            Caller::Graph { name, run, .. } => (Some(&**name), Some(&**run)),
        };
        Self {
            run_id: &record.run_id,
            call_id: &record.tool_call_id,
            tool: &record.name,
            graph,
            caller_run_id,
            tenant: &record.tenant,
            principal: &record.principal,
            sentence,
            shown: match &record.arguments {
                RecordedArguments::Masked(shown) => Some(shown.get()),
                RecordedArguments::Unread { .. } => None,
            },
        }
    }
}

/// Writes the notice of an event. `of` distinguishes the events of one call.
fn add(
    transaction: &mut Transaction,
    (terms, event): (&NoticeTerms, NoticeEvent),
    call: &Called<'_>,
    of: &impl Serialize,
    facts: Facts<'_>,
) -> Result<(), StoreError> {
    let (run_id, now) = (call.run_id, transaction.now());
    let ids = LinkIds {
        run: run_id,
        call: call.call_id.as_str(),
        tenant: call.tenant.as_deref(),
        principal: call.principal.as_deref(),
    };
    let listed = call.shown.map(|shown| terms.listed(shown)).unwrap_or_default();
    let data = Data {
        run_id,
        call_id: call.call_id.as_str(),
        tool: call.tool,
        graph: call.graph,
        caller_run_id: call.caller_run_id,
        tenant: call.tenant.as_deref(),
        principal: call.principal.as_deref(),
        sentence: call.sentence.map(|text| sentence(text, SENTENCE)),
        link: terms.link.as_ref().and_then(|link| link.link(&ids)),
        arguments: listed.into_iter().map(|(pointer, text)| (pointer, JsonText::known(text))).collect(),
        facts,
    };
    let payload = Payload { r#type: event.code(), timestamp: now, data };
    let corrupt = |error| StoreError::Corrupt(Box::new(error));
    let payload = serde_json::to_string(&payload).map_err(corrupt)?;
    // The id depends on the event alone, so a repeated transaction writes the same notice.
    let party = (call.tenant, call.principal);
    let of = serde_json::to_vec(&("notice", event, run_id, party, call.call_id.as_str(), of)).map_err(corrupt)?;
    let id: Arc<str> = format!("msg_{}", Hash::sha256(of)).into();
    let notice = StoredNotice {
        id: Arc::clone(&id),
        event: event.code().into(),
        run_id: Arc::clone(run_id),
        call_id: call.call_id.clone(),
        tool: call.tool.into(),
        principal: call.principal.clone(),
        tenant: call.tenant.clone(),
        created_at: now,
        next: Some(now),
        payload: payload.into(),
        since: now,
        tried: 0,
        holder: None,
        ended_at: None,
        attempts: Vec::new(),
        on_hold: None,
    };
    transaction.add(Key::notice(Arc::clone(run_id), id), Document::Notice(Box::new(notice)))
}

/// Returns the contents and the event, if the policy requests notices of this event.
fn asked(terms: Option<&NoticeTerms>, event: NoticeEvent) -> Option<(&NoticeTerms, NoticeEvent)> {
    terms.filter(|terms| terms.events.contains(&event)).map(|terms| (terms, event))
}

/// Writes a notice of a waiting call, if the call is new or its question has changed.
pub(crate) fn waits(
    transaction: &mut Transaction,
    waiting: &Waiting,
    before: Option<&PendingCall>,
) -> Result<(), StoreError> {
    let Some(asked) = asked(waiting.notices.as_deref(), NoticeEvent::Waiting) else { return Ok(()) };
    let (call, question) = (&waiting.call, waiting.call.question());
    if before.is_some_and(|before| before.question() == question) {
        return Ok(());
    }
    let facts = Facts::Waiting {
        question: question.clone(),
        waits_for: call.suspension,
        expires_at: call.expires_at,
        required_approvals: call.required,
    };
    add(transaction, asked, &Called::waiting(call, asked.0), &question, facts)
}

/// Writes a notice that a call no longer waits.
pub(crate) fn decided(
    transaction: &mut Transaction,
    waiting: &Waiting,
    kind: DecisionKind,
    decider: Option<&Decider>,
) -> Result<(), StoreError> {
    let event = match kind {
        // A decision came too late because the call had expired.
        DecisionKind::Expired | DecisionKind::TooLate => NoticeEvent::Expired,
        // An expired call for a client ends as abandoned.
        DecisionKind::Abandoned if waiting.call.is_expired(transaction.now()) => NoticeEvent::Expired,
        _ => NoticeEvent::Decided,
    };
    let Some(asked) = asked(waiting.notices.as_deref(), event) else { return Ok(()) };
    let question = waiting.call.question();
    let facts = match event {
        NoticeEvent::Expired => Facts::Expired { question: question.clone() },
        _ => Facts::Decided {
            question: question.clone(),
            decision: kind.code(),
            decider: decider.map(Decider::principal),
        },
    };
    add(transaction, asked, &Called::waiting(&waiting.call, asked.0), &question, facts)
}

/// Writes a notice of the end of a call, if its outcome is unknown.
pub(crate) fn ended(
    transaction: &mut Transaction,
    terms: Option<&NoticeTerms>,
    record: &ToolInvocationRecord,
) -> Result<(), StoreError> {
    match asked(terms, NoticeEvent::Unknown) {
        Some((terms, event)) if record.outcome == Outcome::OutcomeUnknown => {
            let call = Called::ended(record, terms.sentence.as_deref());
            let facts = Facts::Unknown { cause: record.cause() };
            add(transaction, (terms, event), &call, &record.ended_at, facts)
        }
        _ => Ok(()),
    }
}

/// Writes a notice of a waiting call that ended with an unknown outcome. The call did not begin here, but its client
/// may have executed it.
pub(crate) fn ended_waiting(
    transaction: &mut Transaction,
    waiting: &Waiting,
    record: &ToolInvocationRecord,
) -> Result<(), StoreError> {
    let Some(terms) = waiting.notices.as_deref().filter(|_| record.outcome == Outcome::OutcomeUnknown) else {
        return Ok(());
    };
    let mut terms = NoticeTerms { sentence: waiting.call.sentence().map(str::to_owned), ..terms.clone() };
    if waiting.call.graph.is_some() {
        // The record is that of the graph. Its arguments differ from those of the call for which the graph waits.
        terms.arguments = std::mem::take(&mut terms.of_graph);
    }
    ended(transaction, Some(&terms), record)
}

impl StoredNotice {
    /// Returns the notices of a tenant, oldest first. Notices that cannot be read, of any tenant, are errors at the end
    /// of the list.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn all(store: &dyn Store, tenant: Option<&str>) -> Result<Vec<Result<Self, Finding>>, StoreError> {
        let mut search = Search::of(Query::new(DocumentKind::Notice));
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        while let Some(page) = search.next_reporting(store, |finding| broken.push(Err(finding))).await? {
            found.extend(page.into_iter().filter_map(|StoredDocument { document, .. }| match document {
                Document::Notice(notice) if notice.tenant.as_deref() == tenant => Some(Ok(*notice)),
                _ => None,
            }));
        }
        found.append(&mut broken);
        Ok(found)
    }

    /// Makes the notice due now, and allows ten more attempts. The notice may have been delivered or given up, or may
    /// wait for its next attempt. Returns `false` if the store does not have the notice, or if a process is sending it.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn retry(&self, store: &dyn Store) -> Result<bool, StoreError> {
        let key = Key::notice(Arc::clone(&self.run_id), Arc::clone(&self.id));
        let keys = vec![key.clone()];
        let change = move |transaction: &mut Transaction| {
            let now = transaction.now();
            let Some(Document::Notice(notice)) = transaction.get(&key) else { return Ok(false) };
            if notice.holder.as_ref().is_some_and(|holder| now < holder.until) {
                return Ok(false);
            }
            let mut notice = notice.clone();
            (notice.next, notice.since, notice.tried, notice.ended_at) = (Some(now), now, 0, None);
            transaction.set(&key, Document::Notice(notice))?;
            Ok(true)
        };
        transact(store, keys, change).await
    }
}
