//! [`Run::recover`]: a call that began, and whose process is gone.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::call::{
    CallId, JsonText, Mismatch, Outcome, RecordedArguments, ToolCall, ToolExecResult, ToolInvocationRecord,
};
use crate::contain::discard;
use crate::hydrate::Hydrated;
use crate::json::{self, Limits, Tree};
use crate::runner::ending::{Ending, Stop};
use crate::runner::open::OpenCall;
use crate::runner::unfinished::Unfinished;
use crate::runner::{Run, RunOptions, ToolRunner, exec, settle, stages, telemetry, waiting};
use crate::store::{Document, Key, Listed, PendingCall, Query, Space, StoreError, Transaction, ledger, sweep};

/// The known state of a call that was handed to a gate before. `None`: nothing. `Some(None)`: it runs in another
/// process.
pub(crate) type Known = Option<Option<ToolExecResult>>;

impl Run {
    /// Continues a call whose process is gone: the tool reconciles it, or runs again if it
    /// is `idempotent`, and any other ends as `outcome_unknown`. A call that has its record returns the result of the
    /// record.
    ///
    /// Use it where [`resume`](Self::resume) finds that the call does not wait any more. A call that never waited can be
    /// handed to [`exec`](Self::exec) again instead, which does the same. A conversation, a worker and an engine do both
    /// by themselves. `None` if the call has no record, and either did not begin or still runs in another process, whose
    /// lease has not ended.
    ///
    /// ```
    /// use tool_runtime::call::CallId;
    /// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
    /// let run = runner.run(RunOptions::new().run_id("run-1"));
    /// assert!(run.recover(&CallId::new("call-1")).await?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store failed.
    pub async fn recover(&self, call_id: &CallId) -> Result<Option<ToolExecResult>, StoreError> {
        Ok(self.go_on(call_id).await?.flatten())
    }

    /// As [`recover`](Self::recover), and tells a call that runs elsewhere from one that never began. Boxed, because the
    /// gate is one of its callers.
    pub(crate) fn go_on<'r>(
        &'r self,
        call_id: &'r CallId,
    ) -> Pin<Box<dyn Future<Output = Result<Known, StoreError>> + Send + 'r>> {
        self.go_on_with(call_id, |_| true)
    }

    /// The one function for every way of going on with a call that waited: a restored conversation, a worker, an engine,
    /// a second decision, and the gate itself. Of the calls under the id, it is one whose record is wanted.
    ///
    /// An id can stand for two calls of a run that two processes had. One that is open in the ledger has no record of its
    /// own, so it is not ended by the record of the other.
    pub(crate) fn go_on_with<'r>(
        &'r self,
        call_id: &'r CallId,
        wanted: impl Fn(&ToolInvocationRecord) -> bool + Send + Sync + 'r,
    ) -> Pin<Box<dyn Future<Output = Result<Known, StoreError>> + Send + 'r>> {
        Box::pin(async move {
            let failed = |error| telemetry::store_unread(self, error);
            let is_it = |record: &ToolInvocationRecord| record.tool_call_id == *call_id && wanted(record);
            let open = self.all_unfinished(is_it).await.map_err(failed)?;
            match open.into_iter().next() {
                Some(call) if !self.is_abandoned(&call).await.map_err(failed)? => {
                    // It runs, or it ended between the two.
                    self.look_up(call_id, None, &wanted).await.map_err(failed)
                }
                Some(call) => self.take_over(call).await.map(|result| Some(Some(result))).map_err(failed),
                None => self.look_up(call_id, None, &wanted).await.map_err(failed),
            }
        })
    }

    /// As [`go_on`](Self::go_on), for the call of this key of the ledger.
    pub(super) fn go_on_begun<'r>(
        &'r self,
        call_id: &'r CallId,
        key: &'r Key,
    ) -> Pin<Box<dyn Future<Output = Result<Known, StoreError>> + Send + 'r>> {
        Box::pin(async move {
            let failed = |error| telemetry::store_unread(self, error);
            let open = self.all_unfinished(|record| record.tool_call_id == *call_id).await.map_err(failed)?;
            match open.into_iter().find(|call| call.key == *key) {
                Some(call) if self.is_abandoned(&call).await.map_err(failed)? => {
                    self.take_over(call).await.map(|result| Some(Some(result))).map_err(failed)
                }
                Some(_) => Ok(Some(None)),
                // It ended between the two.
                None => self.ended_under(key).await.map_err(failed),
            }
        })
    }

    /// The result of a call that the ledger knows to have ended.
    async fn ended_under(&self, key: &Key) -> Result<Known, StoreError> {
        let (key, read) = (key.clone(), key.clone());
        let found = move |transaction: &mut Transaction| {
            let entry = ledger::begun(transaction, &key).filter(|entry| entry.is_finished());
            Ok(entry.map(|entry| entry.record.clone()))
        };
        let mut keys = self.keys();
        keys.push(read);
        let ended = self.shared().store.transact(keys, found).await?;
        Ok(ended.map(|record| Some(settle::result(*record))))
    }

    /// Takes over a call from a process that is gone. A call that the gate does not let run now is closed.
    pub(super) async fn take_over(&self, call: Unfinished) -> Result<ToolExecResult, StoreError> {
        let (id, record) = (call.entry.record.tool_call_id.clone(), &call.entry.record);
        let outcome = Outcome::OutcomeUnknown;
        // The model has not read yet how a person changed the call before it began.
        let unknown = || {
            let unknown = ToolExecResult::unfinished(id.clone(), outcome, true, outcome.safe_message());
            unknown.with_intervention(record.intervention.clone())
        };
        let hydrated = call.entry.waited.as_deref().and_then(|waited| self.read_again(waited));
        let Some(hydrated) = hydrated else {
            self.close_abandoned(&call).await?;
            return Ok(unknown());
        };
        let mut open = OpenCall::taken_over(self.clone(), (**record).clone());
        let ended = run_approved(&mut open, hydrated).await;
        if ended.is_err() && open.attempt.is_none() {
            self.close_abandoned(&call).await?;
            open.known = Some(Box::new(unknown()));
        }
        Ok(open.finish(ended).await)
    }

    /// The arguments with which the call began, if they would be let run now.
    fn read_again(&self, waited: &PendingCall) -> Option<Hydrated> {
        let call = ToolCall::text(waited.call_id.clone(), waited.tool.as_str(), waited.arguments.as_str());
        // This process's clock may be behind that of the process which began the call.
        if waiting::differs(self, waited).is_some_and(|mismatch| mismatch != Mismatch::Clock) {
            return None;
        }
        self.remembered().label(&waited.labels);
        stages::hydrate_begun(self, waited, call).map_err(|refused| discard(refused.stop)).ok()
    }
}

