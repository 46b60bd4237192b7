//! [`LeasedRun`]: a run that an application continues itself, in place of a worker, under a lease.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::RunQueue;
use super::lease::{Lease, RUNNING, RenewalTask};
use crate::agent::{Conversation, Input, SavedConversation, Step, TurnOutcome};
use crate::runner::{LeaseTime, ResumeError, RunOptions, ToolRunner};
use crate::store::runs::{self, AfterUpdate, Due, RunUpdate, Taking};
use crate::store::transact;
use crate::store::{DocumentKind, Key, RunLease, StoreError, StoredRun, Transaction};

/// A run that this process continues in place of a worker, under a lease that is renewed until the value is dropped.
/// The duration of the lease is that of the runner ([`RunnerBuilder::lease`](crate::runner::RunnerBuilder::lease)).
///
/// [`RunQueue::take`] takes a run from the store, and [`RunQueue::begin`] adds a new one.
/// [`accept_posts`](Self::accept_posts) applies the posts (messages, decisions and answers) of other processes,
/// [`receive`](Self::receive) takes a request and saves the conversation after each step, and
/// [`release`](Self::release) gives the run back. If this process dies or is suspended, another process can take the
/// run once the lease has ended, and continues after the last saved step. Later writes of this process fail with
/// [`StoreError::Fenced`].
///
/// A service takes the run of a chat for each request. It also needs a [`Worker`](crate::agent::Worker), which
/// continues runs after a posted decision, and runs whose process died during a request.
///
/// ```
/// use tool_runtime::agent::{Agent, Conversation, Input, LeasedRun, RunQueue, TurnOutcome};
/// use tool_runtime::call::Decider;
/// use tool_runtime::runner::{ApprovalDecision, ResumeError};
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
///
/// /// Deletes a note.
/// #[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
/// fn delete(
///     /// The number of the note.
///     note: u32,
/// ) -> Result<String, ToolError> {
///     Ok(format!("deleted note {note}"))
/// }
///
/// fn ada() -> RunOptions {
///     RunOptions::new().principal("ada").tenant("acme").run_id("chat-1")
/// }
///
/// /// Takes the chat over from any other process, or begins it.
/// async fn open(agent: &Agent, runner: &ToolRunner) -> Result<(LeasedRun, Conversation), ResumeError> {
///     let queue = RunQueue::new(runner);
///     let (mut leased, saved) = match queue.take("chat-1", Some("acme"), Some("ada"), "web").await {
///         Err(ResumeError::UnknownRun) => {
///             let saved = agent.converse(runner.run(ada())).save().await?;
///             (queue.begin(&saved, "web").await?, saved)
///         }
///         taken => taken?,
///     };
///     let mut conversation = agent.restore(runner, leased.options(ada()), saved).await?;
///     leased.accept_posts(&mut conversation).await?;
///     Ok((leased, conversation))
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let policy = "allowed_tools = ['notes__delete']\nrequire_approval_for_tools = ['notes__delete']";
/// let catalog = ToolCatalog::builder().tool::<delete>().build()?;
/// let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy)?).approvals(true).build()?;
/// let script = [ScriptedTurn::call("c1", "notes__delete", r#"{"note":7}"#), ScriptedTurn::text("Done.")];
/// let agent = Agent::new(ScriptedModel::new(script));
///
/// // The first request. While it has the chat, another request gets `run_held`.
/// let (mut leased, mut conversation) = open(&agent, &runner).await?;
/// assert_eq!(open(&agent, &runner).await.err().map(|error| error.code()), Some("run_held"));
/// let ended = leased.receive(&mut conversation, Input::from("Delete note 7.")).await?;
/// let TurnOutcome::Waiting { calls } = ended else { panic!("it waits") };
/// leased.release(calls[0].expires_at).await?;
///
/// // A person decides, in any process over the same store.
/// let grace = Decider::new("grace").tenant("acme");
/// RunQueue::new(&runner).decide("chat-1", &calls[0].question, ApprovalDecision::Approve, &grace).await?;
///
/// // The next request, perhaps in another process, takes the decision. A worker would take it without a request.
/// let (mut leased, mut conversation) = open(&agent, &runner).await?;
/// let ended = leased.receive(&mut conversation, Input::new()).await?;
/// assert!(matches!(ended, TurnOutcome::Answered { text } if text == "Done."));
/// leased.release(None).await?;
/// # Ok(()) })
/// # }
/// ```
pub struct LeasedRun {
    lease: Lease,
    /// The duration of the lease without renewal.
    lease_duration: Duration,
    /// The principal and the tenant of the run.
    party: (Option<Arc<str>>, Option<Arc<str>>),
    /// The value of [`StoredRun::news`] at the last check that found no post.
    news: u64,
    /// Whether the request had not ended at the last save.
    is_running: AtomicBool,
    _kept: RenewalTask,
}

