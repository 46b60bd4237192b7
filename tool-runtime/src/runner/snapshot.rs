//! [`RunSnapshot`]: what a run remembers, as a document with which it goes on in another process.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::call::ToolInvocationRecord;
use crate::hydrate::EvidenceSet;
use crate::policy::Spend;
use crate::runner::state::RunState;
use crate::runner::{Run, RunOptions, ToolRunner};
use crate::store::{PendingCall, PendingFilter, RecordFilter, StoreError};

/// The version of the document that this library writes, and the only one it reads.
const VERSION: u32 = 1;

/// What a run remembers: labels, evidence, what it spent, the ids it saw, and the calls that wait.
///
/// Keep it where clients cannot change it: it is trusted, and the frozen arguments of waiting calls are in it, the
/// sensitive ones included. Its `Debug` shows none of them. A waiting call is finished once for each store: restore
/// a snapshot twice over stores that know nothing of each other, and each can finish it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSnapshot {
    #[serde(deserialize_with = "version")]
    version: u32,
    run_id: Arc<str>,
    principal: Option<Arc<str>>,
    tenant: Option<Arc<str>>,
    state: RunState,
    evidence: EvidenceSet,
    spent: Spend,
    waiting: Vec<Waiting>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiting {
    record: ToolInvocationRecord,
    call: PendingCall,
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        _ => Err(serde::de::Error::custom("the snapshot was written by another version of the library")),
    }
}

impl RunSnapshot {
    /// The id of the run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the calls that wait for a person or a client.
    pub fn waiting(&self) -> impl Iterator<Item = &PendingCall> {
        self.waiting.iter().map(|waiting| &waiting.call)
    }
}

impl fmt::Debug for RunSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSnapshot").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

/// Why a run cannot go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// The snapshot belongs to another user or organisation than the options name.
    OtherPrincipal,
    /// The store failed.
    Store(StoreError),
}

impl RestoreError {
    /// A stable word: `other_principal` or the store's own.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::OtherPrincipal => "other_principal",
            Self::Store(error) => error.code(),
        }
    }
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherPrincipal => f.write_str("the snapshot belongs to another user or organisation"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RestoreError {}

impl Run {
    /// What the run remembers by now. Take it when no call is running: one that is has not ended in it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn snapshot(&self) -> Result<RunSnapshot, StoreError> {
        let store = &self.0.shared.store;
        let filter = PendingFilter { run_id: Some(Arc::clone(&self.0.id)), ..PendingFilter::default() };
        let mut waiting = Vec::new();
        for call in store.list(&filter).await? {
            let open = store.open_records(&RecordFilter::call(self.id(), call.call_id.clone())).await?;
            waiting.extend(open.into_iter().next().map(|record| Waiting { record, call }));
        }
        Ok(RunSnapshot {
            version: VERSION,
            run_id: Arc::clone(&self.0.id),
            principal: self.0.options.principal.clone(),
            tenant: self.0.options.tenant.clone(),
            state: self.state().clone(),
            evidence: self.evidence().clone(),
            spent: self.0.ledger.spent(),
            waiting,
        })
    }
}

impl ToolRunner {
    /// Goes on with a run from its snapshot: what it saw, spent and was labelled with still counts. Calls that wait
    /// are put into the store, unless it knows them.
    ///
    /// # Errors
    /// The snapshot is another principal's, or the store failed.
    pub async fn restore(&self, snapshot: RunSnapshot, options: RunOptions) -> Result<Run, RestoreError> {
        if snapshot.principal != options.principal || snapshot.tenant != options.tenant {
            return Err(RestoreError::OtherPrincipal);
        }
        let run = self.run(options.run_id(snapshot.run_id));
        run.0.ledger.restore(snapshot.spent);
        run.evidence().merge(&snapshot.evidence);
        run.state().restore(snapshot.state);
        let store = self.store();
        for Waiting { record, call } in snapshot.waiting {
            let filter = RecordFilter::call(run.id(), call.call_id.clone());
            let closed = store.records(&filter).await.map_err(RestoreError::Store)?;
            let known = store.pending(run.id(), &call.call_id).await.map_err(RestoreError::Store)?;
            if closed.is_empty() && known.is_none() {
                store.put(record).await.map_err(RestoreError::Store)?;
                match store.suspend(call).await {
                    Ok(()) | Err(StoreError::Duplicate) => {}
                    Err(error) => return Err(RestoreError::Store(error)),
                }
            }
        }
        Ok(run)
    }
}