/// Runs the stages of an approved call.
pub(super) async fn run_approved(open: &mut OpenCall, hydrated: Hydrated) -> Result<Ending, Stop> {
    stages::admit_hydrated(open, &hydrated)?;
    let hydrated = open.draft.read(Ok(hydrated))?;
    let frozen = stages::freeze(open, hydrated);
    let permit = stages::decide_approved(open, frozen)?;
    exec::from_permit(open, permit).await
}

impl ToolRunner {
    /// As [`store::sweep`](crate::store::sweep) of the runner's store. Calls whose process is gone and whose run no process
    /// continues are reconciled, repeated or closed before, if this runner has their tools: under the policy that let them
    /// begin or wait, for the principal of their run. Returns how many documents it removed.
    ///
    /// ```
    /// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
    /// assert_eq!(runner.sweep().await?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store failed. Calls and documents that were closed or removed before stay so.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        self.sweep_until(&CancellationToken::new()).await
    }

    /// As [`sweep`](Self::sweep), and takes no other call over once it is to stop.
    pub(crate) async fn sweep_until(&self, stop: &CancellationToken) -> Result<u64, StoreError> {
        let store = &self.shared.store;
        let mut query = Query { due: Some(store.now().await?), ..Query::new(Space::Call) };
        loop {
            let page = store.list(&query).await?;
            let next = page.last().filter(|_| page.len() >= query.limit).map(|listed| listed.position);
            for Listed { key, document, .. } in page {
                if stop.is_cancelled() {
                    return Ok(0);
                }
                let Document::Call(entry) = document else { continue };
                let Some(waited) = &entry.waited else { continue };
                if self.shared.catalog.entry(waited.tool.as_str()).is_none() {
                    continue;
                }
                let keys = vec![Key::run(Arc::clone(key.scope())), key.clone()];
                let left = key.clone();
                if store.transact(keys, move |transaction| ledger::is_left(transaction, &left)).await? {
                    self.run(options_of(waited)).go_on_begun(&waited.call_id, &key).await?;
                }
            }
            let Some(next) = next else { break };
            query.after = next;
        }
        sweep(&**self.store()).await
    }
}

/// The options of the run that made the call.
fn options_of(waited: &PendingCall) -> RunOptions {
    RunOptions {
        principal: waited.principal.clone(),
        tenant: waited.tenant.clone(),
        roles: waited.roles.clone(),
        attributes: waited.attributes.clone(),
        tools: waited.tools.clone(),
        session: waited.session_id.clone(),
        conversation: waited.conversation_id.clone(),
        caller: waited.caller.clone(),
        ..RunOptions::new()
    }
    .run_id(Arc::clone(&waited.run_id))
}

/// Whether a record shows these arguments. A store may have written the members of an object in another order, and a model
/// the numbers in another way.
pub(crate) fn shows(recorded: &RecordedArguments, shown: &JsonText) -> bool {
    let RecordedArguments::Masked(recorded) = recorded else { return false };
    let read = |text: &'_ JsonText| json::parse(text.get(), &Limits::UNBOUNDED).map(Tree::into_owned);
    recorded == shown || read(recorded).ok().zip(read(shown).ok()).is_some_and(|(one, other)| one == other)
}
