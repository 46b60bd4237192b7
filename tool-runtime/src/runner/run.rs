//! [`Run`]: one conversation or task of an agent, with its principal, its tools and its budgets.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::call::{CallId, Event, EventSink, RunFields, RunSummary};
use crate::catalog::CatalogView;
use crate::hydrate::EvidenceSet;
use crate::policy::{LoopGuard, RunPolicy, Spending};
use crate::runner::RunOptions;
use crate::runner::accounts::Accounts;
use crate::runner::contained::Contained;
use crate::runner::deciding::Decisions;
use crate::runner::failure::Failure;
use crate::runner::loops::Listener;
use crate::runner::problem::{self, RunProblem};
use crate::runner::shared::Shared;
use crate::runner::state::{Remembered, RunState};
use crate::runner::views::PartyView;
use crate::store::RunLease;

/// One conversation or task. Cheap to clone; all clones are the same run.
///
/// Every call of a run goes through [`exec`](Run::exec). A run takes at most 100,000 distinct call ids; calls after
/// that are refused as `budget_exceeded`.
///
/// ```
/// # use tool_runtime::{ToolCatalog, ToolError, ToolPolicy, tool};
/// use tool_runtime::{RunOptions, ToolCall, ToolRunner};
/// # /// Adds.
/// # #[tool(name = "math__add", effect = read_only, redact = ["$"])]
/// # fn add(
/// #     /// One.
/// #     a: i64,
/// #     /// Another.
/// #     b: i64,
/// # ) -> Result<i64, ToolError> { Ok(a + b) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// # let catalog = ToolCatalog::builder().tool::<add>().build()?;
/// # let policy = ToolPolicy::allow(["math__add"]);
///
/// let runner = ToolRunner::builder(catalog, policy).build()?;
/// let run = runner.run(RunOptions::new().principal("ada"));
/// let result = run.exec(ToolCall::text("c1", "math__add", r#"{"a":2,"b":3}"#)).await;
/// assert_eq!(result.to_model(), "5");
/// assert_eq!(run.summary().calls.values().sum::<u64>(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Run(Arc<RunInner>);

struct RunInner {
    shared: Arc<Shared>,
    options: RunOptions,
    /// What the context of each call says of the run. It and its id are allocated for this run alone, so that their addresses
    /// tell two runs of one id apart.
    fields: Arc<RunFields>,
    party: PartyView,
    policy: RunPolicy,
    problems: Vec<RunProblem>,
    events: Option<Contained<dyn EventSink>>,
    spending: Spending,
    accounts: Accounts,
    loop_guard: LoopGuard,
    evidence: Mutex<EvidenceSet>,
    remembered: Remembered,
    listener: Listener,
    decisions: Decisions,
}

impl Run {
    pub(super) fn start(shared: Arc<Shared>, policy: RunPolicy, mut options: RunOptions) -> Self {
        let id: Arc<str> = match &options.run_id {
            Some(id) => Arc::from(&**id),
            None => format!("run_{}", uuid::Uuid::new_v4().simple()).into(),
        };
        let context = options.context(&id, &options.labels);
        let party = shared.view(&policy, &context);
        let mut evidence = EvidenceSet::new();
        options.user_text.iter().for_each(|text| evidence.insert_text(text));
        let events = options.events.take().map(|sink| Contained::new(sink, shared.failures.clone()));
        let run = Self(Arc::new(RunInner {
            fields: Arc::new(options.fields(id)),
            spending: policy.spending(&options.caller),
            accounts: Accounts::of(&policy, options.tenant.as_ref(), options.principal.as_ref()),
            loop_guard: policy.loop_guard(options.unnamed_loop_guard()),
            evidence: Mutex::new(evidence),
            // A run whose id is given may have been another process's.
            remembered: Remembered::new(RunState::new(&options.labels, options.run_id.is_some())),
            problems: problem::of(&options, &shared),
            listener: Listener::default(),
            decisions: Decisions::default(),
            events,
            party,
            policy,
            options,
            shared,
        }));
        run.problems().iter().for_each(|problem| problem.log(run.id()));
        run
    }