impl RunQueue {
    /// Takes a run that no other process has, whether it is due or not. Returns the run, and its conversation after the
    /// last saved step. `owner` is a name for operators.
    ///
    /// # Errors
    /// The principal has no such run in the tenant; another process has the run ([`ResumeError::Held`]); the run lacks
    /// records since the store was restored from a backup ([`ResumeError::HeldBack`]); or the store failed.
    pub async fn take(
        &self,
        run_id: &str,
        tenant: Option<&str>,
        principal: Option<&str>,
        owner: &str,
    ) -> Result<(LeasedRun, SavedConversation), ResumeError> {
        let (run_id, owner): (Arc<str>, _) = (run_id.into(), owner_of(owner));
        let (principal, tenant) = (principal.map(str::to_owned), tenant.map(str::to_owned));
        let keys = vec![Key::run(Arc::clone(&run_id))];
        let lease_duration = self.runner.lease_duration();
        let change = move |transaction: &mut Transaction| {
            runs::take(transaction, &run_id, (principal.as_deref(), tenant.as_deref()), &owner, lease_duration)
        };
        match transact(&**self.runner.store(), keys, change).await? {
            Taking::Unknown => Err(ResumeError::UnknownRun),
            Taking::Held => Err(ResumeError::Held),
            Taking::HeldBack => Err(ResumeError::HeldBack),
            Taking::Taken(lease, run) => {
                let leased = LeasedRun::new(&self.runner, lease, &run);
                match SavedConversation::from_text(&run.document) {
                    Ok(saved) => Ok((leased, saved)),
                    Err(error) => {
                        // Another process, perhaps of a newer version, might be able to read the conversation, so
                        // release the run at once.
                        leased.lease.put(None, Due::Now, run.news, run.failures).await?;
                        Err(error.into())
                    }
                }
            }
        }
    }

    /// Adds a new conversation that this process continues itself. `owner` is a name for operators.
    ///
    /// # Errors
    /// A run with this id exists already ([`StoreError::Duplicate`]), or the store failed.
    pub async fn begin(&self, conversation: &SavedConversation, owner: &str) -> Result<LeasedRun, ResumeError> {
        let stored = Arc::new(conversation.as_stored_run()?);
        let (keys, owner) = (vec![Key::run(Arc::clone(&stored.run_id))], owner_of(owner));
        let new = Arc::clone(&stored);
        let lease_duration = self.runner.lease_duration();
        let change = move |transaction: &mut Transaction| runs::enqueue_held(transaction, &new, &owner, lease_duration);
        let lease = transact(&**self.runner.store(), keys, change).await?;
        Ok(LeasedRun::new(&self.runner, lease, &stored))
    }
}

fn owner_of(name: &str) -> Arc<str> {
    format!("{name}-{}", uuid::Uuid::new_v4().simple()).into()
}

impl LeasedRun {
    fn new(runner: &ToolRunner, lease: RunLease, run: &StoredRun) -> Self {
        let (store, lease_duration) = (Arc::clone(runner.store()), runner.lease_duration());
        let renewed = Arc::new(LeaseTime::now());
        let lease = Lease { store, run: lease, slots: None, patience: Duration::ZERO, renewed };
        // The token that signals a lost lease is not used, because the next write then fails.
        let kept = lease.keep(lease_duration, CancellationToken::new());
        let party = (run.principal.clone(), run.tenant.clone());
        let is_running = AtomicBool::new(&*run.state == RUNNING);
        Self { lease, lease_duration, party, news: run.news, is_running, _kept: kept }
    }

    /// Adds the lease to the options for [`Agent::restore`](crate::agent::Agent::restore), so that each write of the
    /// run checks it.
    pub fn options(&self, options: RunOptions) -> RunOptions {
        options.held(self.lease.run.clone())
    }

    /// Returns the oldest post to the run, with the key for [`save`](Self::save), which removes it; `None` if there is
    /// none.
    ///
    /// # Errors
    /// The lease has ended or another process has the run ([`StoreError::Fenced`]), or the store failed.
    pub async fn post(&mut self) -> Result<Option<(Key, Input)>, StoreError> {
        self.lease.check().await?;
        // Read the number before the posts, so that a post between the two reads makes the run due.
        let news = self.lease.news().await?;
        let post = self.lease.post().await?;
        if post.is_none() {
            self.news = news;
        }
        Ok(post)
    }

