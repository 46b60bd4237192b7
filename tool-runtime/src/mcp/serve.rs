//! Serves the tools of a runner over the Model Context Protocol (feature `mcp-server`).
//!
//! ```
//! use tool_runtime::mcp::serve::{McpServer, Peer};
//! use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
//!
//! /// Adds two numbers.
//! #[tool(name = "math__add", effect = read_only, redact = ["$"])]
//! fn add(
//!     /// The first.
//!     a: i64,
//!     /// The second.
//!     b: i64,
//! ) -> Result<i64, ToolError> {
//!     Ok(a + b)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let catalog = ToolCatalog::builder().tool::<add>().build()?;
//! let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["math__add"])).build()?;
//! let server = McpServer::builder(runner, |_: &Peer<'_>| Some(RunOptions::new().principal("ada")))
//!     .name("calculator", "1.0.0")
//!     .expose("math__add", "add")
//!     .build()?;
//! // In a tokio runtime: `server.stdio().await?`
//! # drop(server);
//! # Ok(())
//! # }
//! ```
//!
//! A client sees the tools that its run may use, sorted by name. Each call passes the gate
//! ([`Run::exec`](crate::Run::exec)), which applies the policy, redacts the result and records the call. The client
//! receives the part of a result that everyone may see (`redact`); fields that only the application's own model may see
//! (`model`) are omitted. The principal of a request comes from the [`Authenticator`], never from the client. A call
//! that needs an approval becomes a task (SEP-2663) if its client supports tasks. For any other client the server holds
//! the request open for the policy's `[mcp] hold` (by default not at all). It holds the request longer in three cases:
//! for up to half a minute while it carries out a posted decision, for up to ten minutes while the client has a
//! question, and until the end of a call that runs. If the call is still suspended then, the server answers `approval_required`.
//! If the client repeats the call, it gets the outcome. An operator decides on the call. The client may decide only if
//! both [`McpServerBuilder::ask_clients`] and the policy's `own_calls` allow it.
//!
//! A stdio connection, or an HTTP session, uses one run at a time. A new run starts when the policy's `[mcp] window`
//! (an hour by default) has passed, or when a run without a budget has had many calls. The protocol revision 2026-07-28
//! has no HTTP sessions, so each request is a separate run, without the labels and the evidence (ids that results
//! showed) of earlier requests.
//!
//! The gate reads the arguments of a call as its client wrote them: a repeated key is refused, and a number keeps its
//! digits. `rmcp` traces whole requests and results. A `tracing` subscriber that must not see values has to filter out
//! the target `rmcp`.

mod abandoned;
mod answer;
mod auth;
mod authenticator;
mod body;
mod builder;
mod calls;
mod changes;
mod client;
mod delivery;
mod error;
mod expiry;
mod handler;
mod heads;
mod http;
mod listing;
mod options;
mod params;
mod raw;
mod seats;
mod session;
mod sessions;
mod shutdown;
mod strict;
mod tasks;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use auth::{Authorization, Verified};
pub use authenticator::{Authenticator, Peer};
pub use builder::McpServerBuilder;
pub use http::HttpService;
pub use options::HttpOptions;

use rmcp::model::ServerConfig;

use crate::mcp::serve::listing::Listing;
use crate::mcp::serve::shutdown::Calls;
use crate::mcp::serve::tasks::Tasks;
use crate::runner::ToolRunner;

/// An MCP server for the tools of a runner. It is cheap to clone, and all clones are the same server.
///
/// Made by [`McpServer::builder`].
///
/// ```no_run
/// use tool_runtime::error::BuildError;
/// use tool_runtime::mcp::serve::{McpServer, Peer};
/// use tool_runtime::{RunOptions, ToolRunner};
///
/// /// Serves a runner's tools to the program that started this one.
/// async fn serve(runner: ToolRunner) -> Result<(), BuildError> {
///     let server = McpServer::builder(runner, |_: &Peer<'_>| Some(RunOptions::new().principal("ada"))).build()?;
///     server.stdio().await
/// }
/// ```
#[derive(Clone)]
pub struct McpServer(Arc<Served>);

/// The state that all connections share.
struct Served {
    runner: ToolRunner,
    authenticator: Box<dyn Authenticator>,
    listing: Listing,
    config: ServerConfig,
    calls: Calls,
    tasks: Tasks,
    /// How long the run of a session lasts.
    window: Duration,
    /// Whether the task that closes calls of dead server processes has been started.
    looks_after: AtomicBool,
}

impl McpServer {
    /// Returns a builder of a server. `authenticator` returns the party (the principal with its tenant, roles and other
    /// rights) that each request acts for.
    pub fn builder(runner: ToolRunner, authenticator: impl Authenticator + 'static) -> McpServerBuilder {
        McpServerBuilder::new(runner, Box::new(authenticator))
    }

    /// Closes the server. It refuses new connections and calls, and cancels calls that still run after `grace`. Returns
    /// when the calls have ended and written their records, at most five seconds after `grace`. The connections end
    /// after that. The future of [`bind`](Self::bind) resolves when the last connection has ended.
    pub async fn close(&self, grace: Duration) {
        self.0.calls.close(grace).await;
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("tools", &self.0.listing.len()).finish_non_exhaustive()
    }
}
