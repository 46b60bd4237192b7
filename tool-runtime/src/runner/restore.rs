//! Restoring a run from its snapshot, never wider than it was.

use std::error::Error;
use std::fmt;

use crate::policy::RunTools;
use crate::runner::snapshot::{RunSnapshot, Waiting};
use crate::runner::{Run, RunOptions, ToolRunner};
use crate::store::{PendingCall, RecordFilter, StoreError};
use crate::tool::Hash;

/// Why a run cannot be restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// The snapshot, or a call that waits in it, belongs to another principal or tenant than the options name.
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
            Self::OtherPrincipal => f.write_str("the snapshot belongs to another principal or tenant"),
            Self::Store(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl Error for RestoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::OtherPrincipal => None,
            Self::Store(error) => Some(error),
        }
    }
}

impl ToolRunner {
    /// Restores a run from its snapshot: what it saw, spent, repeated and was labelled with still counts. Calls that wait
    /// are put into the store, unless it knows them.
    ///
    /// The restored run has the tools and the roles that both the snapshot and the options name, and the labels of
    /// either. Under another policy than the run had, it has no tool that the run could not see. A waiting call runs only under the policy that suspended it, see [`Run::resume`].
    ///
    /// # Errors
    /// The snapshot, or a call that waits in it, is another principal's or tenant's; or the store failed.
    pub async fn restore(&self, snapshot: RunSnapshot, options: RunOptions) -> Result<Run, RestoreError> {
        let options = narrowed(&snapshot, options, self.policy().revision())?;
        let run = self.run(options);
        run.ledger().restore(snapshot.spent);
        run.loop_guard().restore(snapshot.loop_guard);
        run.evidence().merge(&snapshot.evidence);
        run.state().restore(snapshot.state);
        for waiting in snapshot.waiting {
            put_back(&run, waiting).await.map_err(RestoreError::Store)?;
        }
        Ok(run)
    }
}

/// The options with no more than the snapshot had.
fn narrowed(snapshot: &RunSnapshot, mut options: RunOptions, policy: Hash) -> Result<RunOptions, RestoreError> {
    let theirs = |call: &PendingCall| {
        (&call.run_id, &call.principal, &call.tenant) == (&snapshot.run_id, &snapshot.principal, &snapshot.tenant)
    };
    if snapshot.principal != options.principal
        || snapshot.tenant != options.tenant
        || !snapshot.waiting.iter().all(|waiting| theirs(&waiting.call))
    {
        return Err(RestoreError::OtherPrincipal);
    }
    options.roles.retain(|role| snapshot.roles.contains(role));
    options.tools = RunTools::intersection(options.tools, snapshot.tools.clone());
    if policy != snapshot.policy_revision {
        // Another policy may allow more; what it denies is denied in any case.
        options.tools = RunTools::intersection(options.tools, Some(snapshot.visible.clone()));
    }
    Ok(options.run_id(snapshot.run_id.clone()))
}

async fn put_back(run: &Run, waiting: Waiting) -> Result<(), StoreError> {
    let (store, Waiting { record, call }) = (&run.shared().store, waiting);
    let closed = store.records(&RecordFilter::call(run.id(), call.call_id.clone())).await?;
    if !closed.is_empty() || store.pending(run.id(), &call.call_id).await?.is_some() {
        return Ok(());
    }
    if let Some(record) = record {
        store.put(record).await?;
    }
    match store.suspend(call).await {
        Ok(()) | Err(StoreError::Duplicate) => Ok(()),
        Err(error) => Err(error),
    }
}
