//! [`RunQueue`]: the conversations that workers share, as every other process sees them.

use std::fmt;
use std::sync::Arc;

use crate::agent::{Input, SavedConversation};
use crate::call::{Decider, DecisionError, Question, Suspension, ToolExecResult};
use crate::runner::{ResumeError, RunOptions, ToolRunner};
use crate::store::posts::{self, Posted};
use crate::store::transaction::returning;
use crate::store::waiting::{self, Approval, Counted, Plan, Uncounted};
use crate::store::{DecisionKind, Document, Key, Store, StoreError, StoredRun, Transaction, runs};

/// The conversations that workers share: any process can enqueue them, post to them, and read them.
///
/// The application authenticates the authors of posts. A run of another tenant is reported as not found.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::agent::{Agent, Input, RunQueue, ScriptedModel, ScriptedTurn, Worker};
/// use tool_runtime::store::MemoryStore;
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
        let run = conversation.run();
        let id: Arc<str> = run.run_id().into();
        let mut stored = StoredRun::new(Arc::clone(&id), conversation.to_text()?);
        (stored.principal, stored.tenant) = (run.principal().cloned(), run.tenant().cloned());
        let change = move |transaction: &mut Transaction| {
            stored.due = Some(transaction.now());
            runs::enqueue(transaction, &stored)
        };
        Ok(transact(self.store(), vec![Key::run(id)], change).await?)
    }

    /// Posts a message, decisions or answers to a run of a tenant. Posts are taken in order, each once, when the run
    /// has nothing else to do; a post that does not match then is dropped. At most 256 posts wait in a run.
    ///
    /// An approval of a call that needs those of other deciders too is noted at once; only the last one is posted.
    ///
    /// Every decision is checked first, and again when it is taken: the call asks the question that it answers, and the
    /// decider may decide. If one does not match, the refusal is recorded and nothing is posted. For a call that no
    /// longer waits, the first 16 refusals are recorded, and none for a call without a record in the store. A decider of
    /// another tenant is reported to operators, also if the run belongs to another tenant than the post.
    ///
    /// # Errors
    /// The tenant has no such run; a call does not ask the question, or an earlier post answers it already
    /// ([`ResumeError::NotWaiting`]); a decider may not decide; an approval that is not the last one came with a message
    /// of the user, which would abandon its call; an engine for durable execution drives the run
    /// ([`ResumeError::Engine`]); the run has too many posts ([`StoreError::Full`]); or the store failed. Nothing is posted
    /// or noted then.
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
        let stored = self.stored(run_id).await?.ok_or(ResumeError::UnknownRun)?;
        if stored.tenant.as_deref() != tenant {
            self.refuse_foreign(&stored, input).await;
            return Err(ResumeError::UnknownRun);
        }
        if stored.is_driven() {
            // No worker would ever take the post.
            return Err(ResumeError::Engine);
        }
        let (mut questions, mut several) = (Vec::new(), Vec::new());
        for (question, kind, decider) in input.brought() {
            let call = match self.called(&stored, question.call_id()).await {
                Err(ResumeError::NotWaiting(id)) => {
                    self.note_late(&stored, question, (kind, decider)).await?;
                    return Err(ResumeError::NotWaiting(id));
                }
                called => called?,
            };
            let run = self.run_of(&call, Some(&stored))?;
            run.admits(question, (kind, decider), input.has_message()).await?;
            questions.push(question.clone());
            if call.approvals().1 > 1 {
                several.push((run, question));
            }
        }
        for id in input.answered() {
            let call = self.called(&stored, id).await?;
            if call.suspension != Suspension::Client {
                return Err(ResumeError::NotWaiting(id.clone()));
            }
            questions.push(call.question());
        }
        let twice = questions.iter().enumerate().find(|(at, question)| questions[..*at].contains(question));
        if let Some((_, question)) = twice {
            return Err(ResumeError::NotWaiting(question.call_id().clone()));
        }
        let (mut runs, mut approvals) = (Vec::new(), Vec::new());
        for (run, question) in several {
            let Some((_, decision, decider)) = input.decisions.iter().find(|(decided, ..)| decided == question) else {
                continue;
            };
            match Box::pin(run.read_here(question, decision, decider)).await? {
                Ok(None) => {}
                Ok(Some(approval)) => {
                    runs.push(run);
                    approvals.push(approval);
                }
                Err(_) => return Err(ResumeError::NotAllowed(DecisionError::Question)),
            }
        }
        let key = Key::post(Arc::clone(&stored.run_id), uuid::Uuid::new_v4().simple().to_string());
        let mut keys = vec![Key::run(Arc::clone(&stored.run_id)), key.clone()];
        keys.extend(approvals.iter().map(|approval| Key::of_waiting(&approval.call)));
        let message = Message { key, tenant: stored.tenant.clone(), input: input.clone(), questions, approvals };
        let approvals = message.approvals.clone();
        match transact(self.store(), keys, move |transaction: &mut Transaction| message.post(transaction)).await? {
            Posting::Kept(counted) => {
                let mut noted = Vec::new();
                for ((run, approval), counted) in runs.iter().zip(approvals).zip(counted) {
                    noted.extend(Box::pin(run.told(approval, counted)).await?.err());
                }
                Ok(noted)
            }
            Posting::NotCounted(at, why) => {
                if let (Some(run), Some(approval)) = (runs.get(at), approvals.get(at)) {
                    let _refused = Box::pin(run.told(approval.clone(), Counted::Refused(why))).await?;
                }
                Err(ResumeError::NotAllowed(DecisionError::Question))
            }
            Posting::NoRun => Err(ResumeError::UnknownRun),
            Posting::Answered(question) => {
                if let Some((question, kind, decider)) = input.brought().find(|(brought, ..)| **brought == question) {
                    self.note_late(&stored, question, (kind, decider)).await?;
                }
                Err(ResumeError::NotWaiting(question.call_id().clone()))
            }
        }
    }

    /// Records a decision on a call of a run that does not wait for it.
    async fn note_late(
        &self,
        stored: &StoredRun,
        question: &Question,
        by: (DecisionKind, Option<&Decider>),
    ) -> Result<(), StoreError> {
        let party = (stored.principal.as_deref(), stored.tenant.as_deref());
        self.runner.note_late(&stored.run_id, Some(party), question, by).await
    }

    /// Refuses decisions that were sent to a run in another tenant: each on the question of a waiting call is recorded
    /// and reported to operators. Questions that no call asks are guesses, and leave nothing.
    async fn refuse_foreign(&self, stored: &StoredRun, input: &Input) {
        for (question, kind, decider) in input.brought() {
            let Some(decider) = decider.filter(|decider| decider.tenant_id() != stored.tenant.as_deref()) else {
                continue;
            };
            let Ok(call) = self.called(stored, question.call_id()).await else { continue };
            if call.question() == *question
                && let Ok(run) = self.run_of(&call, Some(stored))
            {
                let _refused = run.admits(question, (kind, Some(decider)), false).await;
            }
        }
    }

    /// Refuses decisions of a client to whom the run does not exist, as [`post`](Self::post) does. Those of the run's
    /// tenant are ignored.
    #[cfg(feature = "mcp-server")]
    pub(crate) async fn refuse_of_stranger(&self, run_id: &str, input: &Input) {
        if let Ok(Some(stored)) = self.stored(run_id).await {
            self.refuse_foreign(&stored, input).await;
        }
    }

    pub(super) async fn stored(&self, run_id: &str) -> Result<Option<StoredRun>, StoreError> {
        stored(self.store(), run_id).await
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

/// A message for a run, with the approvals in it of calls that need several.
struct Message {
    key: Key,
    tenant: Option<Arc<str>>,
    input: Input,
    questions: Vec<Question>,
    approvals: Vec<Approval>,
}

/// The result of posting a message.
enum Posting {
    /// It is posted, and these approvals are counted.
    Kept(Vec<Counted>),
    /// The approval at this place does not count. Nothing is posted, and no other approval is noted.
    NotCounted(usize, Uncounted),
    /// The tenant has no such run.
    NoRun,
    /// A message in the run's post already answers this question.
    Answered(Question),
}

impl Message {
    /// Notes the approvals that do not suffice, and posts the rest: all of it, or nothing.
    fn post(&self, transaction: &mut Transaction) -> Result<Posting, StoreError> {
        let mut plans = Vec::new();
        for (at, approval) in self.approvals.iter().enumerate() {
            match waiting::plan(transaction, approval) {
                Ok(plan) => plans.push(plan),
                Err(why) => {
                    waiting::refuse(transaction, approval, why)?;
                    return Ok(Posting::NotCounted(at, why));
                }
            }
        }
        let (mut rest, mut answers) = (self.input.clone(), self.questions.clone());
        for question in plans.iter().filter(|plan| !plan.is_last()).map(Plan::question) {
            rest.without(&question);
            answers.retain(|other| *other != question);
        }
        if !rest.is_empty() || self.input.is_empty() {
            let body: Arc<str> = serde_json::to_string(&rest).map_err(corrupt)?.into();
            match posts::post(transaction, &self.key, self.tenant.as_deref(), &body, &answers)? {
                Posted::Kept => {}
                Posted::NoRun => return Ok(Posting::NoRun),
                Posted::Answered(question) => return Ok(Posting::Answered(question)),
            }
        }
        let counted = plans.into_iter().map(|plan| plan.write(transaction));
        counted.collect::<Result<_, _>>().map(Posting::Kept)
    }
}

async fn stored(store: &dyn Store, run_id: &str) -> Result<Option<StoredRun>, StoreError> {
    Ok(match store.read(&[Key::run(run_id)]).await?.pop().flatten().map(|stored| stored.document) {
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
        let run = stored(store, run_id).await?.filter(is_theirs).ok_or(ResumeError::UnknownRun)?;
        let conversation = Self::from_text(&run.document)?;
        Ok((run, conversation))
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

/// Runs a transaction, and returns the closure's value.
pub(super) async fn transact<T: Send + 'static>(
    store: &dyn Store,
    keys: Vec<Key>,
    change: impl FnMut(&mut Transaction) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (change, returned) = returning(change);
    store.update(keys, change).await?;
    returned()
}
