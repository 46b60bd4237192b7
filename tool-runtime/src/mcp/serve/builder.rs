//! [`McpServerBuilder`]: builds a server from its name, the names of its tools, and its limits.
#![expect(deprecated, reason = "logging is part of every revision that this server supports")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};

use crate::error::BuildError;
use crate::mcp::serve::authenticator::Authenticator;
use crate::mcp::serve::error::McpServerError;
use crate::mcp::serve::listing::Listing;
use crate::mcp::serve::shutdown::Calls;
use crate::mcp::serve::tasks::{Limits, Tasks};
use crate::mcp::serve::{McpServer, Served};
use crate::policy::Window;
use crate::runner::ServedRuns;
use crate::runner::ToolRunner;

/// The default limit of concurrent calls.
const MAX_CALLS: usize = 1024;

/// The default limit of concurrent calls of one principal.
const MAX_CALLS_EACH: usize = 512;

/// The default limit of calls that are suspended as tasks.
const MAX_TASKS: usize = 1024;

/// The default duration of a session's run.
const WINDOW: Duration = Duration::from_secs(60 * 60);

/// The default limit of tasks of one principal.
const MAX_TASKS_EACH: usize = 64;

/// Builds an [`McpServer`]. Made by [`McpServer::builder`].
///
/// ```
/// use tool_runtime::mcp::serve::{McpServer, Peer};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let server = McpServer::builder(runner, |_: &Peer<'_>| Some(RunOptions::new().principal("ada")))
///     .name("office", "1.0.0")
///     .instructions("Tasks and calendars of the office.")
///     .max_calls(64)
///     .build()?;
/// # drop(server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct McpServerBuilder {
    runner: ToolRunner,
    authenticator: Box<dyn Authenticator>,
    name: (String, String),
    instructions: Option<String>,
    exposed: BTreeMap<String, String>,
    max_calls: usize,
    max_calls_each: usize,
    max_tasks: usize,
    max_tasks_each: usize,
    ask_clients: bool,
    has_approvers: bool,
}