    /// Applies the posts to the run, oldest first, and saves the conversation after each. Returns whether any post was
    /// applied.
    ///
    /// A post that the conversation refuses, such as a decision on a replaced question, is dropped; each of its
    /// decisions has a record. Approved calls run in this process. To let the model continue, call
    /// [`receive`](Self::receive), with an empty [`Input`] if the user has sent nothing.
    ///
    /// # Errors
    /// Another process has the run ([`StoreError::Fenced`]), or the store failed. The posts that were not applied are
    /// still there.
    pub async fn accept_posts(&mut self, conversation: &mut Conversation) -> Result<bool, ResumeError> {
        let mut took = false;
        while let Some((key, input)) = self.post().await? {
            match self.lease.attend(self.lease_duration, Box::pin(conversation.accept(input))).await? {
                Err(ResumeError::Store(error)) => return Err(error.into()),
                Err(refused) => {
                    let run = &*self.lease.run.run_id;
                    tracing::warn!(run, error = refused.code(), "a posted message does not fit; it is dropped");
                }
                Ok(()) => took = true,
            }
            self.save(&conversation.save().await?, RUNNING, Some(key)).await?;
        }
        Ok(took)
    }

    /// Takes the content of one request, as [`Conversation::receive`] does, and saves the conversation before the first
    /// step and after each step. Emits one `done` event.
    ///
    /// This method takes no decision that another process posts meanwhile. For such a decision,
    /// [`release`](Self::release) makes the run due.
    ///
    /// # Errors
    /// The errors of [`Conversation::accept`]. Also: another process has the run ([`StoreError::Fenced`]), or the store
    /// failed. Another process then continues after the last step that was saved.
    pub async fn receive(&mut self, conversation: &mut Conversation, input: Input) -> Result<TurnOutcome, ResumeError> {
        let ended = match self.lease.attend(self.lease_duration, Box::pin(conversation.accept(input))).await {
            Ok(Ok(())) => self.take_steps(conversation).await,
            // `accept` has emitted the `error` event.
            Ok(Err(refused)) => {
                conversation.end_failed(refused.code());
                return Err(refused);
            }
            Err(error) => Err(error),
        };
        ended.map_err(|error| {
            let error = ResumeError::from(error);
            conversation.refuse(&error);
            conversation.end_failed(error.code());
            error
        })
    }

    async fn take_steps(&self, conversation: &mut Conversation) -> Result<TurnOutcome, StoreError> {
        let mut ran = false;
        loop {
            self.save(&conversation.save().await?, RUNNING, None).await?;
            let ended = match self.lease.attend(self.lease_duration, conversation.step()).await? {
                Step::Asked => continue,
                Step::Ran => {
                    ran = true;
                    continue;
                }
                // Another process may have decided a call since the conversation was saved.
                Step::Waits(_)
                    if !ran && self.lease.attend(self.lease_duration, conversation.turns.was_decided()).await?? =>
                {
                    continue;
                }
                Step::Waits(_) => TurnOutcome::Waiting { calls: conversation.waiting().cloned().collect() },
                Step::Ended(ended) => ended,
            };
            self.save(&conversation.save().await?, ended.code(), None).await?;
            return Ok(ended);
        }
    }

    /// Saves the conversation, and in the same write removes the post `taken`, which the conversation applied or
    /// refused. `state` is the code of the last step, or `running` while the request has not ended.
    ///
    /// # Errors
    /// Another process has the run, or the conversation or the post belongs to another run ([`StoreError::Fenced`]); or
    /// the store failed.
    pub async fn save(
        &self,
        conversation: &SavedConversation,
        state: &str,
        taken: Option<Key>,
    ) -> Result<(), StoreError> {
        let (run, saved) = (&self.lease.run.run_id, conversation.run());
        let is_own = |key: &Key| key.kind() == DocumentKind::Post && key.scope() == run;
        let party = (self.party.0.as_ref(), self.party.1.as_ref());
        let is_same = *saved.run_id() == **run && (saved.principal(), saved.tenant()) == party;
        if !is_same || !taken.as_ref().is_none_or(is_own) {
            return Err(StoreError::Fenced);
        }
        let (document, named) = (Some(conversation.to_text()?), Some(state.into()));
        let version = conversation.version();
        self.lease
            .write(RunUpdate { document, state: named, version, taken, failures: 0, next: AfterUpdate::Keep })
            .await?;
        self.is_running.store(state == RUNNING, Ordering::Relaxed);
        Ok(())
    }

    /// Releases the run in the state of its last save. `expires` is the time at which its next waiting call expires. A
    /// worker takes the run at that time, or as soon as a message is posted. A worker takes it at once if a post was
    /// not applied, or if the request has not ended (the state `running`). Without a release, the run is free once its
    /// lease has ended.
    ///
    /// # Errors
    /// Another process has the run ([`StoreError::Fenced`]), or the store failed.
    pub async fn release(&self, expires: Option<Timestamp>) -> Result<(), StoreError> {
        let due = match expires {
            _ if self.is_running.load(Ordering::Relaxed) => Due::Now,
            Some(expires) => Due::At(expires),
            None => Due::Never,
        };
        self.lease.put(None, due, self.news, 0).await
    }
}

impl fmt::Debug for LeasedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedRun").field("run_id", &self.lease.run.run_id).finish_non_exhaustive()
    }
}
