//! [`RunQueue`]: the conversations that workers share, as every other process sees them.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::post::{self, Message};
use crate::agent::{Input, SavedConversation};
use crate::call::{Question, ToolExecResult};
use crate::runner::waiting::{late, posting};
use crate::runner::{ApprovalDecision, By, ResumeError, RunOptions, ToolRunner};
use crate::store::{Document, Key, QueueDepth, Store, StoreError, StoredRun, Transaction, runs, transact};

/// The conversations that workers share: any process can enqueue them, post to them, and read them.
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
    /// Creates a queue over a runner that has the same store as the workers. The runner's policy, and every policy that
    /// a run is held to, decide who may approve.
    #[must_use]
    pub fn new(runner: &ToolRunner) -> Self {
        Self { runner: runner.clone(), options: RunOptions::new() }
    }

    /// Sets connections and a sink for calls that [`decide`](Self::decide) carries out here. Principal, tenant and
    /// permissions come from the call, not from these options.
    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    pub(super) fn store(&self) -> &dyn Store {
        &**self.runner.store()
    }

    /// Enqueues a conversation. A worker continues it as soon as one is free.
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

    /// Counts the runs of all tenants that wait for workers. A worker emits the same numbers each minute as metrics, if
    /// a subscriber records them.
    ///
    /// # Errors
    /// The store failed.
    pub async fn depth(&self) -> Result<QueueDepth, StoreError> {
        self.store().depth(self.runner.store_time().await?, None).await
    }

    /// Counts the runs of a tenant as [`depth`](Self::depth) does, to show a tenant its own queue. The cost grows with
    /// the number of its runs, not with that of others.
    ///
    /// # Errors
    /// The store failed.
    pub async fn depth_of(&self, tenant: &str) -> Result<QueueDepth, StoreError> {
        let slots = Key::slots(Some(tenant), None);
        self.store().depth(self.runner.store_time().await?, Some(slots.scope())).await
    }

    /// Posts a message, decisions or answers to a run of a tenant. Posts are taken in order, each once, when the run
    /// has nothing else to do; a post that does not match then is dropped. At most 256 posts wait in a run.
    ///
    /// An approval of a call that needs those of other deciders too is noted at once; only the last one is posted.
    ///
    /// Every decision is checked first, and again when it is taken: the call asks the question that it answers, the
    /// decider may decide, and edited arguments or a value fit the tool and the policy. A process without the tool, or
    /// with another policy than the call has, does not check the arguments and the value. If one decision is refused,
    /// the refusal is recorded and nothing is posted. For each call, at most 16 refusals of a decider and 256 of all
    /// deciders of other tenants are recorded, and none for a call without a record in the store. A decider of another
    /// tenant is reported to operators, also if the run belongs to another tenant than the post.
    ///
    /// # Errors
    /// The tenant has no such run; a call does not ask the question, or an earlier post answers it already
    /// ([`ResumeError::NotWaiting`]); a decider may not decide; a decision does not fit its call
    /// ([`ResumeError::Invalid`], [`ResumeError::Mismatch`]); a partial approval came with a message of the user,
    /// which would abandon its call; an engine for durable execution drives the run ([`ResumeError::Engine`]); the run
    /// has too many posts ([`StoreError::Full`]); or the store failed. Nothing is posted or noted then.
    pub async fn post(&self, run_id: &str, tenant: Option<&str>, input: &Input) -> Result<(), ResumeError> {
        self.post_noting(run_id, tenant, input).await.map(drop)
    }

    /// As [`post`](Self::post). Returns the results of the approvals that were noted.
    pub(super) async fn post_noting(
        &self,
        run_id: &str,
        tenant: Option<&str>,
        input: &Input,
    ) -> Result<Vec<ToolExecResult>, ResumeError> {
        // Only a decision is checked under the policies of the run, which its conversation has.
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

    /// Records a decision on a call of a run that does not wait for it.
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

    /// Refuses decisions that were sent to a run in another tenant: the first on the question of each waiting call is
    /// recorded and reported to operators, up to `most`. Questions that no call asks are guesses, and leave nothing.
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

    /// Refuses the first decision on a waiting call of a client to whom the run does not exist, as
    /// [`post`](Self::post) does. Those of the run's tenant are ignored.
    #[cfg(feature = "mcp-server")]
    pub(crate) async fn refuse_of_stranger(&self, run_id: &str, input: &Input) {
        if let Ok(Some(stored)) = self.stored(run_id).await {
            self.refuse_foreign(&stored, input, 1).await;
        }
    }

    pub(super) async fn stored(&self, run_id: &str) -> Result<Option<StoredRun>, StoreError> {
        stored(self.store(), Key::run(run_id)).await
    }

    /// Returns a run of a tenant, and its conversation after its last step. A run of an MCP server is not a
    /// conversation.
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
    /// Reads a run of a tenant from a store, and its conversation after its last step, for programs without a runner. A
    /// run of an MCP server is not a conversation.
    ///
    /// # Errors
    /// The tenant has no such run, or the store failed.
    pub async fn find(store: &dyn Store, run_id: &str, tenant: Option<&str>) -> Result<(StoredRun, Self), ResumeError> {
        let is_theirs = |run: &StoredRun| run.tenant.as_deref() == tenant && !run.is_served() && !run.is_driven();
        let run = stored(store, Key::run(run_id)).await?.filter(is_theirs).ok_or(ResumeError::UnknownRun)?;
        let conversation = Self::from_text(&run.document)?;
        Ok((run, conversation))
    }

    /// Returns the run of the conversation, as it is stored first.
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
