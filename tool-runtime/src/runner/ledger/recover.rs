//! Continues, looks up or closes calls that began and whose process is gone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::call::{
    CallId, Cause, DecisionError, JsonText, Outcome, RecordedArguments, ToolCall, ToolExecResult, ToolInvocationRecord,
};
use crate::capability::Requirement;
use crate::contain::discard;
use crate::hydrate::Hydrated;
use crate::json::{self, Limits, Tree};
use crate::policy::RunPolicy;
use crate::redact::Projected;
use crate::runner::gate::ending::{Ending, Stop};
use crate::runner::gate::exec;
use crate::runner::gate::open::{OpenCall, Origin};
use crate::runner::gate::stages::{self, Reader};
use crate::runner::ledger::client::LedgerClient;
use crate::runner::ledger::look_up;
use crate::runner::ledger::unfinished::Unfinished;
use crate::runner::run::snapshot::RunSnapshot;
use crate::runner::waiting::comparison;
use crate::runner::{Run, RunOptions, ToolRunner};
use crate::store::pages::Search;
use crate::store::{
    AuditRecord, Document, DocumentKind, Key, LedgerEntry, PendingCall, Query, RecordFilter, Store as _, StoreError,
    StoredDocument, ledger, transact,
};
use crate::tool::ToolEffect;

/// The maximum time of a call in a sweep. A tool without a timeout would otherwise delay all later calls.
const MOST_TIME: Duration = Duration::from_secs(600);

/// The state of a call that a process may have begun before: `None` if the store does not contain it, `Some(None)` if
/// it runs in another process, otherwise its result.
pub(crate) type Known = Option<Option<ToolExecResult>>;

/// As [`recover`](Run::recover), but distinguishes a call that runs in another process from one that never began.
/// Boxed, because this function runs the gate and the gate calls it.
pub(crate) fn go_on<'r>(
    run: &'r Run,
    call_id: &'r CallId,
) -> Pin<Box<dyn Future<Output = Result<Known, StoreError>> + Send + 'r>> {
    go_on_with(run, call_id, |_| true)
}

/// Continues a call whose process is gone, or returns its state. Among the calls with this id, selects one whose record
/// `wanted` accepts.
///
/// If two processes had the run, one id can belong to two calls. A call that is open in the ledger is continued even if
/// another call with this id has ended.
pub(crate) fn go_on_with<'r>(
    run: &'r Run,
    call_id: &'r CallId,
    wanted: impl Fn(&ToolInvocationRecord) -> bool + Send + Sync + 'r,
) -> Pin<Box<dyn Future<Output = Result<Known, StoreError>> + Send + 'r>> {
    Box::pin(async move {
        let failed = |error| run.store_unread(error);
        let is_it = |record: &ToolInvocationRecord| record.tool_call_id == *call_id && wanted(record);
        let open = LedgerClient(run).all_unfinished(is_it).await.map_err(failed)?;
        match open.into_iter().next() {
            Some(call) if !LedgerClient(run).is_abandoned(&call).await.map_err(failed)? => {
                // The call runs, or it ended between the two reads.
                LedgerClient(run).look_up(call_id, None, &wanted).await.map_err(failed)
            }
            Some(call) => take_over(run, call).await.map(|result| Some(Some(result))).map_err(failed),
            None => LedgerClient(run).look_up(call_id, None, &wanted).await.map_err(failed),
        }
    })
}

/// As [`go_on`], for the call under this key of the ledger.
pub(in crate::runner) fn go_on_begun<'r>(
    run: &'r Run,
    call_id: &'r CallId,
    key: &'r Key,
) -> Pin<Box<dyn Future<Output = Result<Known, StoreError>> + Send + 'r>> {
    Box::pin(async move {
        let failed = |error| run.store_unread(error);
        let open = LedgerClient(run).all_unfinished(|record| record.tool_call_id == *call_id).await.map_err(failed)?;
        match open.into_iter().find(|call| call.key == *key) {
            Some(call) if LedgerClient(run).is_abandoned(&call).await.map_err(failed)? => {
                take_over(run, call).await.map(|result| Some(Some(result))).map_err(failed)
            }
            Some(_) => Ok(Some(None)),
            // The call ended between the two reads.
            None => LedgerClient(run).ended_under(key).await.map(|ended| ended.map(Some)).map_err(failed),
        }
    })
}

