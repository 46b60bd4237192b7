//! The runner and its gate, through which every call of a tool runs. This module knows no provider and no model.
//!
//! [`ToolRunner`] starts a [`Run`] for each conversation or task, and [`Run::exec`] runs the calls. A waiting call is
//! finished by [`Run::resume`] with a person's [`ApprovalDecision`], or by [`Run::client_result`].

mod builder;
mod error;
mod gate;
pub(crate) mod ledger;
mod report;
mod resumption;
pub(crate) mod run;
#[cfg(feature = "mcp-server")]
mod server_api;
mod shared;
pub(crate) mod tool_runner;
pub(crate) mod waiting;

pub use builder::RunnerBuilder;
#[cfg(feature = "mcp-server")]
pub(crate) use gate::call_client::KeepsCall;
pub(crate) use gate::call_client::{CallClient, ServerEntry};
pub(crate) use gate::graph::{Continued, GraphIdentity, Host, SEPARATOR, Work};
pub(crate) use gate::spans::METRICS;
pub(crate) use ledger::lease_time::LeaseTime;
pub(crate) use ledger::recover::{Known, shows};
pub use report::failure::Failure;
pub(crate) use run::Run;
pub(crate) use run::options::RunOptions;
pub use run::snapshot::RunSnapshot;
#[cfg(feature = "mcp-server")]
pub(crate) use server_api::{ServedRun, ServedRuns};
pub(crate) use tool_runner::ToolRunner;
pub use waiting::decision::ApprovalDecision;
pub use waiting::grant::Grant;
#[cfg(feature = "mcp-server")]
pub(crate) use waiting::outcome::{LaterOutcome, UnsettledCall};
pub(crate) use waiting::posting::By;
pub use waiting::resume_error::ResumeError;
#[cfg(feature = "tokens")]
pub use waiting::tokens::SealingKeys;
