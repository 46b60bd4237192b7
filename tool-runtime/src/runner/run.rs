//! [`Run`]: one conversation or task of an agent, with its principal, its tools and its budgets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::call::{Caller, Event, EventSink, RunSummary};
use crate::capability::ConnectionId;
use crate::catalog::CatalogView;
use crate::hydrate::EvidenceSet;
use crate::policy::{BudgetExceeded, Ledger, LoopGuard, PolicyContext, RunTools};
use crate::runner::state::RunState;
use crate::runner::{Shared, overlooked};

/// Who a run acts for and what it may use. Everything has a default that allows no more than the policy does.
#[derive(Default)]
#[must_use]
pub struct RunOptions {
    pub(super) run_id: Option<Arc<str>>,
    pub(super) tools: Option<RunTools>,
    pub(super) session: Option<Arc<str>>,
    pub(super) conversation: Option<Arc<str>>,
    pub(super) agent: Option<Arc<str>>,
    pub(super) tenant: Option<Arc<str>>,
    pub(super) principal: Option<Arc<str>>,
    pub(super) roles: Vec<Arc<str>>,
    pub(super) labels: Vec<Arc<str>>,
    pub(super) connections: BTreeMap<String, ConnectionId>,
    pub(super) user_text: Vec<String>,
    pub(super) events: Option<Arc<dyn EventSink>>,
    pub(super) cancellation: CancellationToken,
    pub(super) caller: Caller,
}

impl RunOptions {
    /// No principal, no connections, every tool that the policy shows.
    pub fn new() -> Self {
        Self::default()
    }

    /// The only tools of this run, by exact name. The runner refuses others, whoever asks.
    pub fn tools<S: AsRef<str>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.tools = Some(tools.into_iter().collect());
        self
    }

    /// The id of the run; a fresh one by default.
    pub fn run_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.run_id = Some(id.into());
        self
    }

    /// The session, for records and logs.
    pub fn session(mut self, id: impl Into<Arc<str>>) -> Self {
        self.session = Some(id.into());
        self
    }

    /// The conversation, for records and logs.
    pub fn conversation(mut self, id: impl Into<Arc<str>>) -> Self {
        self.conversation = Some(id.into());
        self
    }

    /// The agent, for the tools' context.
    pub fn agent(mut self, id: impl Into<Arc<str>>) -> Self {
        self.agent = Some(id.into());
        self
    }

    /// The tenant that the run belongs to; brokers check it.
    pub fn tenant(mut self, id: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(id.into());
        self
    }

    /// The principal that the run acts for, as policies and records name it.
    pub fn principal(mut self, id: impl Into<Arc<str>>) -> Self {
        self.principal = Some(id.into());
        self
    }

    /// A role that the policy may name.
    pub fn role(mut self, role: impl Into<Arc<str>>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// A label that the policy may name.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.labels.push(label.into());
        self
    }

    /// The account to use for a kind of connection.
    pub fn connection(mut self, kind: impl Into<String>, id: ConnectionId) -> Self {
        self.connections.insert(kind.into(), id);
        self
    }

    /// What the user wrote: ids in it count as seen.
    pub fn user_text(mut self, text: impl Into<String>) -> Self {
        self.user_text.push(text.into());
        self
    }

    /// Takes the events of the run.
    pub fn events(mut self, sink: impl EventSink + 'static) -> Self {
        self.events = Some(Arc::new(sink));
        self
    }

    /// Cancels the run, its running tools included.
    pub fn cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = token;
        self
    }

    /// Who calls, for records.
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

/// One conversation or task. Cheap to clone; all clones are the same run.
#[derive(Clone)]
pub struct Run(pub(super) Arc<RunInner>);

pub(super) struct RunInner {
    pub(super) shared: Arc<Shared>,
    pub(super) options: RunOptions,
    pub(super) id: Arc<str>,
    pub(super) view: CatalogView,
    pub(super) ledger: Ledger,
    pub(super) loop_guard: LoopGuard,
    pub(super) evidence: Mutex<EvidenceSet>,
    /// Hears one turn of a conversation, in addition to the run's own sink.
    pub(super) listener: Mutex<Option<Arc<dyn EventSink>>>,
    state: Mutex<RunState>,
}

