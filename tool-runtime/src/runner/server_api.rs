//! The interface of the runner for an MCP server: the party of a run, and runs whose calls outlive their requests.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::call::{Decider, Question};
use crate::catalog::{CatalogView, Entry};
use crate::json::{self, Limits};
use crate::policy::Allowance;
use crate::runner::ledger::recover;
use crate::runner::run::call_ids::MAX_CALLS;
use crate::runner::waiting::{approval_rules, expired};
use crate::runner::{Run, RunOptions, ServerEntry, ToolRunner};
use crate::store::ledger::after;
use crate::store::pages::Search;
use crate::store::{
    Document, DocumentKind, Key, LedgerEntry, Post, Query, Store as _, StoreError, StoredRun, Transaction,
    close_abandoned, served, transact,
};

/// A run, with the methods that only a server uses.
#[derive(Clone, Copy)]
pub(crate) struct ServedRun<'r>(pub(crate) &'r Run);

impl<'r> ServedRun<'r> {
    /// Returns the catalog that a new run with the same options would see now. It includes tools of MCP servers that
    /// connected after the start of this run.
    pub(crate) fn catalog_now(self) -> Arc<CatalogView> {
        let options = self.0.options();
        self.0.shared().view(self.0.policy(), &options.context(self.0.id(), &options.labels))
    }

    /// Whether another run with these options would act for the same party.
    pub(crate) fn acts_for(self, options: &RunOptions) -> bool {
        self.0.options().is_party_of(options)
    }

    /// Whether the run has had so many calls that the session should begin another run. A run with a budget is never
    /// replaced, because another run would have a new budget.
    pub(crate) fn is_long(self) -> bool {
        self.0.policy().budget() == Allowance::default() && self.0.state().call_ids.len() >= MAX_CALLS / 2
    }

    /// Returns the run's principal as a decider.
    pub(crate) fn decider(self) -> Option<Decider> {
        self.0.options().as_decider()
    }

    /// Returns the run's principal as a decider, if the policy lets principals decide on their own calls of this tool.
    pub(crate) fn own_decider(self, tool: &str) -> Option<Decider> {
        let decider = self.decider()?;
        self.0.bars(tool, &decider).is_none().then_some(decider)
    }

    /// Puts the labels of another run on this one, before the principal reads a result of that run here.
    pub(crate) fn take_labels_of(self, other: &Run) {
        if Arc::ptr_eq(self.0.identity(), other.identity()) {
            return;
        }
        self.0.remembered().label(other.labels());
    }

    /// Returns an id that is the same for every call of this tool with these arguments by the party of this run. `None`
    /// for arguments that cannot be read.
    pub(crate) async fn asked_as(self, tool: &str, arguments: &str) -> Option<Arc<str>> {
        let of = {
            let (options, arguments) = (self.0.options(), json::parse(arguments, &Limits::UNBOUNDED).ok()?);
            let rights = options.rights();
            let call = (rights.party, tool, json::canonical::to_text(&arguments));
            match rights.tools {
                None => serde_json::to_vec(&call),
                // A session with other tools gets another id, so it does not find the call.
                Some(tools) => serde_json::to_vec(&(call, tools)),
            }
            .ok()?
        };
        // The id is stored and depends on sensitive arguments, so it is derived with the digest key.
        Some(format!("{}{}", served::NAME, self.0.digests().await.asked(&of)).into())
    }

    /// Returns the entry to write with a call of this run that begins to wait: the run with its server's document,
    /// unless the store has it, and, if `named` is set, a document under an id with which the client finds the call. If
    /// that id already has another document, the call does not wait.
    pub(crate) fn served_entry(self, document: Arc<str>, named: Option<(&Arc<str>, Arc<str>)>) -> ServerEntry {
        let stored = stored_run(self.0.options(), self.0.identity(), document);
        let named = named.map(|(id, document)| stored_run(self.0.options(), id, document));
        let keys = [Some(&stored), named.as_ref()].into_iter().flatten().map(|run| Key::run(Arc::clone(&run.run_id)));
        let keys = keys.collect();
        ServerEntry { keys, write: Box::new(move |transaction| served::enter(transaction, &stored, named.as_ref())) }
    }

