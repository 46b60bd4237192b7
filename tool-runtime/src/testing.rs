//! A preset runner for tests of tools, whose calls pass the same gate as in production, and [`conformance`] for stores.

use crate::capability::Capabilities;
use crate::catalog::ToolCatalog;
use crate::error::BuildError;
use crate::policy::ToolPolicy;
use crate::runner::{Run, RunOptions, ToolRunner};

/// The promises of every [`Store`](crate::store::Store), as cases that any implementation can run.
pub mod conformance {
    pub use crate::store::conformance::{check, document, record};
}

/// A run over a catalog whose policy allows every tool in it by name, with records in memory.
///
/// Everything else is as in production: arguments are validated, outputs redacted, calls recorded. A tool with
/// `no_schema_mode = approve_each` waits, and [`Run::resume`] takes the decision.
///
/// # Errors
/// A tool needs a capability that is not bound, or a connection: those need a [`ToolRunner`] with a broker.
pub fn run(catalog: ToolCatalog, capabilities: Capabilities) -> Result<Run, BuildError> {
    let policy = ToolPolicy::allow(catalog.specs().map(|spec| spec.name.to_string()));
    let runner = ToolRunner::builder(catalog, policy).capabilities(capabilities).approvals(true).build()?;
    Ok(runner.run(RunOptions::new()))
}
