//! The stored form of a run's suspended calls, for other processes.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::CallId;
use crate::mcp::serve::tasks::run_tasks::RunTasks;
use crate::runner::{RunOptions, RunSnapshot, ServedRun, ServedRuns, ToolRunner};
use crate::store::StoreError;
use crate::tool::Hash;

/// The stored form of a task, from which another process continues it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedTask {
    /// The tool, by the name that the client knows.
    pub(super) name: String,
    pub(super) created: Timestamp,
    /// The time from which no decision on the call is possible.
    pub(super) expires: Timestamp,
    /// Whether the client can ask a person to fill in forms.
    pub(super) asks: bool,
    /// The id under which the store finds the call when the client repeats it, if the client does not support tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) asked_as: Option<Arc<str>>,
    /// When a request was answered with the result of the call, if its client may have stopped waiting before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answered: Option<Timestamp>,
}

/// The document of a run in the store.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedRunTasks {
    pub(super) run: RunSnapshot,
    pub(super) tasks: BTreeMap<CallId, SavedTask>,
    /// The digest of the rights of the tasks' owner. `None` in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rights: Option<Hash>,
}

impl SavedRunTasks {
    pub(super) fn parse(document: &str) -> Result<Self, StoreError> {
        // Another version of the library may have written the document, so the state of its calls is unknown.
        serde_json::from_str(document).map_err(|error| StoreError::Corrupt(error.into()))
    }

    /// Whether the party has the rights of the owner of the tasks. The caller has compared the principal and the
    /// tenant.
    pub(super) fn is_of(&self, party: &RunOptions) -> bool {
        self.rights.is_none_or(|rights| rights == party.rights().digest())
    }
}

impl RunTasks {
    /// Stores the tasks, so that decisions can be posted to their run and other processes find them.
    pub(super) async fn save(&self, runner: &ToolRunner) -> Result<(), StoreError> {
        let mut tasks = self.saved();
        loop {
            let document = self.with(tasks.clone()).await?;
            ServedRuns(runner).keep(&self.run, Arc::clone(&document)).await?;
            self.restored(document);
            // Meanwhile another call of the run may have become a task and been stored first.
            let now = self.saved();
            if now == tasks {
                return Ok(());
            }
            tasks = now;
        }
    }

    /// Returns the document of the run with all its tasks.
    pub(super) async fn document(&self) -> Result<Arc<str>, StoreError> {
        self.with(self.saved()).await
    }

    async fn with(&self, tasks: BTreeMap<CallId, SavedTask>) -> Result<Arc<str>, StoreError> {
        let rights = Some(self.party.rights().digest());
        let kept = SavedRunTasks { run: self.run.snapshot().await?, tasks, rights };
        serde_json::to_string(&kept).map(Into::into).map_err(|error| StoreError::Corrupt(error.into()))
    }

    fn saved(&self) -> BTreeMap<CallId, SavedTask> {
        self.calls().iter().map(|(id, entry)| (id.clone(), entry.saved.clone())).collect()
    }

    /// Records that the store has this document.
    pub(super) fn restored(&self, document: Arc<str>) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(document);
    }

    /// Adds the tasks that another process stored for the run.
    pub(super) async fn learn(&self, runner: &ToolRunner) -> Result<(), StoreError> {
        let stored = ServedRuns(runner).document(ServedRun(&self.run).stored_id(), &self.party).await?;
        let Some(document) = stored.filter(|document| !self.is_kept(document)) else { return Ok(()) };
        for (id, task) in SavedRunTasks::parse(&document)?.tasks {
            self.add_stored(id, task);
        }
        self.restored(document);
        Ok(())
    }

    /// Whether the store has the tasks.
    pub(super) fn is_stored(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether `document` is the last one that this process wrote or read.
    fn is_kept(&self, document: &Arc<str>) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(document)
    }

    /// Removes the tasks from the store.
    pub(super) async fn forget(&self, runner: &ToolRunner) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(document) = kept
            && let Err(error) = ServedRuns(runner).forget(ServedRun(&self.run).stored_id(), document).await
        {
            tracing::warn!(run = self.run.id(), error = error.code(), "finished tasks could not be removed");
        }
    }

    /// Returns the name of a call, `<run>.<call>`. The store has this name under the id in [`SavedTask::asked_as`].
    pub(super) fn named(&self, id: &CallId) -> Arc<str> {
        format!("{}.{id}", self.run.id()).into()
    }
}
