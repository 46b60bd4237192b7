//! Cleans up after crashed servers. A running server that uses the same store records and removes the decisions that
//! were posted on ended calls. It also removes the documents of runs whose calls have ended.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::agent::Input;
use crate::call::{Decider, Question};
use crate::mcp::serve::Served;
use crate::mcp::serve::tasks::kept::SavedRunTasks;
use crate::mcp::serve::tasks::status::task_id;
use crate::runner::ServedRuns;
use crate::runner::waiting::late;
use crate::store::ledger::after;
use crate::store::pages::Search;
use crate::store::{
    DecisionRecord, Document, DocumentKind, KEPT, Key, Post, Query, RecordFilter, Store as _, StoreError,
    StoredDocument, StoredRun,
};

/// The interval of searches for posted decisions. In this time, a server that still has the run can take them.
const POSTS: Duration = Duration::from_secs(60);

/// The interval of searches for documents of runs, which read all runs of the store. One server makes each search. Most
/// servers run for less than this interval, so the store has the time of the last search.
const RUNS: Duration = Duration::from_secs(24 * 60 * 60);

/// The interval at which a server tries to claim the search for documents of runs.
const CLAIMS: Duration = Duration::from_secs(60 * 60);

/// The number of run documents that a search holds in memory at a time.
const PAGE: usize = 16;

/// How far the clock of a process may be behind the clock of the store.
const BEHIND: Duration = Duration::from_secs(1);

/// The maximum number of decisions that are remembered from one search to the next.
const MAX_REMEMBERED: usize = 1024;

/// The state of a server's searches.
pub(in crate::mcp::serve) struct Left {
    /// The decisions that the last search found but did not take. The next search takes them if they are still in the
    /// store.
    seen: HashSet<Key>,
    /// The name under which the server claims decisions.
    owner: Option<Arc<str>>,
    posts: Option<Instant>,
    /// When it last tried to claim the search for documents of runs.
    runs: Option<Instant>,
}

/// The principal and the tenant of a run that an MCP server stored. `None` if this server continues the run, or if no
/// MCP server stored it.
type Owner = Option<(Option<Arc<str>>, Option<Arc<str>>)>;

impl Left {
    pub(in crate::mcp::serve) fn new() -> Self {
        Self { seen: HashSet::new(), owner: None, posts: None, runs: None }
    }

    /// Makes the searches that are due.
    ///
    /// # Errors
    /// The store failed. The next search tries again.
    pub(in crate::mcp::serve) async fn tend(&mut self, served: &Served) -> Result<(), StoreError> {
        let now = Instant::now();
        let is_due = |last: Option<Instant>, interval| last.is_none_or(|last| now.duration_since(last) >= interval);
        let mut searched = Ok(());
        if is_due(self.posts, POSTS) {
            self.posts = Some(now);
            searched = self.take_posts(served).await;
        }
        if is_due(self.runs, CLAIMS) {
            self.runs = Some(now);
            searched = searched.and(search(served).await);
        }
        searched
    }

    /// Records and removes each decision on an ended call that the previous search also found.
    async fn take_posts(&mut self, served: &Served) -> Result<(), StoreError> {
        let mut found = HashSet::new();
        let taken = self.take_found(served, &mut found).await;
        if taken.is_err() {
            // The failed search may not have reached these decisions.
            found.extend(self.seen.drain().take(MAX_REMEMBERED - found.len()));
        }
        self.seen = found;
        taken
    }

    async fn take_found(&mut self, served: &Served, found: &mut HashSet<Key>) -> Result<(), StoreError> {
        let (store, mut runs) = (&**served.runner.store(), HashMap::new());
        let owner = Arc::clone(self.owner.get_or_insert_with(|| ServedRuns(&served.runner).owner()));
        let mut posts = Search::of(Query::new(DocumentKind::Post));
        while let Some(page) = posts.next(store).await? {
            for StoredDocument { key, document, .. } in page {
                let Document::Post(post) = document else { continue };
                // The document of a run is long, so it is read once.
                let run: &Owner = match runs.get(key.scope()) {
                    Some(run) => run,
                    None => {
                        let run = posts.noted(left(served, key.scope()).await).flatten();
                        runs.entry(Arc::clone(key.scope())).or_insert(run)
                    }
                };
                let Some(party) = run else { continue };
                if posts.noted(are_over(served, key.scope(), &post).await) != Some(true) {
                    continue;
                }
                if self.seen.contains(&key) {
                    let taken = Box::pin(take(served, party, &owner, key.clone(), &post));
                    posts.note(ServedRuns(&served.runner).claimed(&key, &owner, taken).await.unwrap_or(Ok(())));
                } else if found.len() < MAX_REMEMBERED {
                    found.insert(key);
                }
            }
        }
        posts.end()
    }
}

