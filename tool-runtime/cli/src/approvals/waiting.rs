//! Finds waiting calls: in the documents of the data folder and in the store.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use tool_runtime::call::{CallId, Question};
use tool_runtime::store::{Key, PendingCall, RecordFilter, Store, StoredDocument, StoredRun};

use crate::exit::{Exit, Failure};
use crate::saved::ConversationFiles;
use crate::session::Cli;
use crate::terminal;

/// The code of the failure for a call that does not wait.
pub(super) const NOT_PENDING: &str = "not_pending";

/// A waiting call and its place.
pub(crate) struct LocatedCall {
    pub(crate) call: PendingCall,
    pub(super) place: DecidedIn,
    /// The time by the clock of the call's store, or of this machine for a document. The call has expired if its expiry
    /// is not later.
    pub(super) now: Timestamp,
}

/// The place of a waiting call.
pub(crate) enum DecidedIn {
    /// In a document of the data folder.
    Document { id: String, title: String },
    /// In a run that workers share.
    Run(Box<StoredRun>),
    /// In a run that only the application can continue: the store has its records and calls, but not the run.
    Elsewhere,
}

impl LocatedCall {
    /// Returns the id of the call's document or run, which is `PLACE` in `PLACE/CALL`.
    fn place(&self) -> &str {
        match &self.place {
            DecidedIn::Document { id, .. } => id,
            DecidedIn::Run(_) | DecidedIn::Elsewhere => &self.call.run_id,
        }
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.place(), self.call.call_id)
    }

    /// Whether `id` is the place, or `PLACE/CALL`.
    fn is_in(&self, id: &str) -> bool {
        id == self.place() || id == self.full_name()
    }
}

/// Returns the waiting calls of the data folder, and of the tenant in the store. Unreadable calls fail the command at
/// its end.
pub(super) async fn all(cli: &Cli<'_>) -> Result<(Vec<LocatedCall>, Exit), Failure> {
    let (mut found, mut exit) = (of_documents(cli)?, Exit::Done);
    if let Some(store) = cli.existing_store().await? {
        let known = names(&found);
        exit = add(cli, &*store, &mut found, &RecordFilter::default(), |call| !known.contains(&name(call))).await?;
    }
    Ok((found, exit))
}

/// Returns the call for an id: the id of a call or of its question, `PLACE/CALL`, or the id of a conversation or run
/// with one waiting call.
///
/// In the store, reads only the runs that the id may name. If no call is found there or in a document that the id
/// names, reads the calls with this id in all runs.
pub(crate) async fn find(cli: &Cli<'_>, id: &str) -> Result<LocatedCall, Failure> {
    let question = id.parse::<Question>();
    let id = question.as_ref().map_or(id, |question| question.call_id().as_str());
    let mut found = of_documents(cli)?;
    let known = names(&found);
    found.retain(|found| id == found.call.call_id.as_str() || found.is_in(id));
    if let Some(store) = cli.existing_store().await? {
        let is_new = |call: &PendingCall| !known.contains(&name(call));
        let runs = id.match_indices('/').map(|(at, _)| &id[..at]).chain([id]);
        for run in runs {
            let of_run = RecordFilter { run_id: Some(run.into()), ..RecordFilter::default() };
            let wanted = |call: &PendingCall| id == run || id == format!("{run}/{}", call.call_id);
            add(cli, &*store, &mut found, &of_run, |call| is_new(call) && wanted(call)).await?;
        }
        if !found.iter().any(|found| found.is_in(id)) {
            let everywhere = RecordFilter { call_id: Some(CallId::new(id)), ..RecordFilter::default() };
            add(cli, &*store, &mut found, &everywhere, is_new).await?;
        }
    }
    // If several calls have the id in the question, the question selects one. If no call has this question any more,
    // the call's id decides alone.
    if let Ok(question) = &question
        && let Some(at) = found.iter().position(|found| found.call.question() == *question)
    {
        return Ok(found.swap_remove(at));
    }
    match found.len() {
        0 => Err(unknown(id)),
        1 => found.pop().ok_or_else(|| unknown(id)),
        _ => {
            let names: Vec<_> = found.iter().map(|found| terminal::safe(&found.full_name())).collect();
            let text = format!("`{}` names several calls; write one of {}", terminal::safe(id), names.join(", "));
            Err(Failure::usage(text))
        }
    }
}

fn of_documents(cli: &Cli<'_>) -> Result<Vec<LocatedCall>, Failure> {
    let mut found = Vec::new();
    for saved in ConversationFiles::of(cli).all()? {
        let place = || DecidedIn::Document { id: saved.id.clone(), title: saved.title.clone() };
        found.extend(saved.document.waiting().map(|call| LocatedCall {
            call: call.clone(),
            place: place(),
            now: Timestamp::now(),
        }));
    }
    Ok(found)
}

fn name(call: &PendingCall) -> (Arc<str>, CallId) {
    (Arc::clone(&call.run_id), call.call_id.clone())
}

fn names(found: &[LocatedCall]) -> HashSet<(Arc<str>, CallId)> {
    found.iter().map(|found| name(&found.call)).collect()
}

/// Adds the tenant's waiting calls of the store.
async fn add(
    cli: &Cli<'_>,
    store: &dyn Store,
    found: &mut Vec<LocatedCall>,
    filter: &RecordFilter,
    is_wanted: impl Fn(&PendingCall) -> bool,
) -> Result<Exit, Failure> {
    let (tenant, now) = (cli.party().tenant, store.now().await?);
    let (calls, exit) = terminal::readable(store.pending_calls(filter).await?);
    for call in calls {
        if call.tenant != tenant || !is_wanted(&call) {
            continue;
        }
        let stored = store.read(&[Key::run(Arc::clone(&call.run_id))]).await?.pop().flatten();
        let run = stored.as_ref().and_then(StoredDocument::as_run).filter(|run| run.tenant == tenant);
        let place = run.map_or(DecidedIn::Elsewhere, |run| DecidedIn::Run(Box::new(run.clone())));
        found.push(LocatedCall { call, place, now });
    }
    Ok(exit)
}

/// Returns the failure for an unknown call. A call that never waited, was decided, expired or belongs to another tenant
/// gets the same message.
pub(crate) fn unknown(id: &str) -> Failure {
    let id = terminal::safe(id);
    Failure::usage(format!(
        "no call `{id}` waits for this; it may have been decided already, or have expired (see `approvals list`)"
    ))
    .code(NOT_PENDING)
}

/// Returns a clause that states whether a worker holds the run.
pub(super) fn held(run: &StoredRun, now: Timestamp) -> &'static str {
    if run.is_held(now) { "which a worker holds now" } else { "which no worker holds now" }
}
