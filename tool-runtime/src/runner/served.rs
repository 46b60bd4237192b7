//! What a server of tools needs of the gate: whom a run acts for, and runs whose calls outlive their requests.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::Decider;
use crate::catalog::{CatalogView, Entry};
use crate::json::{self, Limits};
use crate::policy::Allowance;
use crate::runner::seen::MAX_CALLS;
use crate::runner::shared::Shared;
use crate::runner::{Run, RunOptions, ServerEntry, ToolRunner, asking};
use crate::store::{Document, Key, Post, Query, Space, StoreError, StoredRun, Transaction, served};

/// How much of a run's post is read at a time.
const POSTS: usize = 64;

impl Run {
    /// The catalog that a new run with the same options would see, including tools of servers that connected later.
    pub(crate) fn catalog_now(&self) -> Arc<CatalogView> {
        let options = self.options();
        self.shared().view(self.policy(), &options.context(self.id(), &options.labels)).view
    }

    /// Whether another run with these options would act for the same party.
    pub(crate) fn acts_for(&self, options: &RunOptions) -> bool {
        self.options().is_party_of(options)
    }

    /// Whether the run has had so many calls that a session should begin another one. A run with a budget continues:
    /// its budget counts for the whole window.
    pub(crate) fn is_long(&self) -> bool {
        self.policy().budget() == Allowance::default() && self.state().seen.len() >= MAX_CALLS / 2
    }

    /// The principal of the run as somebody who decides, if the policy lets them decide on their own call of this tool.
    pub(crate) fn own_decider(&self, tool: &str) -> Option<Decider> {
        let options = self.options();
        let decider = Decider::new(Arc::clone(options.principal.as_ref()?));
        let decider = match &options.tenant {
            Some(tenant) => decider.tenant(Arc::clone(tenant)),
            None => decider,
        };
        let decider = options.roles.iter().fold(decider, |decider, role| decider.role(Arc::clone(role)));
        self.bars(tool, &decider).is_none().then_some(decider)
    }

    /// The principal reads in this run what another run of theirs returned, so its labels are on this one from now on.
    pub(crate) fn take_labels_of(&self, other: &Self) {
        if Arc::ptr_eq(self.identity(), other.identity()) {
            return;
        }
        self.remembered().label(other.labels());
    }

    /// Names every call of this tool with these arguments that the party of this run makes. `None` for arguments that cannot
    /// be read.
    pub(crate) async fn asked_as(&self, tool: &str, arguments: &str) -> Option<Arc<str>> {
        let of = {
            let (options, arguments) = (self.options(), json::parse(arguments, &Limits::UNBOUNDED).ok()?);
            let mut roles: Vec<_> = options.roles.iter().collect();
            roles.sort_unstable();
            let party = (&options.tenant, &options.principal, roles, &options.attributes);
            serde_json::to_vec(&(party, tool, json::canonical::to_text(&arguments))).ok()?
        };
        // Sensitive arguments are part of it, and the store keeps it.
        Some(format!("asked_{}", self.digests().await.asked(&of)).into())
    }

    /// The entry to write with a call of this run that begins to wait: the run with its server's document, unless it is
    /// kept already, and a document under the id by which the call is found. The call does not wait if that id has
    /// another document.
    pub(crate) fn served_entry(&self, document: Arc<str>, named: Option<(&Arc<str>, Arc<str>)>) -> ServerEntry {
        let stored = self.options().stored(self.identity(), document);
        let named = named.map(|(id, document)| self.options().stored(id, document));
        let keys = [Some(&stored), named.as_ref()].into_iter().flatten().map(|run| Key::run(Arc::clone(&run.run_id)));
        let keys = keys.collect();
        ServerEntry { keys, write: Box::new(move |transaction| served::enter(transaction, &stored, named.as_ref())) }
    }

    /// The tenant that the run acts for.
    pub(crate) fn tenant(&self) -> Option<&str> {
        self.options().tenant.as_deref()
    }