impl McpServerBuilder {
    pub(super) fn new(runner: ToolRunner, authenticator: Box<dyn Authenticator>) -> Self {
        let name = (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self {
            runner,
            authenticator,
            name,
            instructions: None,
            exposed: BTreeMap::new(),
            max_calls: MAX_CALLS,
            max_calls_each: MAX_CALLS_EACH,
            max_tasks: MAX_TASKS,
            max_tasks_each: MAX_TASKS_EACH,
            ask_clients: false,
            has_approvers: true,
        }
    }

    /// Sets the name and the version of the server that clients see; by default, those of this library.
    pub fn name(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.name = (name.into(), version.into());
        self
    }

    /// Sets the server's instructions, which a client may pass to its model; by default the policy's `[mcp]
    /// instructions`.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Sets the name of a tool that clients see; by default, its name in the catalog. The tool may belong to an MCP
    /// server that has not listed its tools yet.
    pub fn expose(mut self, tool: impl Into<String>, name: impl Into<String>) -> Self {
        self.exposed.insert(tool.into(), name.into());
        self
    }

    /// Sets how many calls may run at a time, of all clients together; 1,024 by default, and 0 means 1. A call beyond
    /// the limit is refused with the error -32000 and `"code": "busy"`, before it reaches the gate. A second limit of
    /// the same size applies to subscriptions and held requests together: a further subscription is refused in the same
    /// way, and a further request is answered at once instead of being held.
    pub fn max_calls(mut self, calls: usize) -> Self {
        self.max_calls = calls.max(1);
        self
    }

    /// Sets how many calls and subscriptions to changes of the tool list, counted together, one principal of a tenant
    /// may have at a time; 512 by default, and 0 means 1. The server refuses a further one like a call beyond
    /// [`max_calls`](Self::max_calls).
    pub fn max_calls_per_principal(mut self, calls: usize) -> Self {
        self.max_calls_each = calls.max(1);
        self
    }

    /// Sets how many calls may be suspended at a time, of all clients together; 1,024 by default. The limit also counts
    /// running tasks, tasks that ended less than ten minutes ago, and results that their client has not fetched. A call
    /// beyond the limit is withdrawn, and refused with the error -32000, `"code": "too_many_tasks"` and the limit. With
    /// 0 the server has no tasks, but 1,024 calls may still be suspended.
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// Sets how many calls of one principal of a tenant may be suspended at a time; 64 by default. The limit counts the
    /// same calls and results as [`max_tasks`](Self::max_tasks). A call beyond the limit is withdrawn and refused, too.
    pub fn max_tasks_per_principal(mut self, tasks: usize) -> Self {
        self.max_tasks_each = tasks;
        self
    }

    /// Sets whether the server asks a client that supports forms to decide on the calls of its own principal; `false`
    /// by default. The server also asks the client to settle such a call if its outcome is unknown. The policy must let
    /// the principal decide (`own_calls`). The server cannot check that the client asks a person.
    pub fn ask_clients(mut self, ask: bool) -> Self {
        self.ask_clients = ask;
        self
    }

    /// Declares that no approver has access to the store of the runner. The server then refuses a call that would wait
    /// for a person, with the error -32000 and `"code": "no_decider"`. A client that may decide itself
    /// ([`ask_clients`](Self::ask_clients)) gets the question instead. By default, the server assumes that approvers
    /// have access to a store that the application set, and [`build`](Self::build) refuses the default store if calls
    /// can be suspended.
    pub fn without_approvers(mut self) -> Self {
        self.has_approvers = false;
        self
    }

    /// Builds the server. Tools that the application's own clients execute are left out.
    ///
    /// # Errors
    /// An exposed tool does not exist and no MCP server can list it later, or a client of the application executes it.
    /// An exposed name is one that clients may reject, or two tools have the same name. The schema of a tool that the
    /// policy allows marks an argument for a header (`x-mcp-header`), and the mark is invalid.
    ///
    /// It is also an error if calls can be suspended for an approval that no person can give: the runner has approvals
    /// and its default store, and the client may not decide either, because [`ask_clients`](Self::ask_clients) or the
    /// policy does not allow it. After [`without_approvers`](Self::without_approvers) it is not an error. A call can be
    /// suspended by a rule of the policy, or because the outcome of an earlier call with the same arguments or the same
    /// effect key (`once`) is unknown.
    pub fn build(self) -> Result<McpServer, BuildError> {
        let Self { runner, authenticator, name: (name, version), instructions, exposed, .. } = self;
        let Self { max_calls, max_calls_each, max_tasks, max_tasks_each, ask_clients, has_approvers, .. } = self;
        let listing = Listing::of(&runner, exposed)?;
        let rules = if has_approvers { ServedRuns(&runner).undecidable(ask_clients) } else { Vec::new() };
        if !rules.is_empty() {
            return Err(McpServerError::Unreachable { rules }.into());
        }
        let has_approvers = has_approvers && !ServedRuns(&runner).keeps_to_itself();
        let rule = &runner.policy().data().mcp;
        let (hold, window) = (rule.hold.map(Window::length), rule.window.map_or(WINDOW, Window::length));
        // Logging is deprecated in 2026-07-28, but still a part of it.
        let capabilities = ServerCapabilities::builder().enable_tools().enable_logging();
        let may_change = runner.catalog().may_change();
        let capabilities = if may_change { capabilities.enable_tool_list_changed() } else { capabilities };
        let capabilities = if max_tasks > 0 { capabilities.enable_tasks().build() } else { capabilities.build() };
        let mut config = ServerConfig::new(capabilities).with_server_info(Implementation::new(name, version));
        config.instructions = instructions.or_else(|| rule.instructions.clone());
        let limits = Limits { tasks: max_tasks, each: max_tasks_each, asks: ask_clients, has_approvers, hold };
        let (calls, tasks) = (Calls::new(max_calls, max_calls_each), Tasks::new(limits));
        Ok(McpServer(Arc::new(Served {
            runner,
            authenticator,
            listing,
            config,
            calls,
            tasks,
            window,
            looks_after: AtomicBool::new(false),
        })))
    }
}

impl fmt::Debug for McpServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerBuilder").field("exposed", &self.exposed).finish_non_exhaustive()
    }
}