/// As [`go_on`], for a call that began or ended under another definition of its tool. `is_it` accepts the record of
/// such a call. Its result is returned only if `is_same` accepts the record. `None` also for the open call under `key`,
/// which the gate finds by itself.
pub(in crate::runner) async fn begun_as_another(
    run: &Run,
    call_id: &CallId,
    (is_it, is_same): (impl Fn(&ToolInvocationRecord) -> bool, impl Fn(&ToolInvocationRecord) -> bool),
    key: &Key,
) -> Result<Known, StoreError> {
    if !has_earlier(run).await? {
        return Ok(None);
    }
    let open = LedgerClient(run).all_unfinished(|record| record.tool_call_id == *call_id && is_it(record)).await?;
    if open.iter().any(|call| call.key == *key) {
        return Ok(None);
    }
    if let Some(call) = open.first() {
        let is_same = is_same(&call.entry.record);
        let known = go_on_begun(run, call_id, &call.key).await?;
        return Ok(known.map(|ended| ended.filter(|_| is_same)));
    }
    let ended = LedgerClient(run).own_record(call_id, is_it).await?;
    Ok(ended.map(|record| is_same(&record).then(|| look_up::adopted(run, record))))
}

/// Whether the store has calls of the run. The answer is cached, unless it is `false` and another process can still add
/// the first call, which a lease would prevent.
async fn has_earlier(run: &Run) -> Result<bool, StoreError> {
    if let Some(has_earlier) = run.remembered().has_earlier() {
        return Ok(has_earlier);
    }
    let first = RecordFilter { limit: Some(1), ..RecordFilter::run(run.id()) };
    let has_earlier = !run.shared().store.records(&first).await?.is_empty()
        || !LedgerClient(run).all_unfinished(|_| true).await?.is_empty();
    if has_earlier || run.lease().is_some() {
        run.remembered().set_earlier(has_earlier);
    }
    Ok(has_earlier)
}

/// Takes over a call from a process that is gone. If this process cannot continue the call, it closes the call as
/// `outcome_unknown` or leaves it open for another process or attempt.
async fn take_over(run: &Run, call: Unfinished) -> Result<ToolExecResult, StoreError> {
    let (id, record) = (call.entry.record.tool_call_id.clone(), &call.entry.record);
    let outcome = Outcome::OutcomeUnknown;
    // The model has not yet read a person's intervention from before the call began.
    let unknown = || {
        let unknown = ToolExecResult::unfinished(id.clone(), outcome, true, outcome.safe_message());
        unknown.with_intervention(record.intervention.clone())
    };
    let read = call.entry.waited.as_deref().and_then(|waited| read_again(run, waited));
    let Some(ReadAgain { hydrated, only_reconciles }) = read else {
        LedgerClient(run).leave_abandoned(&call).await?;
        return Ok(unknown());
    };
    let mut open = OpenCall::taken_over(run.clone(), (**record).clone());
    open.origin = Origin::TakenOver { only_reconciles };
    let ended = run_approved(&mut open, hydrated).await;
    if let Err(stop) = &ended
        && open.attempt.is_none()
    {
        LedgerClient(run).give_up(&call, &open.draft, stop).await?;
        open.known = Some(Box::new(unknown()));
    }
    Ok(open.finish(ended).await)
}

/// Lets the tool reconcile a call that has its final record. `Err` if the call had no effect; `None` if its outcome
/// stays unknown, or if its tool cannot reconcile it in this process. Nothing is written.
pub(in crate::runner) async fn reconcile_recorded(
    run: &Run,
    record: &ToolInvocationRecord,
    waited: Option<&PendingCall>,
) -> Option<Result<Projected, ()>> {
    let ReadAgain { hydrated, .. } = read_again(run, waited?)?;
    if !hydrated.frozen.entry.behaviour.may_reconcile() {
        return None;
    }
    let mut open = OpenCall::recorded(run.clone(), record.clone());
    match Box::pin(exec::reconcile(&mut open, hydrated)).await {
        Ok(stages::Left::Output(projected)) => Some(Ok(projected)),
        Ok(stages::Left::Waits(_)) => None,
        Err(stop) => {
            let is_prevented = stop.cause == Some(Cause::Prevented);
            discard(stop);
            is_prevented.then_some(Err(()))
        }
    }
}