/// Whether each call that a message decides on has ended. A call that another server still runs has not ended.
async fn are_over(served: &Served, run_id: &Arc<str>, post: &Post) -> Result<bool, StoreError> {
    for question in &post.answers {
        let of_call = RecordFilter::call(Arc::clone(run_id), question.call_id().clone());
        if served.runner.store().calls(&of_call).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(!post.answers.is_empty())
}

/// Returns the principal and the tenant of a run that an MCP server stored, if this server does not continue the run.
async fn left(served: &Served, run_id: &Arc<str>) -> Result<Owner, StoreError> {
    let query = Query { scope: Some(Arc::clone(run_id)), limit: 1, ..Query::new(DocumentKind::Run) };
    let found = served.runner.store().list(&query).await?.pop();
    Ok(found.and_then(|listed| match listed.document {
        Document::Run(run) if run.is_served() && !served.tasks.continues(&run.run_id) => {
            Some((run.principal, run.tenant))
        }
        _ => None,
    }))
}

/// Whether a decision of a message has a record, because a server carried it out and ended before it removed the
/// message. Earlier records do not count, because the person may have answered the same question before and been
/// refused. A record up to [`BEHIND`] before the message counts, because that server's clock may be slow.
pub(super) async fn is_recorded(
    served: &Served,
    run_id: &Arc<str>,
    question: &Question,
    decider: &Decider,
    post: &Post,
) -> Result<bool, StoreError> {
    let of_call = RecordFilter::call(Arc::clone(run_id), question.call_id().clone());
    let records = served.runner.store().records(&of_call).await?;
    let posted = post.at.saturating_sub(BEHIND).unwrap_or(post.at);
    let is_it = |decision: &DecisionRecord| {
        decision.question.as_ref() == Some(question)
            && decision.at >= posted
            && decision.decider.as_ref().is_some_and(|by| by.is_same_person(decider))
    };
    Ok(records.iter().filter_map(|sealed| sealed.record.as_decision()).any(is_it))
}

async fn take(
    served: &Served,
    (principal, tenant): &(Option<Arc<str>>, Option<Arc<str>>),
    owner: &Arc<str>,
    key: Key,
    post: &Post,
) -> Result<(), StoreError> {
    let party = Some((principal.as_deref(), tenant.as_deref()));
    if let Ok(input) = serde_json::from_str::<Input>(&post.body) {
        for (at, (question, decision, decider)) in input.into_decisions().into_iter().enumerate() {
            // Another server has claimed the message with the remaining decisions.
            if at > 0 && !ServedRuns(&served.runner).claim(&key, owner).await {
                return Ok(());
            }
            if !is_recorded(served, key.scope(), &question, &decider, post).await? {
                let (asked, by) = ((question.call_id(), Some(&question)), (decision.kind(), Some(&decider)));
                late::append(&served.runner, key.scope(), party, asked, by).await?;
            }
        }
    }
    ServedRuns(&served.runner).took(key, None).await
}

/// Removes the documents of dead runs, if no server has done so in the last [`RUNS`].
async fn search(served: &Served) -> Result<(), StoreError> {
    let runs = ServedRuns(&served.runner);
    if runs.claims_search(RUNS).await? {
        forget_runs(served).await?;
        runs.searched(RUNS).await?;
    }
    Ok(())
}

/// Removes the documents of runs whose calls expired more than [`KEPT`] ago.
async fn forget_runs(served: &Served) -> Result<(), StoreError> {
    let store = &**served.runner.store();
    let now = store.now().await?;
    let mut runs = Search::of(Query { limit: PAGE, ..Query::new(DocumentKind::Run) });
    while let Some(page) = runs.next(store).await? {
        for StoredDocument { document, .. } in page {
            let Document::Run(run) = document else { continue };
            if !run.is_served() || served.tasks.continues(&run.run_id) {
                continue;
            }
            // A document of another kind holds only the name of a call. It is removed together with the run of the
            // call.
            let Ok(saved) = serde_json::from_str::<SavedRunTasks>(&run.document) else { continue };
            let last = saved.tasks.values().map(|task| task.expires).max();
            if last.is_some_and(|last| now >= after(last, KEPT)) {
                runs.note(forget_run(served, &run, saved).await);
            }
        }
    }
    runs.end()
}

/// Removes the documents of a run, unless one of its calls waits.
async fn forget_run(served: &Served, run: &StoredRun, saved: SavedRunTasks) -> Result<(), StoreError> {
    let of_run = RecordFilter::run(Arc::clone(&run.run_id));
    if !served.runner.store().pending_calls(&of_run).await?.is_empty() {
        return Ok(());
    }
    for (id, task) in saved.tasks {
        if let (Some(asked_as), Some(named)) = (task.asked_as, task_id(&run.run_id, &id)) {
            ServedRuns(&served.runner).forget(&asked_as, named.into()).await?;
        }
    }
    ServedRuns(&served.runner).forget(&run.run_id, Arc::clone(&run.document)).await
}