impl Run {
    pub(super) fn start(shared: Arc<Shared>, options: RunOptions) -> Self {
        let id = options.run_id.clone().unwrap_or_else(|| format!("run_{}", uuid::Uuid::new_v4().simple()).into());
        overlooked::in_options(&shared, &options, &id);
        let context = context(&id, &options, &options.labels);
        let view = shared.catalog.view(|entry| shared.visible(&context, entry));
        let mut evidence = EvidenceSet::new();
        options.user_text.iter().for_each(|text| evidence.insert_text(text));
        Self(Arc::new(RunInner {
            ledger: shared.policy.ledger(),
            loop_guard: shared.policy.loop_guard(),
            evidence: Mutex::new(evidence),
            listener: Mutex::default(),
            state: Mutex::new(RunState::with_labels(&options.labels)),
            view,
            id,
            options,
            shared,
        }))
    }

    /// The id of the run.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// What the model of this run may see.
    #[must_use]
    pub fn catalog(&self) -> &CatalogView {
        &self.0.view
    }

    /// Takes in what the user wrote: ids in it count as seen from now on.
    pub fn add_user_text(&self, text: &str) {
        self.evidence().insert_text(text);
    }

    /// Says that a new answer of the model begins, so that its failed calls count as one failed turn per tool.
    pub fn begin_turn(&self) {
        self.state().begin_turn();
    }

    /// One tool's arguments were wrong for the third turn running: the loop should stop asking the model.
    #[must_use]
    pub fn should_end_turn(&self) -> bool {
        self.state().end_turn
    }

    /// Accounts what the model itself consumed: tokens, and cost in the application's own unit.
    pub fn account(&self, tokens: u64, cost: f64) {
        self.0.ledger.charge(tokens, cost);
        let summary = &mut self.state().summary;
        summary.tokens += tokens;
        summary.cost += cost;
    }

    /// Tokens or cost of the run are used up: the model must not be asked again.
    #[must_use]
    pub fn exhausted(&self) -> Option<BudgetExceeded> {
        self.0.ledger.exhausted_for_model()
    }

    /// What the run did so far.
    #[must_use]
    pub fn summary(&self) -> RunSummary {
        self.state().summary.clone()
    }

    /// Fires when the run is cancelled.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.options.cancellation
    }

    /// Cancels the run: running tools are stopped, later calls end as `cancelled`.
    pub fn cancel(&self) {
        self.0.options.cancellation.cancel();
    }

    pub(super) fn evidence(&self) -> MutexGuard<'_, EvidenceSet> {
        self.0.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RunState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the policy is told of the run, with the labels it has by now.
    pub(super) fn context<'a>(&'a self, labels: &'a [Arc<str>]) -> PolicyContext<'a> {
        context(&self.0.id, &self.0.options, labels)
    }

    /// Whether any sink hears the run.
    pub(super) fn is_heard(&self) -> bool {
        self.0.options.events.is_some() || self.listener().is_some()
    }

    /// Emits an event to the run's sinks: call events from the runner, model events from the agent loop.
    pub fn emit(&self, event: Event) {
        let listener = self.listener();
        let hear = |sink: &Arc<dyn EventSink>, event| {
            // A sink's panic is not the tool's.
            if crate::contain::caught(|| sink.emit(event)).is_none() {
                tracing::error!(run = %self.0.id, "an event sink panicked");
            }
        };
        match (&self.0.options.events, &listener) {
            (Some(sink), Some(listener)) => {
                hear(sink, event.clone());
                hear(listener, event);
            }
            (Some(sink), None) | (None, Some(sink)) => hear(sink, event),
            (None, None) => {}
        }
    }
}

fn context<'a>(id: &'a str, options: &'a RunOptions, labels: &'a [Arc<str>]) -> PolicyContext<'a> {
    PolicyContext {
        run: id,
        caller: &options.caller,
        principal: options.principal.as_deref(),
        tenant: options.tenant.as_deref(),
        roles: &options.roles,
        labels,
        tools: options.tools.as_ref(),
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("id", &self.0.id).finish_non_exhaustive()
    }
}
