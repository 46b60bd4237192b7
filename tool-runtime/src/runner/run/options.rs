//! [`RunOptions`]: the principal of a run and its permissions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::call::{Caller, Event, EventSink, RunFields};
use crate::capability::ConnectionId;
use crate::policy::{LoopThresholds, PolicyContext, RunTools, Standing, ToolNames};
use crate::runner::Run;
use crate::store::RunLease;

/// The principal of a run and its permissions. No default allows more than the policy does.
///
/// If the runner does not know a name (of a tool, a kind of connection, a role, an attribute or a label), it logs the
/// problem when the run starts, and [`Run::problems`](crate::runner::Run::problems) lists it.
///
/// ```
/// use tool_runtime::RunOptions;
///
/// let options = RunOptions::new()
///     .principal("ada@example.org")
///     .tenant("acme")
///     .role("buyer")
///     .attribute("department", "purchasing")
///     .conversation("c-17")
///     .tools(["parts__search", "stock__adjust"]);
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct RunOptions {
    pub(in crate::runner) run_id: Option<Arc<str>>,
    pub(in crate::runner) tools: Option<RunTools>,
    pub(in crate::runner) session: Option<Arc<str>>,
    pub(in crate::runner) conversation: Option<Arc<str>>,
    pub(in crate::runner) agent: Option<Arc<str>>,
    pub(in crate::runner) tenant: Option<Arc<str>>,
    pub(in crate::runner) principal: Option<Arc<str>>,
    pub(in crate::runner) roles: Vec<Arc<str>>,
    pub(in crate::runner) attributes: Vec<(Arc<str>, Arc<str>)>,
    pub(in crate::runner) labels: Vec<Arc<str>>,
    pub(in crate::runner) connections: BTreeMap<String, ConnectionId>,
    pub(in crate::runner) user_text: Vec<String>,
    pub(in crate::runner) events: Option<Arc<EventSink>>,
    /// In an `Arc`, because cloning a token takes a lock.
    pub(in crate::runner) cancellation: Arc<CancellationToken>,
    pub(in crate::runner) caller: Caller,
    /// The run that called the graph, if this is the run of a graph.
    pub(in crate::runner) parent: Option<Run>,
    /// Whether this is the run of a script. No grant applies to its calls.
    pub(in crate::runner) is_script: bool,
    /// The lease of the worker or of the engine's attempt that holds the run. `None` if neither holds it.
    pub(in crate::runner) lease: Option<RunLease>,
    /// Whether no other process continues the run after this one ends. Another process may then close its open calls.
    pub(in crate::runner) ends_with_process: bool,
}

impl RunOptions {
    /// Creates options without a principal or connections, and with every tool that the policy shows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the run to these tools, by exact name. The runner refuses calls of any other tool.
    pub fn tools(mut self, tools: impl ToolNames) -> Self {
        self.tools = Some(tools.into_names().into_iter().map(Into::into).collect());
        self
    }

