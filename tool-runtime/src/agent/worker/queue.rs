//! [`RunQueue`]: the conversations that workers share, as every other process sees them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::agent::{Incoming, SavedConversation};
#[cfg(any(feature = "cli", feature = "mcp-server"))]
use crate::store::PendingCall;
use crate::store::posts::{self, Posted};
use crate::store::transaction::returning;
use crate::store::{Document, Key, Store, StoreError, StoredRun, Transaction, runs};

/// The conversations that workers share: any process puts them in, posts to them, and reads them.
///
/// The application authenticates who posts; a run of another tenant is as unknown as one that does not exist.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::agent::{Agent, Incoming, RunQueue, ScriptedModel, ScriptedTurn, Worker};
/// use tool_runtime::store::MemoryStore;
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = Arc::new(MemoryStore::new());
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all());
/// let runner = runner.store(Arc::clone(&store)).build()?;
/// let agent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello.")]));
///
/// // A process that takes requests.
/// let queue = RunQueue::new(store);
/// let mut conversation = agent.converse(runner.run(RunOptions::new().run_id("run-1").tenant("acme")));
/// conversation.accept(Incoming::from("Hi!")).await?;
/// queue.enqueue(&conversation.save().await?).await?;
///
/// // A worker, usually in another process.
/// let worker = Worker::new(agent, runner);
/// let answered = async {
///     while &*queue.find("run-1", Some("acme")).await?.0.state != "answered" {
///         tokio::time::sleep(std::time::Duration::from_millis(10)).await;
///     }
///     Ok::<(), tool_runtime::agent::QueueError>(())
/// };
/// worker.run(async { answered.await.unwrap_or_default() }).await?;
/// assert!(queue.find("run-1", None).await.is_err());
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone)]
pub struct RunQueue {
    pub(super) store: Arc<dyn Store>,
}

impl RunQueue {
    /// Creates a queue over the store that the workers' runners have.
    #[must_use]
    pub fn new(store: impl Store + 'static) -> Self {
        Self { store: Arc::new(store) }
    }

    /// Puts a conversation in. A worker continues it as soon as one is free.
    ///
    /// # Errors
    /// A run with this id is there already ([`StoreError::Duplicate`]), or the store failed.
    pub async fn enqueue(&self, conversation: &SavedConversation) -> Result<(), QueueError> {
        let run = conversation.run();
        let id: Arc<str> = run.run_id().into();
        let mut stored = StoredRun::new(Arc::clone(&id), conversation.to_text()?);
        (stored.principal, stored.tenant) = (run.principal().cloned(), run.tenant().cloned());
        let change = move |transaction: &mut Transaction| {
            stored.due = Some(transaction.now());
            runs::enqueue(transaction, &stored)
        };
        Ok(transact(&*self.store, vec![Key::run(id)], change).await?)
    }

    /// Posts a message, decisions or answers to a run of a tenant. They are taken in order, each once, when the run has
    /// nothing else to do; what does not fit then is dropped. At most 256 posts wait in a run.
    ///
    /// # Errors
    /// The tenant has no such run, its post is full ([`StoreError::Full`]), or the store failed.
    pub async fn post(&self, run_id: &str, tenant: Option<&str>, incoming: &Incoming) -> Result<(), QueueError> {
        let body: Arc<str> = serde_json::to_string(incoming).map_err(corrupt)?.into();
        match self.post_under(run_id.into(), tenant.map(Into::into), body, Vec::new()).await? {
            (_, Posted::Kept) => Ok(()),
            _ => Err(QueueError::Unknown),
        }
    }

    /// Posts what finishes calls of a run that wait, unless something that finishes one of them is in the run's post
    /// already: then returns that call.
    #[cfg(any(feature = "cli", feature = "mcp-server"))]
    pub(crate) async fn post_for<'c>(
        &self,
        calls: &'c [PendingCall],
        incoming: &Incoming,
    ) -> Result<Result<Key, &'c PendingCall>, QueueError> {
        let body = serde_json::to_string(incoming).map_err(corrupt)?.into();
        let Some(first) = calls.first() else { return Err(QueueError::Unknown) };
        let finishes = calls.iter().map(posts::finishes).collect::<Result<Vec<_>, StoreError>>()?;
        let posted = self.post_under(Arc::clone(&first.run_id), first.tenant.clone(), body, finishes).await?;
        match posted {
            (key, Posted::Kept) => Ok(Ok(key)),
            (_, Posted::NoRun) => Err(QueueError::Unknown),
            (_, Posted::Decided(place)) => Ok(Err(calls.get(place).unwrap_or(first))),
        }
    }

    async fn post_under(
        &self,
        run_id: Arc<str>,
        tenant: Option<Arc<str>>,
        body: Arc<str>,
        finishes: Vec<Arc<str>>,
    ) -> Result<(Key, Posted), QueueError> {
        let key = Key::post(Arc::clone(&run_id), uuid::Uuid::new_v4().simple().to_string());
        let (keys, named) = (vec![Key::run(run_id), key.clone()], key.clone());
        let change =
            move |transaction: &mut Transaction| posts::post(transaction, &named, tenant.as_deref(), &body, &finishes);
        Ok((key, transact(&*self.store, keys, change).await?))
    }

    /// Returns a run of a tenant, and its conversation as it was after its last step. A run that an MCP server has is no
    /// conversation.
    ///
    /// # Errors
    /// The tenant has no such run, or the store failed.
    pub async fn find(&self, run_id: &str, tenant: Option<&str>) -> Result<(StoredRun, SavedConversation), QueueError> {
        match self.store.read(&[Key::run(run_id)]).await?.pop().flatten() {
            Some(Document::Run(run)) if run.tenant.as_deref() == tenant && !run.is_served() => {
                let conversation = SavedConversation::from_text(&run.document)?;
                Ok((*run, conversation))
            }
            _ => Err(QueueError::Unknown),
        }
    }
}

impl fmt::Debug for RunQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunQueue").finish_non_exhaustive()
    }
}

impl SavedConversation {
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

/// Changes documents, and returns what the change returned.
pub(super) async fn transact<T: Send + 'static>(
    store: &dyn Store,
    keys: Vec<Key>,
    change: impl FnMut(&mut Transaction) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (change, returned) = returning(change);
    store.update(keys, change).await?;
    returned()
}

/// Why a run could not be put in, posted to, or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueueError {
    /// The tenant has no such run.
    Unknown,
    /// The store failed.
    Store(StoreError),
}

impl QueueError {
    /// Returns a stable word: `not_found` or the store's own.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unknown => "not_found",
            Self::Store(error) => error.code(),
        }
    }
}

impl From<StoreError> for QueueError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such run"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for QueueError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unknown => None,
            Self::Store(error) => Some(error),
        }
    }
}
