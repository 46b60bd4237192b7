//! The gate: the only place through which a tool runs. It knows no provider and no model.

mod accounts;
mod admissions;
mod approval;
mod asking;
mod books;
mod builder;
mod call_client;
mod client;
mod contained;
mod deciding;
mod deliver;
mod digests;
mod draft;
mod ending;
mod engine_lease;
mod error;
mod exec;
mod failure;
mod forsaken;
mod granted;
mod graph;
mod invoke;
mod late;
mod loops;
mod mistakes;
mod names;
mod offer;
mod open;
mod options;
mod posting;
mod problem;
mod recover;
mod remember;
mod restore;
mod resume_error;
mod run;
mod search;
mod seen;
#[cfg(feature = "mcp-server")]
mod served;
mod settle;
mod shared;
mod snapshot;
mod spans;
mod stages;
mod state;
mod suspend;
mod telemetry;
#[cfg(feature = "tokens")]
mod token;
mod unfinished;
mod views;
mod waiting;

use std::fmt;
use std::sync::Arc;

pub use approval::ApprovalDecision;
pub use builder::RunnerBuilder;
#[cfg(feature = "mcp-server")]
pub(crate) use call_client::KeepsCall;
pub(crate) use call_client::{CallClient, ServerEntry};
pub use engine_lease::EngineLease;
pub use error::RunnerError;
pub use failure::Failure;
pub(crate) use graph::{Continued, Host, SEPARATOR, Work, Worker};
pub use options::RunOptions;
pub use problem::RunProblem;
pub(crate) use recover::{Known, shows};
pub use remember::{GrantError, Remember};
pub use restore::RestoreError;
pub use resume_error::ResumeError;
pub use run::Run;
pub use search::search_tools;
pub use snapshot::RunSnapshot;
pub(crate) use spans::METRICS;
#[cfg(feature = "tokens")]
pub use token::{TokenError, TokenKeys};

use crate::catalog::{CatalogError, ToolCatalog};
use crate::policy::{RunPolicy, ToolPolicy};
use crate::runner::shared::Shared;
use crate::store::Store;

/// Runs tools: one catalog, one policy, the adapters of one application. Cheap to clone.
///
/// Made by [`ToolRunner::builder`] and [`RunnerBuilder::build`]; each conversation gets a [`Run`].
#[derive(Clone)]
pub struct ToolRunner {
    shared: Arc<Shared>,
}

impl ToolRunner {
    /// Returns a builder of a runner. The catalog and the policy have no safe default.
    pub fn builder(catalog: impl Into<Arc<ToolCatalog>>, policy: ToolPolicy) -> RunnerBuilder {
        RunnerBuilder::new(catalog.into(), policy)
    }

    /// Starts a run: one conversation or one task of an agent.
    #[must_use]
    pub fn run(&self, options: RunOptions) -> Run {
        Run::start(Arc::clone(&self.shared), RunPolicy::new(self.shared.policy.clone()), options)
    }

    /// Compiles every validator now, for applications that want to pay before the first call.
    ///
    /// # Errors
    /// The schemas that do not compile.
    pub fn warm(&self) -> Result<(), CatalogError> {
        self.shared.compiled.warm(&self.shared.catalog)
    }

    /// Returns the catalog.
    #[must_use]
    pub fn catalog(&self) -> &ToolCatalog {
        &self.shared.catalog
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &ToolPolicy {
        &self.shared.policy
    }

    /// The schema of what everyone may see of a tool's output; `None` if nobody said what the output is.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn shown_schema(&self, entry: &crate::catalog::Entry) -> Option<serde_json::Value> {
        let projector = self.shared.compiled.projector(entry)?;
        Some(projector.shown_schema(&entry.payload.as_ref()?.to_value()))
    }

    /// Where records and pending calls are kept.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store_of_application
    }
}

impl fmt::Debug for ToolRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRunner").field("tools", &self.shared.catalog.len()).finish_non_exhaustive()
    }
}