/// Hydrates the arguments with which the call began. `None` if this process must not continue the call.
///
/// The policy and the rights of the run can have changed since the call began. The tool may still reconcile the call,
/// because that has no effect. The tool may run again only if the present policy allows a new call with these
/// arguments; an approval under the earlier policy does not count. If the definition of the tool has changed, the call
/// is not continued, because its idempotency key could differ.
fn read_again(run: &Run, waited: &PendingCall) -> Option<ReadAgain> {
    let entry = run.shared().catalog.entry(waited.tool.as_str())?;
    let repeats = entry.spec.idempotent || run.effect_of(waited.tool.as_str()) == Some(ToolEffect::ReadOnly);
    let is_recoverable = repeats || entry.behaviour.may_reconcile();
    let mut is_same = true;
    for difference in comparison::differences(run, waited) {
        match difference {
            // The clock of this process may be behind the clock of the process that began the call.
            DecisionError::Clock => {}
            DecisionError::Policy | DecisionError::Roles | DecisionError::Attributes | DecisionError::Tools
                if is_recoverable =>
            {
                is_same = false;
            }
            _ => return None,
        }
    }
    run.remembered().label(waited.all_labels());
    let call = ToolCall::text(waited.call_id.clone(), waited.tool.as_str(), waited.arguments.as_str());
    let hydrated = stages::hydrate_waiting(run, waited, call, Reader::Other).map_err(|refused| discard(refused.stop));
    let hydrated = hydrated.ok()?;
    let asks = stages::asks(run, &hydrated);
    if asks && !run.shared().approvals {
        // This process would deny the call, so it leaves the call to a process with approvals.
        return None;
    }
    let only_reconciles = repeats && asks && !is_same;
    (!only_reconciles || entry.behaviour.may_reconcile()).then_some(ReadAgain { hydrated, only_reconciles })
}

/// A call that another process began and that this process can continue.
struct ReadAgain {
    hydrated: Hydrated,
    /// Whether the tool may only reconcile the call, because the present policy does not let it run again.
    only_reconciles: bool,
}

/// The state in the store of a call that another process may have begun.
pub(crate) enum Earlier {
    /// The call ended, so it need not pass the gate.
    Ended(ToolExecResult),
    /// The store has records or a ledger entry of this id. The gate has to hydrate the call and continue it if it
    /// began.
    Known,
    Nothing,
}

/// Reads the state of a call that another process may have begun.
pub(crate) async fn earlier(run: &Run, call_id: &CallId) -> Result<Earlier, StoreError> {
    let failed = |error| run.store_unread(error);
    // The write of a call's record also closes its ledger entry, so the records are read after the ledger.
    let open = LedgerClient(run).all_unfinished(|record| record.tool_call_id == *call_id).await.map_err(failed)?;
    let filter = RecordFilter::call(run.id(), call_id.clone());
    let records = run.shared().store.records(&filter).await.map_err(failed)?;
    let (mut ran, mut ended, mut decided) = (0, false, false);
    for sealed in &records {
        match &sealed.record {
            AuditRecord::Call(record) if run.owns(record.principal.as_deref(), record.tenant.as_deref()) => {
                ended = true;
                ran += usize::from(record.executed);
            }
            AuditRecord::Decision(record)
                if record.refused.is_none() && !record.is_partial() && !record.decision.is_about_later_calls() =>
            {
                decided |= run.owns(record.principal.as_deref(), record.tenant.as_deref());
            }
            AuditRecord::Call(_) | AuditRecord::Decision(_) | AuditRecord::Retention(_) | AuditRecord::Erased(_) => {}
        }
    }
    if open.len() + ran > 1 {
        // Two processes used the id for two calls. The gate can distinguish them by their arguments.
        return Ok(Earlier::Known);
    }
    if decided && let Some(Some(result)) = go_on(run, call_id).await? {
        return Ok(Earlier::Ended(result));
    }
    let recorded = if ended || decided { LedgerClient(run).recorded(call_id).await? } else { None };
    Ok(match recorded {
        Some(result) => Earlier::Ended(result),
        None if open.is_empty() && records.is_empty() => Earlier::Nothing,
        None => Earlier::Known,
    })
}

/// Continues or closes calls of this run whose process is gone. Skips calls that `waits` accepts, because the
/// conversation still waits for them. The model has already read that the outcome of the other calls is unknown.
pub(crate) async fn close_others(run: &Run, waits: impl Fn(&CallId) -> bool) -> Result<(), StoreError> {
    for call in LedgerClient(run).all_unfinished(|record| !waits(&record.tool_call_id)).await? {
        if LedgerClient(run).is_abandoned(&call).await? {
            take_over(run, call).await?;
        }
    }
    Ok(())
}

/// Runs the stages for a call that a person approved or that is taken over.
pub(in crate::runner) async fn run_approved(open: &mut OpenCall, hydrated: Hydrated) -> Result<Ending, Stop> {
    stages::admit_hydrated(open, &hydrated)?;
    let hydrated = open.draft.read(Ok(hydrated))?;
    let frozen = stages::freeze(open, hydrated);
    let permit = stages::decide_approved(open, frozen)?;
    exec::from_permit(open, permit).await
}

