//! [`RunQueue`]: adds conversations to a store for workers, posts to them, and reads them.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::post::{self, Message};
use crate::agent::{Input, SavedConversation};
use crate::call::{Question, ToolExecResult};
use crate::runner::waiting::{late, posting};
use crate::runner::{ApprovalDecision, By, ResumeError, RunOptions, ToolRunner};
use crate::store::{Document, Key, QueueDepth, Store, StoreError, StoredRun, Transaction, runs, transact};

/// The conversations of a store that workers continue. Any process with a runner on the store can enqueue
/// conversations, post to them, and read them.
///
/// The application authenticates the authors of posts. A run of another tenant is reported as not found.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::agent::{Agent, Input, RunQueue, Worker};
/// use tool_runtime::store::MemoryStore;
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = Arc::new(MemoryStore::new());
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all());
/// let runner = runner.store(store).build()?;
/// let agent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello.")]));
///
/// // A process that takes requests.
/// let queue = RunQueue::new(&runner);
/// let mut conversation = agent.converse(runner.run(RunOptions::new().run_id("run-1").tenant("acme")));
/// conversation.accept(Input::from("Hi!")).await?;
/// queue.enqueue(&conversation.save().await?).await?;
///
/// // A worker, usually in another process.
/// let worker = Worker::new(agent, runner);
/// let answered = async {
///     while &*queue.find("run-1", Some("acme")).await?.0.state != "answered" {
///         tokio::time::sleep(std::time::Duration::from_millis(10)).await;
///     }
///     Ok::<(), tool_runtime::runner::ResumeError>(())
/// };
/// worker.run(async { answered.await.unwrap_or_default() }).await?;
/// assert!(queue.find("run-1", None).await.is_err());
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone)]
pub struct RunQueue {
    pub(super) runner: ToolRunner,
    pub(super) options: RunOptions,
}

impl RunQueue {
    /// Creates a queue on the store of this runner, which has to be the store of the workers. A decider needs the
    /// permission of the runner's policy and of every policy under which the run has worked.
    #[must_use]
    pub fn new(runner: &ToolRunner) -> Self {
        Self { runner: runner.clone(), options: RunOptions::new() }
    }

    /// Sets the connections and the event sink of calls that [`decide`](Self::decide) runs in this process. Principal,
    /// tenant and permissions come from the call, not from these options.
    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    pub(super) fn store(&self) -> &dyn Store {
        &**self.runner.store()
    }

    /// Enqueues a conversation. The next free worker continues it.
    ///
    /// # Errors
    /// A run with this id exists already ([`StoreError::Duplicate`]), or the store failed.
    pub async fn enqueue(&self, conversation: &SavedConversation) -> Result<(), ResumeError> {
        let mut stored = conversation.as_stored_run()?;
        let key = Key::run(Arc::clone(&stored.run_id));
        let change = move |transaction: &mut Transaction| {
            stored.due = Some(transaction.now());
            runs::enqueue(transaction, &stored)
        };
        Ok(transact(self.store(), vec![key], change).await?)
    }

    /// Counts the queued runs of all tenants. Workers emit the same numbers as metrics every minute.
    ///
    /// # Errors
    /// The store failed.
    pub async fn depth(&self) -> Result<QueueDepth, StoreError> {
        self.store().depth(self.runner.store_time().await?, None).await
    }

    /// Counts the queued runs of one tenant, for example to show them to the tenant. The cost grows only with the
    /// number of this tenant's runs.
    ///
    /// # Errors
    /// The store failed.
    pub async fn depth_of(&self, tenant: &str) -> Result<QueueDepth, StoreError> {
        let slots = Key::slots(Some(tenant), None);
        self.store().depth(self.runner.store_time().await?, Some(slots.scope())).await
    }

    /// Posts a message, decisions or answers to a run of a tenant. When the run has nothing else to do, it takes its
    /// posts in order, each once. It drops a post that no longer matches. At most 256 posts can wait in a run.
    ///
    /// If a call needs several approvals, each is stored with the call at once, and only the last one is posted.
    ///
    /// Each decision is checked here, and again when the run takes it: the call must ask the question that the decision
    /// answers, the decider must be allowed to decide, and edited arguments or a value must fit the tool and the
    /// policy. A process without the tool, or with another policy than the call has, does not check arguments and
    /// values. If one decision is refused, the refusal is recorded and nothing is posted. For each call, at most 16
    /// refusals of one decider and 256 of all deciders from other tenants are recorded, and none for a call without a
    /// record in the store. A decider from another tenant is reported to operators, even if `tenant` is not the tenant
    /// of the run.
    ///
    /// # Errors
    /// The tenant has no such run; a call does not ask the question, or an earlier post answers it already
    /// ([`ResumeError::NotWaiting`]); a decider may not decide; a decision does not fit its call
    /// ([`ResumeError::Invalid`], [`ResumeError::Mismatch`]); the input has a message of the user and an approval of a
    /// call that needs more approvals, which the message would abandon; an engine for durable execution drives the run
    /// ([`ResumeError::Engine`]); the run has too many posts ([`StoreError::Full`]); or the store failed. In each case
    /// nothing is posted, and no approval is stored.
    pub async fn post(&self, run_id: &str, tenant: Option<&str>, input: &Input) -> Result<(), ResumeError> {
        self.post_noting(run_id, tenant, input).await.map(drop)
    }