    /// Returns the tenant that the run acts for.
    pub(crate) fn tenant(self) -> Option<&'r str> {
        self.0.options().tenant.as_deref()
    }

    /// Returns the id of the run in the store.
    pub(crate) fn stored_id(self) -> &'r Arc<str> {
        self.0.identity()
    }
}

/// The runs that a server keeps in the store of its runner.
#[derive(Clone, Copy)]
pub(crate) struct ServedRuns<'r>(pub(crate) &'r ToolRunner);

impl ServedRuns<'_> {
    /// Whether a call of this tool can wait for a person. A graph can always wait, for an inner call. A call with an
    /// effect can wait because the outcome of an earlier call is unknown.
    pub(crate) fn can_wait(self, entry: &Entry) -> bool {
        let (policy, is_graph) = (&self.0.shared.policy, entry.spec.name.as_str().starts_with("graph__"));
        let asks = || approval_rules::asks(policy, entry);
        let can_be_twin = approval_rules::can_be_twin(policy, entry);
        self.0.shared.approvals && (is_graph || can_be_twin || policy.data().cedar.is_some() || asks())
    }

    /// Whether only this process can reach the store, so that an approver in another process cannot.
    pub(crate) fn keeps_to_itself(self) -> bool {
        self.0.shared.store_is_own
    }

    /// Returns the rules under which a call can wait although no person can decide on it, because only this process can
    /// reach the store. `own` is `true` if the server can ask a client about calls of its own principal; rules that
    /// need no other person are then left out.
    pub(crate) fn undecidable(self, own: bool) -> Vec<String> {
        let shared = &self.0.shared;
        if !shared.approvals || !self.keeps_to_itself() {
            return Vec::new();
        }
        let mut rules = self.0.asking_rules(own);
        rules.extend(approval_rules::unknown_outcomes(&shared.policy, &shared.catalog, own));
        rules
    }

    /// Takes over calls of MCP servers whose process is gone, if their tools can reconcile or repeat them, and closes
    /// the other calls of such servers. Ends expired calls. Returns the number of closed calls. Takes over no further
    /// call after `stop` fires.
    pub(crate) async fn close_abandoned(self, stop: &CancellationToken) -> Result<u64, StoreError> {
        let taken_over = recover::take_over_left(self.0, stop, LedgerEntry::ends_with_process).await;
        let closed = close_abandoned(&**self.0.store(), LedgerEntry::ends_with_process).await;
        let expired = expired::expire_left(self.0, stop).await;
        taken_over.and(expired).and(closed)
    }

    /// Returns the time by the runner's clock.
    pub(crate) fn now(self) -> Timestamp {
        self.0.shared.clock.now()
    }

    /// Returns the time at which a call that is suspended now would expire.
    pub(crate) fn expires(self) -> Timestamp {
        after(self.now(), self.0.shared.approval_ttl)
    }

    /// Stores a run with its server's document, so that any process can post decisions to it.
    pub(crate) async fn keep(self, run: &Run, document: Arc<str>) -> Result<(), StoreError> {
        let stored = stored_run(run.options(), run.identity(), document);
        let keys = vec![Key::run(Arc::clone(run.identity()))];
        let change = move |transaction: &mut Transaction| served::keep(transaction, &stored);
        transact(&self.0.shared.store, keys, change).await
    }

    /// Returns the document of a run that a server kept for the party of these options. `None` if there is none.
    pub(crate) async fn document(self, run_id: &str, party: &RunOptions) -> Result<Option<Arc<str>>, StoreError> {
        let query = Query { scope: Some(run_id.into()), limit: 1, ..Query::new(DocumentKind::Run) };
        let found = self.0.shared.store.list(&query).await?.pop();
        Ok(found.and_then(|listed| match listed.document {
            Document::Run(run) if run.is_served() && run.principal == party.principal && run.tenant == party.tenant => {
                Some(Arc::clone(&run.document))
            }
            _ => None,
        }))
    }

    /// Removes the server's document of a run, if the store still has this document and no legal hold covers the run.
    pub(crate) async fn forget(self, run_id: &Arc<str>, document: Arc<str>) -> Result<(), StoreError> {
        served::forget(&self.0.shared.store, run_id, document).await
    }

    /// Returns the posts (stored messages) to a run, oldest first.
    pub(crate) async fn posted_to(self, run: &Run) -> Result<Vec<(Key, Post)>, StoreError> {
        let scope = Some(Arc::clone(run.identity()));
        let (mut search, mut posts) = (Search::of(Query { scope, ..Query::new(DocumentKind::Post) }), Vec::new());
        while let Some(page) = search.next(&self.0.shared.store).await? {
            posts.extend(page.into_iter().filter_map(|listed| match listed.document {
                Document::Post(post) => Some((listed.key, *post)),
                _ => None,
            }));
        }
        // A post that cannot be read does not delay the others.
        search.end().or_else(|error| if posts.is_empty() { Err(error) } else { Ok(()) })?;
        Ok(posts)
    }

    /// Claims a post for the lease time, or renews the claim. `false` if another server has the post, it is gone, or
    /// the store failed.
    pub(crate) async fn claim(self, post: &Key, owner: &Arc<str>) -> bool {
        let (key, owner, lease_duration) = (post.clone(), Arc::clone(owner), self.0.shared.lease);
        let change = move |transaction: &mut Transaction| served::claim_post(transaction, &key, &owner, lease_duration);
        transact(&self.0.shared.store, vec![post.clone()], change).await.unwrap_or(false)
    }

    /// Does the work of a post, and renews the claim meanwhile. `None` if this server cannot [claim](Self::claim) the
    /// post.
    ///
    /// The process can pause for longer than the lease, so the work also renews the claim before each decision after
    /// the first. A lost claim does not stop a call that has begun, because a dropped call ends as `outcome_unknown`.
    pub(crate) async fn claimed<T>(self, post: &Key, owner: &Arc<str>, work: impl Future<Output = T>) -> Option<T> {
        if !self.claim(post, owner).await {
            return None;
        }
        // A call can run for longer than the lease, so the claim is renewed while it runs.
        let renewal = async {
            loop {
                sleep(self.0.shared.lease / 3).await;
                self.claim(post, owner).await;
            }
        };
        tokio::select! {
            done = work => Some(done),
            () = renewal => None,
        }
    }

    /// Whether this server has to search for documents of dead servers now. Only one server does in each `interval` of
    /// the store's time.
    pub(crate) async fn claims_search(self, interval: Duration) -> Result<bool, StoreError> {
        let change = move |transaction: &mut Transaction| served::claim_search(transaction, interval);
        transact(&self.0.shared.store, vec![served::search_key()], change).await
    }

    /// Notes that this server has finished its search.
    pub(crate) async fn searched(self, interval: Duration) -> Result<(), StoreError> {
        let change = move |transaction: &mut Transaction| served::searched(transaction, interval);
        transact(&self.0.shared.store, vec![served::search_key()], change).await
    }

    /// Returns a unique owner id with which this process claims posts.
    pub(crate) fn owner(self) -> Arc<str> {
        self.0.shared.attempt()
    }

    /// Removes a post after its decisions were carried out. With `rest`, keeps the post instead, with the body and the
    /// questions in `rest`, which still have to be carried out.
    pub(crate) async fn took(self, post: Key, rest: Option<(Arc<str>, Vec<Question>)>) -> Result<(), StoreError> {
        let keys = vec![Key::run_head(Arc::clone(post.scope())), post.clone()];
        let change = move |transaction: &mut Transaction| served::taken(transaction, &post, rest.as_ref());
        transact(&self.0.shared.store, keys, change).await
    }
}

fn stored_run(options: &RunOptions, id: &Arc<str>, document: Arc<str>) -> StoredRun {
    let mut stored = StoredRun::new(Arc::clone(id), document);
    stored.principal.clone_from(&options.principal);
    stored.tenant.clone_from(&options.tenant);
    stored
}
