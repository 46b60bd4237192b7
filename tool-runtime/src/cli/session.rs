//! What the commands that run tools have in common: catalog, policy, runner and run.

use std::path::Path;
use std::sync::Arc;

use crate::call::{EventSink, ToolInvocationRecord};
use crate::cli::app::App;
use crate::cli::args::Global;
use crate::cli::exit::Failure;
use crate::policy::ToolPolicy;
use crate::runner::{Run, RunOptions, ToolRunner};
use crate::store::{MemoryStore, RecordFilter, Store};

/// The policy in force: `--policy`, the application's own, or none, which denies everything.
pub(super) fn policy(app: &App, global: &Global) -> Result<ToolPolicy, Failure> {
    match (&global.policy, app.policy) {
        (Some(path), _) => ToolPolicy::from_path(path).map_err(|error| Failure::usage(error.to_string())),
        (None, Some(text)) => ToolPolicy::from_toml(text)
            .map_err(|error| Failure::usage(format!("the policy that {} ships is broken: {error}", app.name))),
        (None, None) => Ok(ToolPolicy::deny_all()),
    }
}

/// A runner over the application's adapters, a run on it, and the store that holds its records.
pub(super) struct Session {
    pub(super) run: Run,
    pub(super) store: Arc<MemoryStore>,
}

impl Session {
    /// The records of the run so far, open ones last.
    pub(super) async fn records(&self) -> Result<Vec<ToolInvocationRecord>, Failure> {
        let failed = |error: crate::store::StoreError| Failure::failed(error.to_string());
        let mut records = self.store.records(&RecordFilter::default()).await.map_err(failed)?;
        records.extend(self.store.open_records(&RecordFilter::default()).await.map_err(failed)?);
        Ok(records)
    }
}

/// Opens the application's data and starts a run on it.
pub(super) fn start(
    app: &App,
    global: &Global,
    user_text: Option<&str>,
    events: Option<Arc<dyn EventSink>>,
) -> Result<Session, Failure> {
    let catalog = (app.collect)().map_err(|error| Failure::usage(error.to_string()))?;
    let policy = policy(app, global)?;
    let adapters = open(app, &global.data)?;
    let store = Arc::new(MemoryStore::new());
    let mut builder = ToolRunner::builder(catalog, policy)
        .capabilities(adapters.capabilities)
        .approvals(true)
        .store(Arc::clone(&store));
    if let Some(broker) = adapters.broker {
        builder = builder.broker(broker);
    }
    let runner = builder.build().map_err(|error| Failure::usage(error.to_string()))?;
    let mut options = RunOptions::new();
    for (kind, id) in adapters.connections {
        options = options.connection(kind, id);
    }
    if let Some(organisation) = adapters.organisation {
        options = options.tenant(organisation);
    }
    if let Some(user) = adapters.user {
        options = options.principal(user);
    }
    if let Some(text) = user_text {
        options = options.user_text(text);
    }
    if let Some(sink) = events {
        options = options.events(sink);
    }
    Ok(Session { run: runner.run(options), store })
}

fn open(app: &App, data: &Path) -> Result<crate::cli::Adapters, Failure> {
    (app.bind)(data).map_err(|error| Failure::usage(format!("cannot open the data folder {}: {error}", data.display())))
}