    /// The id as the store has it.
    pub(crate) fn stored_id(&self) -> &Arc<str> {
        self.identity()
    }
}

impl RunOptions {
    fn stored(&self, id: &Arc<str>, document: Arc<str>) -> StoredRun {
        let mut stored = StoredRun::new(Arc::clone(id), document);
        stored.principal.clone_from(&self.principal);
        stored.tenant.clone_from(&self.tenant);
        stored
    }
}

impl ToolRunner {
    /// Returns the rules by which a call can wait for a person; empty if none can. A server whose store no approver reaches
    /// checks that there is none.
    #[must_use]
    pub fn asking_rules(&self) -> Vec<String> {
        let Shared { catalog, policy, approvals, .. } = &*self.shared;
        if *approvals { asking::of_catalog(policy, catalog) } else { Vec::new() }
    }

    /// Whether a call of this tool can wait for a person; that of a graph can wait with any other.
    pub(crate) fn can_wait(&self, entry: &Entry) -> bool {
        let (policy, is_graph) = (&self.shared.policy, entry.spec.name.as_str().starts_with("graph__"));
        let asks = || asking::asks(policy, entry);
        self.shared.approvals && (is_graph || policy.data().cedar.is_some() || asks())
    }

    /// Whether only this process can reach the store.
    pub(crate) fn keeps_to_itself(&self) -> bool {
        self.shared.store_is_own
    }

    /// The time by the runner's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Keeps a run with a document of its server's, so that any process can post decisions to it.
    pub(crate) async fn keep_served(&self, run: &Run, document: Arc<str>) -> Result<(), StoreError> {
        let stored = run.options().stored(run.identity(), document);
        let keys = vec![Key::run(Arc::clone(run.identity()))];
        let change = move |transaction: &mut Transaction| served::keep(transaction, &stored);
        self.shared.store.transact(keys, change).await
    }

    /// Returns the document of a run that a server kept for the party of these options. `None` if there is none.
    pub(crate) async fn served(&self, run_id: &str, party: &RunOptions) -> Result<Option<Arc<str>>, StoreError> {
        let query = Query { scope: Some(run_id.into()), limit: 1, ..Query::new(Space::Run) };
        let found = self.shared.store.list(&query).await?.pop();
        Ok(found.and_then(|listed| match listed.document {
            Document::Run(run) if run.is_served() && run.principal == party.principal && run.tenant == party.tenant => {
                Some(Arc::clone(&run.document))
            }
            _ => None,
        }))
    }

    /// Removes what a server kept of a run, if it is still this document.
    pub(crate) async fn forget_served(&self, run_id: &Arc<str>, document: Arc<str>) -> Result<(), StoreError> {
        let run_id = Arc::clone(run_id);
        let keys = vec![Key::run(Arc::clone(&run_id))];
        let change = move |transaction: &mut Transaction| served::forget(transaction, &run_id, &document);
        self.shared.store.transact(keys, change).await
    }

    /// Returns what was posted to a run, oldest first.
    pub(crate) async fn posted_to(&self, run: &Run) -> Result<Vec<(Key, Post)>, StoreError> {
        let scope = Some(Arc::clone(run.identity()));
        let query = Query { scope, limit: POSTS, ..Query::new(Space::Post) };
        let listed = self.shared.store.list(&query).await?.into_iter();
        Ok(listed
            .filter_map(|listed| match listed.document {
                Document::Post(post) => Some((listed.key, *post)),
                _ => None,
            })
            .collect())
    }

    /// Removes what was posted, once it has had its effect.
    pub(crate) async fn took(&self, post: Key) -> Result<(), StoreError> {
        let keys = vec![Key::run(Arc::clone(post.scope())), post.clone()];
        let change = move |transaction: &mut Transaction| served::taken(transaction, &post);
        self.shared.store.transact(keys, change).await
    }
}
