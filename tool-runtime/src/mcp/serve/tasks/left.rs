//! What servers whose process is gone left in the store: decisions on calls that are over, and the documents of runs
//! whose calls are over. A server over the same store gives each decision its record, and removes both.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::agent::Input;
use crate::mcp::serve::Served;
use crate::mcp::serve::tasks::kept::SavedRunTasks;
use crate::mcp::serve::tasks::status::task_id;
use crate::runner::ServedRuns;
use crate::store::ledger::after;
use crate::store::{
    DecisionRecord, Document, DocumentKind, KEPT, Key, Post, Query, RecordFilter, Store as _, StoreError,
    StoredDocument, StoredRun,
};

/// The interval of searches for decisions. A server that still has their run takes them meanwhile.
const POSTS: Duration = Duration::from_secs(60);

/// The interval of searches for documents of runs.
const RUNS: Duration = Duration::from_secs(60 * 60);

/// The maximum number of decisions that are remembered from one search to the next.
const MOST: usize = 1024;

/// The searches of a server.
#[derive(Default)]
pub(in crate::mcp::serve) struct Left {
    /// The decisions that the last search found in vain.
    seen: HashSet<Key>,
    posts: Option<Instant>,
    runs: Option<Instant>,
}

impl Left {
    /// Searches, if it is time for that.
    ///
    /// # Errors
    /// The store failed. The next search continues.
    pub(in crate::mcp::serve) async fn tend(&mut self, served: &Served) -> Result<(), StoreError> {
        let now = Instant::now();
        let is_due = |last: Option<Instant>, interval| last.is_none_or(|last| now.duration_since(last) >= interval);
        if is_due(self.posts, POSTS) {
            self.posts = Some(now);
            self.take_posts(served).await?;
        }
        if is_due(self.runs, RUNS) {
            self.runs = Some(now);
            forget_runs(served).await?;
        }
        Ok(())
    }

    /// Gives each decision on a call that is over its record, and removes it. It must have been there in the search
    /// before, too.
    async fn take_posts(&mut self, served: &Served) -> Result<(), StoreError> {
        let (store, mut found) = (&**served.runner.store(), HashSet::new());
        let mut posts = Query::new(DocumentKind::Post);
        while let Some(page) = posts.next_page(store).await? {
            for StoredDocument { key, document, .. } in page {
                let Document::Post(post) = document else { continue };
                let Some(run) = left(served, key.scope()).await? else { continue };
                if !are_over(served, key.scope(), &post).await? {
                    continue;
                }
                if self.seen.contains(&key) {
                    take(served, &run, key, &post).await?;
                } else if found.len() < MOST {
                    found.insert(key);
                }
            }
        }
        self.seen = found;
        Ok(())
    }
}

/// Whether each call that a message decides on has ended. A call that another server runs has not.
async fn are_over(served: &Served, run_id: &Arc<str>, post: &Post) -> Result<bool, StoreError> {
    for question in &post.answers {
        let of_call = RecordFilter::call(Arc::clone(run_id), question.call_id().clone());
        if served.runner.store().calls(&of_call).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(!post.answers.is_empty())
}

/// Returns a run that a server kept, if this server does not continue it.
async fn left(served: &Served, run_id: &Arc<str>) -> Result<Option<StoredRun>, StoreError> {
    let query = Query { scope: Some(Arc::clone(run_id)), limit: 1, ..Query::new(DocumentKind::Run) };
    let found = served.runner.store().list(&query).await?.pop();
    Ok(found.and_then(|listed| match listed.document {
        Document::Run(run) if run.is_served() && !served.tasks.continues(&run.run_id) => Some(*run),
        _ => None,
    }))
}

async fn take(served: &Served, run: &StoredRun, key: Key, post: &Post) -> Result<(), StoreError> {
    let party = Some((run.principal.as_deref(), run.tenant.as_deref()));
    if let Ok(input) = serde_json::from_str::<Input>(&post.body) {
        for (question, decision, decider) in input.into_decisions() {
            let of_call = RecordFilter::call(Arc::clone(&run.run_id), question.call_id().clone());
            let records = served.runner.store().records(&of_call).await?;
            // A server that carried it out can have ended before it removed the message.
            let is_it = |decision: &DecisionRecord| {
                let by = decision.decider.as_ref().is_some_and(|by| by.is_same_person(&decider));
                by && decision.refused().is_none() && decision.at >= post.at
            };
            if records.iter().filter_map(|sealed| sealed.record.as_decision()).any(is_it) {
                continue;
            }
            let by = (decision.kind(), Some(&decider));
            served.runner.note_late(&run.run_id, party, &question, by).await?;
        }
    }
    ServedRuns(&served.runner).took(key).await
}

/// Removes the documents of runs whose calls have expired long ago.
async fn forget_runs(served: &Served) -> Result<(), StoreError> {
    let store = &**served.runner.store();
    let (now, mut runs) = (store.now().await?, Query::new(DocumentKind::Run));
    while let Some(page) = runs.next_page(store).await? {
        for StoredDocument { document, .. } in page {
            let Document::Run(run) = document else { continue };
            if !run.is_served() || served.tasks.continues(&run.run_id) {
                continue;
            }
            // The document under the id of a call names the call, and is removed with its run.
            let Ok(saved) = serde_json::from_str::<SavedRunTasks>(&run.document) else { continue };
            let last = saved.tasks.values().map(|task| task.expires).max();
            if last.is_none_or(|last| now < after(last, KEPT))
                || !store.pending_calls(&RecordFilter::run(Arc::clone(&run.run_id))).await?.is_empty()
            {
                continue;
            }
            for (id, task) in saved.tasks {
                if let (Some(asked_as), Some(named)) = (task.asked_as, task_id(&run.run_id, &id)) {
                    ServedRuns(&served.runner).forget(&asked_as, named.into()).await?;
                }
            }
            ServedRuns(&served.runner).forget(&run.run_id, run.document).await?;
        }
    }
    Ok(())
}