    /// Posts as [`post`](Self::post) does. Returns the results of approvals whose calls need more approvals.
    pub(super) async fn post_noting(
        &self,
        run_id: &str,
        tenant: Option<&str>,
        input: &Input,
    ) -> Result<Vec<ToolExecResult>, ResumeError> {
        // Only a decision needs the whole document: it is checked under the run's policies, which are in the
        // conversation.
        let decides = input.brought().next().is_some();
        let key = if decides { Key::run(run_id) } else { Key::run_head(run_id) };
        let stored = stored(self.store(), key).await?.ok_or(ResumeError::UnknownRun)?;
        if stored.tenant.as_deref() != tenant {
            self.refuse_foreign(&stored, input, usize::MAX).await;
            return Err(ResumeError::UnknownRun);
        }
        let posted = async {
            let message = Message::check(self, &stored, input).await?;
            post::all(self, vec![message]).await
        };
        posted.await.map(|mut noted| noted.pop().unwrap_or_default()).map_err(|(_, error)| error)
    }

    /// Records a decision on a call that does not wait for one, for example because it has ended.
    pub(super) async fn note_late(
        &self,
        stored: &StoredRun,
        question: &Question,
        (decision, decider): By<'_>,
    ) -> Result<(), StoreError> {
        let party = (stored.principal.as_deref(), stored.tenant.as_deref());
        let by = (ApprovalDecision::kind_of(decision), decider);
        let asked = (question.call_id(), Some(question));
        late::append(&self.runner, &stored.run_id, Some(party), asked, by).await.map(drop)
    }

    /// Refuses decisions of deciders from another tenant than the run's. For each waiting call, the first such decision
    /// is recorded and reported to operators, at most `most` in all. Decisions on questions that no call asks are
    /// guesses, and are not recorded.
    async fn refuse_foreign(&self, stored: &StoredRun, input: &Input, mut most: usize) {
        let mut refused = HashSet::new();
        for (question, by) in input.brought() {
            if by.1.is_none_or(|decider| decider.tenant_id() == stored.tenant.as_deref()) {
                continue;
            }
            if !refused.insert(question) {
                continue;
            }
            let Ok(call) = self.called(stored, question.call_id()).await else { continue };
            if call.question() == *question
                && let Ok(run) = self.run_of(&call, Some(stored))
            {
                let _refused = posting::admits(&run, question, by, false).await;
                most -= 1;
                if most == 0 {
                    return;
                }
            }
        }
    }

    /// Refuses the first decision on a waiting call by a decider of another tenant, as [`post`](Self::post) does.
    /// Decisions from the run's own tenant are ignored.
    #[cfg(feature = "mcp-server")]
    pub(crate) async fn refuse_of_stranger(&self, run_id: &str, input: &Input) {
        if let Ok(Some(stored)) = self.stored(run_id).await {
            self.refuse_foreign(&stored, input, 1).await;
        }
    }

    pub(super) async fn stored(&self, run_id: &str) -> Result<Option<StoredRun>, StoreError> {
        stored(self.store(), Key::run(run_id)).await
    }

    /// Returns a run of a tenant, and its conversation after its last step. Runs that an MCP server or an engine for
    /// durable execution continues are not found.
    ///
    /// # Errors
    /// The tenant has no such run, or the store failed.
    pub async fn find(
        &self,
        run_id: &str,
        tenant: Option<&str>,
    ) -> Result<(StoredRun, SavedConversation), ResumeError> {
        SavedConversation::find(self.store(), run_id, tenant).await
    }
}

async fn stored(store: &dyn Store, key: Key) -> Result<Option<StoredRun>, StoreError> {
    Ok(match store.read(&[key]).await?.pop().flatten().map(|stored| stored.document) {
        Some(Document::Run(run)) => Some(*run),
        _ => None,
    })
}

impl fmt::Debug for RunQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunQueue").finish_non_exhaustive()
    }
}

impl SavedConversation {
    /// Reads a run of a tenant, and its conversation after its last step, without a runner. Runs that an MCP server or
    /// an engine for durable execution continues are not found.
    ///
    /// # Errors
    /// The tenant has no such run, or the store failed.
    pub async fn find(store: &dyn Store, run_id: &str, tenant: Option<&str>) -> Result<(StoredRun, Self), ResumeError> {
        let is_theirs = |run: &StoredRun| run.tenant.as_deref() == tenant && !run.is_served() && !run.is_driven();
        let run = stored(store, Key::run(run_id)).await?.filter(is_theirs).ok_or(ResumeError::UnknownRun)?;
        let conversation = Self::from_text(&run.document)?;
        Ok((run, conversation))
    }

    /// Returns the document under which the conversation's run is first stored.
    pub(super) fn as_stored_run(&self) -> Result<StoredRun, StoreError> {
        let run = self.run();
        let mut stored = StoredRun::new(run.run_id(), self.to_text()?);
        (stored.principal, stored.tenant) = (run.principal().cloned(), run.tenant().cloned());
        stored.version = self.version();
        Ok(stored)
    }

    pub(super) fn to_text(&self) -> Result<Arc<str>, StoreError> {
        serde_json::to_string(self).map(Into::into).map_err(corrupt)
    }

    pub(super) fn from_text(text: &str) -> Result<Self, StoreError> {
        serde_json::from_str(text).map_err(corrupt)
    }
}

pub(super) fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(error.into())
}