/// Takes over the calls whose lease has ended, that no process continues and that `wanted` accepts, if this runner has
/// their tools. The tools reconcile or repeat them. Takes over no further call after `stop` fires.
pub(in crate::runner) async fn take_over_left(
    runner: &ToolRunner,
    stop: &CancellationToken,
    wanted: fn(&LedgerEntry) -> bool,
) -> Result<(), StoreError> {
    let store = &runner.shared.store;
    let mut search = Search::of(Query { due: Some(store.now().await?), ..Query::new(DocumentKind::Call) });
    while let Some(page) = search.next(store).await? {
        for StoredDocument { key, document, .. } in page {
            if stop.is_cancelled() {
                return search.end();
            }
            let Document::Call(entry) = document else { continue };
            let Some(waited) = entry.waited.as_ref().filter(|_| wanted(&entry)) else { continue };
            if !can_take_over(runner, waited.tool.as_str()) {
                continue;
            }
            // If one call cannot be continued, the next calls are continued nevertheless.
            search.note(take_over_if_left(runner, &entry, waited, &key).await);
        }
    }
    search.end()
}

/// Whether this process can take over the calls of a tool for any run: it has the tool, and neither the tool nor a tool
/// of its graph borrows a connection. The options of a run name its connections, and a sweep does not have them.
fn can_take_over(runner: &ToolRunner, tool: &str) -> bool {
    let catalog = &runner.shared.catalog;
    catalog.entry(tool).is_some_and(|entry| {
        let inner = entry.graph.iter().flat_map(|graph| &graph.tools).filter_map(|tool| catalog.entry(tool));
        !inner.chain([entry]).any(|entry| entry.requirements.iter().any(Requirement::is_connection))
    })
}

/// Takes over a call, unless another process continues it. A tool that exceeds [`MOST_TIME`] is stopped.
async fn take_over_if_left(
    runner: &ToolRunner,
    entry: &LedgerEntry,
    waited: &PendingCall,
    key: &Key,
) -> Result<(), StoreError> {
    let store = &runner.shared.store;
    let is_orphan = ledger::is_orphan(&**runner.store(), key, entry).await?;
    let (keys, left) = (ledger::keys_of(key, entry), key.clone());
    if transact(store, keys, move |transaction| ledger::is_left(transaction, &left, is_orphan)).await? {
        let run = runner.run(options_of(waited, &RunOptions::new()));
        // After a timeout the future is dropped, and the call ends as `outcome_unknown`.
        if let Ok(taken_over) = timeout(MOST_TIME, go_on_begun(&run, &waited.call_id, key)).await {
            taken_over?;
        }
    }
    Ok(())
}

/// Starts the run of a call, with the policies of its snapshot if there is one. `None` if there are too many policies.
pub(in crate::runner) fn start(runner: &ToolRunner, kept: Option<RunSnapshot>, options: RunOptions) -> Option<Run> {
    let policy = match kept {
        Some(kept) => RunPolicy::restored(runner.policy().clone(), kept.policies, Vec::new())?,
        None => RunPolicy::new(runner.policy().clone()),
    };
    Some(Run::start(runner.shared.clone(), policy, options))
}

/// Returns the options of the run that made the call, with the connections and the sink of `base`.
pub(in crate::runner) fn options_of(waited: &PendingCall, base: &RunOptions) -> RunOptions {
    RunOptions {
        run_id: Some(Arc::clone(&waited.run_id)),
        principal: waited.principal.clone(),
        tenant: waited.tenant.clone(),
        roles: waited.roles.clone(),
        attributes: waited.attributes.clone(),
        tools: waited.tools.clone(),
        session: waited.session_id.clone(),
        conversation: waited.conversation_id.clone(),
        caller: waited.caller.clone(),
        user_text: Vec::new(),
        parent: None,
        lease: None,
        ..base.clone()
    }
}

/// Whether a record shows these arguments. Compares values, because a store may reorder the members of an object and a
/// model may write equal numbers differently.
pub(crate) fn shows(recorded: &RecordedArguments, shown: &JsonText) -> bool {
    let RecordedArguments::Masked(recorded) = recorded else { return false };
    let read = |text: &'_ JsonText| json::parse(text.get(), &Limits::UNBOUNDED).map(Tree::into_owned);
    recorded == shown || read(recorded).ok().zip(read(shown).ok()).is_some_and(|(one, other)| one == other)
}
