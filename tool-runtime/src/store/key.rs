//! [`Key`]: the place of a document, and the lock that its changes take.

use std::cmp::Ordering;
use std::hash;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::call::CallId;
use crate::json;
use crate::policy::{Holder, Window};
use crate::store::{HoldScope, PendingCall};
use crate::tool::Hash;

/// The kind of a document.
///
/// [`Query`] has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DocumentKind {
    /// A call in the ledger.
    Call,
    /// A call that is suspended for a person or a client.
    Waiting,
    /// A mark that a suspended call was decided.
    Decided,
    /// A run that workers share, or that an MCP server or an engine continues, or the mark of a run that was purged or
    /// erased.
    Run,
    /// A decision that applies to later calls.
    Grant,
    /// A message that was posted to a shared run.
    Post,
    /// The amounts that a principal or a tenant has used in a window.
    Account,
    /// An anchor over the chains of all runs.
    Anchor,
    /// The key for digests of arguments.
    DigestKey,
    /// The calls of one effect whose outcome is unknown, and the call that holds the effect key.
    Effect,
    /// The legal holds on a run, a principal or a tenant.
    Hold,
    /// A notice about a call, for a webhook.
    Notice,
    /// The leases of workers on the runs of a tenant, counted for a limit.
    Slots,
}

impl DocumentKind {
    /// Returns the stable code of the kind, which stores write.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Waiting => "waiting",
            Self::Decided => "decided",
            Self::Run => "run",
            Self::Grant => "grant",
            Self::Post => "post",
            Self::Account => "account",
            Self::Anchor => "anchor",
            Self::DigestKey => "digest_key",
            Self::Effect => "effect",
            Self::Hold => "hold",
            Self::Notice => "notice",
            Self::Slots => "slots",
        }
    }

    /// Whether documents of this kind can have a long text
    /// ([`StoredDocument::split`](crate::store::StoredDocument::split)).
    #[must_use]
    pub const fn has_long_text(self) -> bool {
        matches!(self, Self::Run)
    }
}

