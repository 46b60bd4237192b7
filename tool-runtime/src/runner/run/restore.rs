//! Restores a run from its snapshot, with no more permissions than it had.

use std::sync::Arc;

use crate::policy::{RunPolicy, common_tools};
use crate::runner::ledger::client::LedgerClient;
use crate::runner::run::snapshot::RunSnapshot;
use crate::runner::{ResumeError, Run, RunOptions, ToolRunner};
use crate::store::waiting::with_approvals_of;
use crate::store::{PendingCall, RecordFilter, Store as _, StoreError, Waiting};

/// See [`ToolRunner::restore`].
pub(in crate::runner) async fn restore(
    runner: &ToolRunner,
    snapshot: RunSnapshot,
    options: RunOptions,
) -> Result<Run, ResumeError> {
    let options = narrowed(&snapshot, options)?;
    // If this read fails, the run is restored: the transaction that begins a call with an effect refuses a purged run
    // in any case.
    if runner.shared.store.is_purged(&snapshot.run_id).await.unwrap_or(false) {
        return Err(ResumeError::Store(StoreError::RunPurged));
    }
    let mut standings = snapshot.standings;
    let now = options.standing();
    standings.retain(|standing| *standing != now);
    let policy = RunPolicy::restored(runner.policy().clone(), snapshot.policies, standings)
        .ok_or(ResumeError::TooManyPolicies)?;
    // Under another policy than before, the run has only the tools that it could see at the snapshot.
    let visible = (!policy.is_current()).then_some(snapshot.visible);
    let tools = common_tools(options.tools.clone(), visible);
    let run = Run::start(Arc::clone(&runner.shared), policy, RunOptions { tools, ..options });
    run.spending().restore(snapshot.spent);
    run.loop_guard().restore(snapshot.loop_guard);
    run.evidence().merge(&snapshot.evidence);
    run.remembered().restore(snapshot.state);
    for waiting in snapshot.waiting {
        let put = put_back(&run, waiting).await;
        put.map_err(|error| ResumeError::Store(run.store_unread(error)))?;
    }
    Ok(run)
}

/// Returns the options with only the roles and the tools that the snapshot has too. Refuses options of another
/// principal, tenant or caller.
fn narrowed(snapshot: &RunSnapshot, mut options: RunOptions) -> Result<RunOptions, ResumeError> {
    let theirs = |call: &PendingCall| {
        (&call.run_id, &call.principal, &call.tenant) == (&snapshot.run_id, &snapshot.principal, &snapshot.tenant)
    };
    if snapshot.principal != options.principal
        || snapshot.tenant != options.tenant
        || !snapshot.waiting.iter().all(|waiting| theirs(&waiting.call))
    {
        return Err(ResumeError::OtherPrincipal);
    }
    if snapshot.caller != options.caller {
        return Err(ResumeError::OtherCaller);
    }
    options.roles.retain(|role| snapshot.standings.iter().all(|standing| standing.roles.contains(role)));
    options.tools = common_tools(options.tools, snapshot.tools.clone());
    Ok(options.run_id(snapshot.run_id.clone()))
}

/// Writes a waiting call of a snapshot to the store, unless the store has it as waiting, begun or ended.
///
/// The checks follow the order of these states, so that a call that changes its state meanwhile is found.
pub(in crate::runner) async fn put_back(run: &Run, waiting: Waiting) -> Result<(), StoreError> {
    let (store, id) = (&run.shared().store, waiting.call.call_id.clone());
    let kept = store.waiting(run.waiting_key(&id)).await?;
    if kept.is_some_and(|kept| with_approvals_of(&kept, &waiting).is_none())
        || LedgerClient(run).unfinished(&id, None).await?.is_some()
    {
        return Ok(());
    }
    let ended = store.calls(&RecordFilter::call(run.id(), id)).await?;
    if ended.iter().any(|record| run.owns(record.principal.as_deref(), record.tenant.as_deref())) {
        return Ok(());
    }
    match LedgerClient(run).keep(waiting, None, None, None, None).await {
        Ok(_) | Err(StoreError::Duplicate) => Ok(()),
        Err(error) => Err(error),
    }
}
