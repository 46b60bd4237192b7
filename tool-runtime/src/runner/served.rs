//! What a server of tools needs of the gate: whom a run acts for, and runs whose calls outlive their requests.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::Decider;
use crate::runner::{Run, RunOptions, ToolRunner};
use crate::store::{Document, Key, Post, Query, Space, StoreError, StoredRun, Transaction, served};

/// How much of a run's post is read at a time.
const POSTS: usize = 64;

impl Run {
    /// Whether another run with these options would act for the same party.
    pub(crate) fn acts_for(&self, options: &RunOptions) -> bool {
        self.options().is_party_of(options)
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
}

impl ToolRunner {
    /// The time by the runner's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Keeps a run with a document of its server's, so that any process can post decisions to it.
    pub(crate) async fn keep_served(&self, run: &Run, document: Arc<str>) -> Result<(), StoreError> {
        let mut stored = StoredRun::new(Arc::clone(run.identity()), document);
        stored.principal.clone_from(&run.options().principal);
        stored.tenant.clone_from(&run.options().tenant);
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
    pub(crate) async fn forget_served(&self, run: &Run, document: Arc<str>) -> Result<(), StoreError> {
        let run_id = Arc::clone(run.identity());
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