    /// Sets the id of the run; a random one by default. Call ids are unique within a run, and idempotency keys depend
    /// on its id. A store has one run for each id, across all principals and tenants, so let no client choose the id.
    pub fn run_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.run_id = Some(id.into());
        self
    }

    /// Returns the id that [`run_id`](Self::run_id) set; `None` if the run gets a random one.
    ///
    /// ```
    /// use tool_runtime::RunOptions;
    ///
    /// assert_eq!(RunOptions::new().run_id("run-1").id(), Some("run-1"));
    /// assert_eq!(RunOptions::new().id(), None);
    /// ```
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }

    /// Sets the session, for records, logs and the tools' context.
    pub fn session(mut self, id: impl Into<Arc<str>>) -> Self {
        self.session = Some(id.into());
        self
    }

    /// Sets the conversation, for records, logs, spans and the tools' context.
    pub fn conversation(mut self, id: impl Into<Arc<str>>) -> Self {
        self.conversation = Some(id.into());
        self
    }

    /// Sets the agent, for spans and the tools' context.
    pub fn agent(mut self, id: impl Into<Arc<str>>) -> Self {
        self.agent = Some(id.into());
        self
    }

    /// Sets the tenant that the run belongs to, for policies, records and brokers.
    pub fn tenant(mut self, id: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(id.into());
        self
    }

    /// Sets the principal that the run acts for, by its name in policies and records.
    pub fn principal(mut self, id: impl Into<Arc<str>>) -> Self {
        self.principal = Some(id.into());
        self
    }

    /// Adds a role of the principal. Rules of the policy can name it.
    pub fn role(mut self, role: impl Into<Arc<str>>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// Adds a value to an attribute of the principal, such as a department, a clearance or a region. Rules of the
    /// policy can name the attribute. An attribute can have several values.
    pub fn attribute(mut self, name: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        let added = (name.into(), value.into());
        // Sorted, so that the order of the calls does not matter in a comparison.
        if let Err(place) = self.attributes.binary_search(&added) {
            self.attributes.insert(place, added);
        }
        self
    }

    /// Adds a label (a lasting mark, such as `untrusted`) to the run. Rules of the policy can name it.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.labels.push(label.into());
        self
    }

    /// Sets the account to use for a kind of connection.
    pub fn connection(mut self, kind: impl Into<String>, id: ConnectionId) -> Self {
        self.connections.insert(kind.into(), id);
        self
    }

    /// Adds text that the user wrote. The ids in it become evidence: the model may use them in arguments that accept
    /// only ids that the user wrote or an earlier result contained.
    pub fn user_text(mut self, text: impl Into<String>) -> Self {
        self.user_text.push(text.into());
        self
    }

    /// Sets the sink that receives the events of the run. It is called inline, so it must not block. Pass the event to
    /// another task. A panic in the sink is caught.
    ///
    /// ```
    /// use tool_runtime::RunOptions;
    ///
    /// let (sender, _receiver) = std::sync::mpsc::channel();
    /// let options = RunOptions::new().events(move |event| drop(sender.send(event)));
    /// ```
    pub fn events(mut self, sink: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.events = Some(Arc::new(sink));
        self
    }

    /// Sets the token that cancels the run, including its running tools.
    pub fn cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = Arc::new(token);
        self
    }

    /// Sets the source of the run's calls, for records and policies; by default [`Caller::Direct`], the agent loop or
    /// the application.
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl RunOptions {
    /// Sets the lease of a worker or of an engine's attempt. The store refuses a write of the run after the lease is
    /// lost.
    pub(crate) fn held(mut self, lease: RunLease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Marks the run as one that no other process continues after this one ends.
    #[cfg(feature = "mcp-server")]
    pub(crate) const fn ends_with_process(mut self) -> Self {
        self.ends_with_process = true;
        self
    }

    /// Returns the thresholds of the loop guard for a policy that sets none. The run of a server's session gets no loop
    /// guard, because it lasts for many conversations, and equal calls in different conversations are not a loop.
    pub(in crate::runner) fn unnamed_loop_guard(&self) -> LoopThresholds {
        if self.ends_with_process { LoopThresholds::NEVER } else { LoopThresholds::default() }
    }

    /// Returns the principal's roles and attributes.
    pub(in crate::runner) fn standing(&self) -> Standing {
        Standing { roles: self.roles.clone(), attributes: self.attributes.clone() }
    }

    /// Returns the fields of the run that the context of each call contains. `run_id` is the id of the run.
    pub(in crate::runner) fn fields(&self, run_id: Arc<str>) -> RunFields {
        RunFields {
            run_id,
            session_id: self.session.clone(),
            conversation_id: self.conversation.clone(),
            agent_id: self.agent.clone(),
            tenant: self.tenant.clone(),
            principal: self.principal.clone(),
            cancellation: Arc::clone(&self.cancellation),
        }
    }

    /// Returns the properties of the run that a policy may read, with these labels.
    pub(in crate::runner) fn context<'a>(&'a self, run: &'a str, labels: &'a [Arc<str>]) -> PolicyContext<'a> {
        PolicyContext {
            run,
            caller: &self.caller,
            principal: self.principal.as_deref(),
            attributes: &self.attributes,
            tenant: self.tenant.as_deref(),
            roles: &self.roles,
            labels,
            tools: self.tools.as_ref(),
        }
    }
}