    /// Returns the id of the run.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.fields.run_id
    }

    /// Returns the tools that the model of this run may see.
    #[must_use]
    pub fn catalog(&self) -> &CatalogView {
        &self.0.party.view
    }

    /// Returns the names in the run's options that its runner does not know. A run with problems is never wider than
    /// one without; each was logged when the run started.
    #[must_use]
    pub fn problems(&self) -> &[RunProblem] {
        &self.0.problems
    }

    /// The agent, if the application named one.
    pub(crate) fn agent_id(&self) -> Option<&str> {
        self.options().agent.as_deref()
    }

    /// The conversation, if the application named one.
    pub(crate) fn conversation_id(&self) -> Option<&str> {
        self.options().conversation.as_deref()
    }

    /// Adds what the user wrote to the evidence of the run: ids in it count as seen from now on.
    pub fn add_user_text(&self, text: &str) {
        // A model wrote what a graph is asked for.
        if self.parent().is_none() {
            self.evidence().insert_text(text);
        }
    }

    /// Marks the beginning of a turn of the model, so that the mistakes of all its calls count once.
    pub fn begin_turn(&self) {
        self.state().begin_turn();
    }

    /// Whether the model made the same mistake in a tool's arguments in three turns in a row: the loop should stop asking
    /// the model, and show the user the [`clarification`](Self::clarification). The same mistake is the same tool, pointer,
    /// keyword and expectation.
    #[must_use]
    pub fn should_end_turn(&self) -> bool {
        self.state().clarification.is_some()
    }

    /// Returns the request for clarification that is shown to the user: the tool that the model cannot call and the
    /// expected form of its arguments, without their values. `None` unless [`should_end_turn`](Self::should_end_turn).
    #[must_use]
    pub fn clarification(&self) -> Option<String> {
        self.state().clarification.clone()
    }

    /// Returns what the run did so far: its calls by outcome, its tokens and its cost.
    #[must_use]
    pub fn summary(&self) -> RunSummary {
        self.state().summary.clone()
    }

    /// Returns the token that fires when the run is cancelled.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.options().cancellation
    }

    /// Cancels the run: running tools are stopped, later calls end as `cancelled`.
    pub fn cancel(&self) {
        self.cancellation().cancel();
    }

    /// Whether a tool with effects began to run under this id and its result was never handed out: the caller's future
    /// was dropped, or it still runs. What such a call did is not known.
    #[must_use]
    pub fn may_have_begun(&self, call_id: &CallId) -> bool {
        self.state().began(call_id)
    }

    /// Emits an event to the run's sinks: call events from the runner, model events from the agent loop.
    pub fn emit(&self, event: Event) {
        match (&self.0.events, self.0.listener.get()) {
            (Some(sink), Some(listener)) => {
                sink.emit(event.clone());
                listener.emit(event);
            }
            (Some(sink), None) => sink.emit(event),
            (None, Some(listener)) => listener.emit(event),
            (None, None) => {}
        }
    }

    /// Logs a failure that belongs to no call, such as a model's, and reports it to the operators' sink.
    pub(crate) fn report(&self, what: &'static str, code: &str, text: &str) {
        self.report_failure(format_args!("{what}"), &self.failure(code, text));
    }

    pub(super) fn report_failure(&self, what: fmt::Arguments<'_>, failure: &Failure<'_>) {
        self.shared().failures.report(what, failure);
    }

    /// A failure with the ids of this run.
    pub(super) fn failure<'a>(&'a self, code: &'a str, text: &'a str) -> Failure<'a> {
        Failure {
            code,
            tool: None,
            call_id: None,
            run_id: Some(self.id()),
            session_id: self.options().session.as_deref(),
            conversation_id: self.options().conversation.as_deref(),
            error_type: None,
            is_record_lost: false,
            text,
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// What it may see, and what is known of its calls.
    pub(super) fn party(&self) -> &PartyView {
        &self.0.party
    }

    /// What decides for this run.
    pub(super) fn policy(&self) -> &RunPolicy {
        &self.0.policy
    }

    /// The worker's right to this run, if one holds it.
    pub(super) fn lease(&self) -> Option<RunLease> {
        self.options().lease.clone()
    }

    pub(super) fn options(&self) -> &RunOptions {
        &self.0.options
    }

    /// The id as the run itself holds it. Two runs never share it, even under one text.
    pub(super) fn identity(&self) -> &Arc<str> {
        &self.0.fields.run_id
    }

    /// What the context of each call says of the run.
    pub(super) fn fields(&self) -> &Arc<RunFields> {
        &self.0.fields
    }

    pub(crate) fn spending(&self) -> &Spending {
        &self.0.spending
    }

    pub(super) fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }

    pub(super) fn loop_guard(&self) -> &LoopGuard {
        &self.0.loop_guard
    }

    pub(super) fn seen(&self) -> &Mutex<EvidenceSet> {
        &self.0.evidence
    }

    pub(super) fn evidence(&self) -> MutexGuard<'_, EvidenceSet> {
        self.0.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RunState> {
        self.0.remembered.lock()
    }

    pub(super) fn remembered(&self) -> &Remembered {
        &self.0.remembered
    }

    /// Whether anybody takes the run's events.
    pub(super) fn is_heard(&self) -> bool {
        self.0.events.is_some() || self.0.listener.is_set()
    }

    pub(super) fn decisions(&self) -> &Decisions {
        &self.0.decisions
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.0.listener
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("id", &self.0.fields.run_id).finish_non_exhaustive()
    }
}