/// The place of a document in a store.
///
/// Changes of documents with the same [`lock`](Key::lock) run one after the other, across all processes.
///
/// ```
/// use tool_runtime::store::{DocumentKind, Key};
///
/// let (run, post) = (Key::run("run-1"), Key::post("run-1", "message-1"));
/// assert_eq!((run.kind(), &**run.scope()), (DocumentKind::Run, "run-1"));
/// // A change of one waits for a change of the other.
/// assert_eq!(run.lock(), post.lock());
/// // A store keeps the parts in columns.
/// assert_eq!(Key::from_parts(post.kind(), post.scope().clone(), post.id().clone()), post);
/// ```
#[derive(Debug, Clone)]
pub struct Key {
    kind: DocumentKind,
    scope: Arc<str>,
    id: Arc<str>,
    /// Whether the reader does not need the conversation of a run. Comparisons of keys ignore this field.
    is_head: bool,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl hash::Hash for Key {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

impl Key {
    const fn place(&self) -> (DocumentKind, &Arc<str>, &Arc<str>) {
        (self.kind, &self.scope, &self.id)
    }

    /// Returns the key of a call in the ledger of a run, by its idempotency key.
    #[must_use]
    pub fn call(run_id: impl Into<Arc<str>>, idempotency_key: Hash) -> Self {
        Self::from_parts(DocumentKind::Call, run_id, idempotency_key.to_string())
    }

    /// Returns the key of a suspended call of a run. Run ids and call ids can be guessed, so calls of other principals
    /// and tenants under the same ids have different keys.
    #[must_use]
    pub fn waiting(
        run_id: impl Into<Arc<str>>,
        tenant: Option<&str>,
        principal: Option<&str>,
        call_id: &CallId,
    ) -> Self {
        Self::from_parts(DocumentKind::Waiting, run_id, digest(&(tenant, principal, call_id.as_str())))
    }

    /// Returns the key of a suspended call.
    pub(crate) fn of_waiting(call: &PendingCall) -> Self {
        Self::waiting(Arc::clone(&call.run_id), call.tenant.as_deref(), call.principal.as_deref(), &call.call_id)
    }

    /// Returns the key of the mark that this suspension of a call was decided. Each suspension has a separate key,
    /// because a graph (an agent or a script that runs as a tool) is suspended repeatedly under the same id.
    pub(crate) fn decided(call: &PendingCall) -> Self {
        let graph = call.graph.as_ref().map(|graph| (graph.call_id.as_str(), &graph.document, graph.refused.is_some()));
        let of = (&call.tenant, &call.principal, call.call_id.as_str(), call.suspension, call.created_at);
        // A decider may have replaced the arguments, so the key has the digest of the model's own arguments.
        let arguments = match &call.replaced {
            None => call.argument_digest,
            Some(replaced) => json::digest(replaced.arguments.as_str()),
        };
        let id = digest(&(of, &call.tool, arguments, graph));
        Self::from_parts(DocumentKind::Decided, Arc::clone(&call.run_id), id)
    }

    /// Returns the key of the mark that a call began with a person's arguments instead of the model's. `call` is the
    /// ledger key of the call with the model's arguments.
    pub(crate) fn replaced(call: &Self) -> Self {
        Self::from_parts(DocumentKind::Decided, Arc::clone(&call.scope), Arc::clone(&call.id))
    }

    /// Returns the key of a run that workers share.
    #[must_use]
    pub fn run(run_id: impl Into<Arc<str>>) -> Self {
        Self::from_parts(DocumentKind::Run, run_id, "")
    }

    /// Returns the key of a run for a change that does not read the conversation of the run, but may replace it. The
    /// key equals [`Key::run`]. A store may leave the conversation out
    /// ([`StoredDocument::without_text`](crate::store::StoredDocument::without_text)). A store that always passes the
    /// whole text can ignore the difference.
    #[must_use]
    pub fn run_head(run_id: impl Into<Arc<str>>) -> Self {
        Self { is_head: true, ..Self::run(run_id) }
    }

    /// Returns the key of a grant for calls of a tool in a tenant.
    #[must_use]
    pub fn grant(tool: &str, tenant: Option<&str>, id: impl Into<Arc<str>>) -> Self {
        Self::from_parts(DocumentKind::Grant, Self::grants_of(tool, tenant), id)
    }

    /// Returns the scope of a tool's grants in a tenant. `@` separates the two, because no tool has an `@` in its name.
    pub(crate) fn grants_of(tool: &str, tenant: Option<&str>) -> Arc<str> {
        match tenant {
            None => tool.into(),
            Some(tenant) => format!("{tool}@{tenant}").into(),
        }
    }

    /// Returns the key of a message to a run, by the message's own id.
    #[must_use]
    pub fn post(run_id: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self::from_parts(DocumentKind::Post, run_id, id)
    }

    /// Returns the key of the account of a holder in a window. The scope is a digest, because ids from outside can be
    /// long and contain any character.
    pub(crate) fn account(holder: Holder, tenant: Option<&str>, principal: Option<&str>, window: Window) -> Self {
        let scope = digest(&(holder, tenant, principal));
        Self::from_parts(DocumentKind::Account, scope, window.to_string())
    }

    /// Returns the key of an anchor, by its number.
    #[must_use]
    pub fn anchor(number: u64) -> Self {
        Self::from_parts(DocumentKind::Anchor, "", format!("{number:020}"))
    }

    /// Returns the key of the end of the chain of anchors.
    #[must_use]
    pub fn last_anchor() -> Self {
        Self::from_parts(DocumentKind::Anchor, "", "last")
    }

    /// Returns the key of the document with the key for digests of arguments. A store has one such document.
    #[must_use]
    pub fn digest_key() -> Self {
        Self::from_parts(DocumentKind::DigestKey, "", "")
    }

    /// Returns the key of the calls of a tool with the same arguments for one principal of a tenant. `arguments` is
    /// their digest.
    pub(crate) fn twins(tenant: Option<&str>, principal: Option<&str>, tool: &str, arguments: Hash) -> Self {
        Self::effect(digest(&("twins", tenant, principal, tool, arguments)))
    }

    /// Returns the key of the document of an effect key, from its scope and its rendered parts.
    pub(crate) fn once(scope: &[Option<&str>], parts: &[String]) -> Self {
        Self::effect(digest(&("once", scope, parts)))
    }

    /// Returns the key of an effect, from its [`scope`](Self::scope).
    pub(crate) fn effect(scope: Arc<str>) -> Self {
        Self::from_parts(DocumentKind::Effect, scope, "")
    }

    /// Returns the key of the legal holds on a run, a principal or a tenant.
    pub(crate) fn hold(scope: &HoldScope) -> Self {
        Self::from_parts(DocumentKind::Hold, digest(scope), "")
    }

    /// Returns the key of a notice about a call of a run.
    pub(crate) fn notice(run_id: Arc<str>, id: Arc<str>) -> Self {
        Self::from_parts(DocumentKind::Notice, run_id, id)
    }

    /// Returns the key of the slots of a tenant: the leases of workers on its runs. Without a tenant, each principal
    /// has separate slots.
    pub(crate) fn slots(tenant: Option<&str>, principal: Option<&str>) -> Self {
        let principal = if tenant.is_none() { principal } else { None };
        let scope = digest(&("slots", tenant, principal));
        Self::slots_of(scope.get(..32).unwrap_or_default())
    }

    /// Returns the key of the slots of a tenant, from the tenant's part of a lane.
    pub(crate) fn slots_of(tenant: &str) -> Self {
        Self::from_parts(DocumentKind::Slots, tenant, "")
    }

    /// Creates a key from its [`kind`](Self::kind), [`scope`](Self::scope) and [`id`](Self::id), as a store reads them.
    #[must_use]
    pub fn from_parts(kind: DocumentKind, scope: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self { kind, scope: scope.into(), id: id.into(), is_head: false }
    }

    /// Returns the kind of the document.
    #[must_use]
    pub const fn kind(&self) -> DocumentKind {
        self.kind
    }

    /// Whether the reader of the document needs its long text: `true` for [`Key::run`], `false` for [`Key::run_head`]
    /// and for other kinds, which have no long text.
    #[must_use]
    pub const fn needs_text(&self) -> bool {
        self.kind.has_long_text() && !self.is_head
    }

    /// Returns the owner of the document. The owner of a run, and of its calls, messages and notices, is the run. The
    /// owner of a grant is the tool with the tenant. For other kinds, the scope is a digest: of the holder of an
    /// account, of an effect, of the tenant of slots, of the subject of legal holds. It is empty for anchors and for
    /// the key for digests.
    #[must_use]
    pub const fn scope(&self) -> &Arc<str> {
        &self.scope
    }

    /// Returns the id of the document, which is unique in its kind and scope.
    #[must_use]
    pub const fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Returns the name of the lock that a change of the document takes. A run, its calls, messages, notices and
    /// records share one lock. The accounts of one holder share one lock, too.
    #[must_use]
    pub fn lock(&self) -> String {
        format!("{}/{}", self.lock_kind(), self.scope)
    }

    /// The first part of the name of the lock.
    const fn lock_kind(&self) -> &'static str {
        match self.kind {
            DocumentKind::Call
            | DocumentKind::Waiting
            | DocumentKind::Decided
            | DocumentKind::Run
            | DocumentKind::Post
            | DocumentKind::Notice => "run",
            DocumentKind::Grant => "grant",
            DocumentKind::Account => "account",
            DocumentKind::Anchor => "anchor",
            DocumentKind::DigestKey => "digest_key",
            DocumentKind::Effect => "effect",
            DocumentKind::Hold => "hold",
            DocumentKind::Slots => "slots",
        }
    }

    /// Whether the lock of the key is that of this run.
    pub(super) fn locks_run(&self, run_id: &str) -> bool {
        self.lock_kind() == "run" && *self.scope == *run_id
    }
}

/// Returns a digest in place of ids from outside, which can be long and contain any character.
fn digest(parts: &impl Serialize) -> Arc<str> {
    // The serialization of strings never fails. The fallback would give all ids the same digest.
    json::digest(serde_json::to_vec(parts).unwrap_or_default()).to_string().into()
}

/// Conditions on the documents to list, oldest first. [`new`](Self::new) sets the defaults.
///
/// ```
/// use tool_runtime::store::{DocumentKind, Key, MemoryStore, Query, Store, StoredDocument};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let document = StoredDocument::example("run-1", "{}", None);
/// let change = move |transaction: &mut tool_runtime::store::Transaction| transaction.put(document.clone());
/// store.update(vec![Key::run("run-1")], Box::new(change)).await?;
///
/// let found = store.list(&Query { limit: 16, ..Query::new(DocumentKind::Run) }).await?;
/// assert_eq!(found[0].key, Key::run("run-1"));
/// // The next page.
/// let query = Query { after: found[0].position, ..Query::new(DocumentKind::Run) };
/// assert!(store.list(&query).await?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Documents of this kind.
    pub kind: DocumentKind,
    /// Documents of this scope. `None` for all scopes.
    pub scope: Option<Arc<str>>,
    /// Documents that are due at this time. `None` for all documents. A document without a due time is never due.
    pub due: Option<Timestamp>,
    /// Documents after this position.
    pub after: u64,
    /// The maximum number of documents in a page.
    pub limit: usize,
}

impl Query {
    /// Creates a query for the first 256 documents of a kind.
    #[must_use]
    pub const fn new(kind: DocumentKind) -> Self {
        Self { kind, scope: None, due: None, after: 0, limit: 256 }
    }
}
