//! The calls that wait, wherever they are kept: in documents of the data folder, and in the store.

use std::collections::HashSet;
use std::sync::Arc;

use crate::call::CallId;
use crate::cli::exit::Failure;
use crate::cli::saved::Desk;
use crate::cli::session::Cli;
use crate::cli::terminal;
use crate::store::{Clock as _, Document, Key, PendingCall, PendingFilter, Store as _, StoredRun, SystemClock};

/// A call that waits, and where.
pub(super) struct Found {
    pub(super) call: PendingCall,
    pub(super) place: Place,
}

/// Where a call that waits is decided.
pub(super) enum Place {
    /// In a document of the data folder.
    Document { id: String, title: String },
    /// In a run that workers share.
    Run(Box<StoredRun>),
    /// In a run that another program keeps: only its records and calls are in the store.
    Elsewhere,
}

impl Found {
    /// What the call belongs to, by the name that a person writes.
    fn place(&self) -> &str {
        match &self.place {
            Place::Document { id, .. } => id,
            Place::Run(_) | Place::Elsewhere => &self.call.run_id,
        }
    }
}

/// Returns the calls of the data folder, and those of the tenant in the store.
pub(super) async fn all(cli: &Cli<'_>) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    for saved in Desk::of(cli).all()? {
        let place = || Place::Document { id: saved.id.clone(), title: saved.title.clone() };
        found.extend(saved.document.waiting().map(|call| Found { call: call.clone(), place: place() }));
    }
    let Some(store) = cli.existing_store().await? else { return Ok(found) };
    let of_documents: HashSet<(Arc<str>, CallId)> =
        found.iter().map(|found| (Arc::clone(&found.call.run_id), found.call.call_id.clone())).collect();
    let tenant = cli.party().tenant;
    for call in store.pending_calls(&PendingFilter::default()).await? {
        if call.tenant != tenant || of_documents.contains(&(Arc::clone(&call.run_id), call.call_id.clone())) {
            continue;
        }
        let place = match store.read(&[Key::run(Arc::clone(&call.run_id))]).await?.pop().flatten() {
            Some(Document::Run(run)) if run.tenant == tenant => Place::Run(run),
            _ => Place::Elsewhere,
        };
        found.push(Found { call, place });
    }
    Ok(found)
}

/// Returns the call that an id names: a call, `PLACE/CALL`, or a conversation or run with one waiting call.
pub(super) async fn find(cli: &Cli<'_>, id: &str) -> Result<Found, Failure> {
    let mut found: Vec<_> = all(cli).await?;
    let full = |found: &Found| format!("{}/{}", found.place(), found.call.call_id);
    found.retain(|found| id == found.call.call_id.as_str() || id == found.place() || id == full(found));
    match found.len() {
        0 => Err(unknown(id)),
        1 => found.pop().ok_or_else(|| unknown(id)),
        _ => {
            let names: Vec<_> = found.iter().map(|found| terminal::safe(&full(found))).collect();
            let text = format!("`{}` names several calls; write one of {}", terminal::safe(id), names.join(", "));
            Err(Failure::usage(text))
        }
    }
}

/// A call that never waited, was decided, is too old or belongs to another tenant: all read alike.
pub(in crate::cli) fn unknown(id: &str) -> Failure {
    let id = terminal::safe(id);
    Failure::usage(format!(
        "no call `{id}` waits for that; it may have been decided already, or be too old (see `approvals list`)"
    ))
    .code("not_pending")
}

/// Who continues a run.
pub(super) fn held(run: &StoredRun) -> &'static str {
    if run.is_held(SystemClock.now()) { "which a worker has now" } else { "which no worker has now" }
}
