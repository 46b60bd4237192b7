//! [`Run`]: one conversation or task of an agent, with its principal, its tools and its budgets.
//!
//! The file is long because it has every method that only reads or changes the state of a run. The method that runs a
//! call is in [`exec`](crate::runner::gate::exec); methods that finish a waiting call are in
//! [`resumption`](crate::runner::resumption).

pub(super) mod call_ids;
pub(super) mod listener;
pub(super) mod mistakes;
pub(super) mod offer;
pub(crate) mod options;
pub(super) mod problem;
pub(super) mod restore;
#[cfg(feature = "mcp-server")]
pub(super) mod rights;
#[cfg(feature = "picking")]
pub(super) mod search;
pub(super) mod snapshot;
pub(super) mod state;
pub(super) mod views;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::call::usage::Usage;
use crate::call::{CallId, Decider, DecisionError, Event, EventSink, RunFields, RunSummary, Violation};
use crate::catalog::CatalogView;
#[cfg(feature = "picking")]
use crate::catalog::{Pick, PickOptions, Scorer, scored};
use crate::contain::discard;
use crate::error::ParseError;
use crate::hydrate::EvidenceSet;
use crate::json::Tree;
use crate::policy::{Allowance, BudgetExceeded, Decided, LoopGuard, PolicyContext, RunPolicy, Spend, Spending};
use crate::runner::ledger::accounts::Accounts;
use crate::runner::ledger::digests::Digests;
use crate::runner::report::contained::Contained;
use crate::runner::report::failure::Failure;
use crate::runner::run::listener::Listener;
use crate::runner::run::state::{Remembered, RunState};
use crate::runner::shared::Shared;
use crate::runner::waiting::decision_lock::DecisionLocks;
use crate::runner::{ResumeError, RunOptions};
use crate::store::{Balance, Key, PendingCall, RunLease, StoreError};
use crate::text::random_id;
#[cfg(feature = "agent")]
use crate::tool::Hash;
use crate::tool::{Schema, ToolEffect};

/// One conversation or task. Cheap to clone; all clones are the same run.
///
/// Every call of a run passes the gate; [`exec`](Run::exec) runs one. A run takes at most 100,000 distinct call ids;
/// calls with further ids are refused as `budget_exceeded`.
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
    /// The fields of the run that the context of each call contains. The value and its id are allocated for this run
    /// alone, so their addresses distinguish two runs with equal ids.
    fields: Arc<RunFields>,
    view: Arc<CatalogView>,
    policy: RunPolicy,
    problems: Vec<ParseError>,
    events: Option<Contained<EventSink>>,
    spending: Spending,
    accounts: Accounts,
    loop_guard: LoopGuard,
    evidence: Mutex<EvidenceSet>,
    remembered: Remembered,
    listener: Listener,
    decisions: DecisionLocks,
}

impl Run {
    pub(super) fn start(shared: Arc<Shared>, policy: RunPolicy, mut options: RunOptions) -> Self {
        let id: Arc<str> = match &options.run_id {
            Some(id) => Arc::from(&**id),
            None => format!("run_{}", random_id().simple()).into(),
        };
        let context = options.context(&id, &options.labels);
        let view = shared.view(&policy, &context);
        let mut evidence = EvidenceSet::new();
        options.user_text.iter().for_each(|text| evidence.insert_text(text));
        let events = options.events.take().map(|sink| Contained::new(sink, shared.failures.clone()));
        let run = Self(Arc::new(RunInner {
            fields: Arc::new(options.fields(id)),
            spending: policy.spending(&options.caller),
            accounts: Accounts::of(&policy, options.tenant.as_ref(), options.principal.as_ref()),
            loop_guard: policy.loop_guard(options.unnamed_loop_guard()),
            evidence: Mutex::new(evidence),
            // If the options set the id, an earlier process might have begun calls of the run.
            remembered: Remembered::new(RunState::new(&options.labels, options.run_id.is_some())),
            problems: problem::of(&options, &shared),
            listener: Listener::default(),
            decisions: DecisionLocks::default(),
            events,
            view,
            policy,
            options,
            shared,
        }));
        run.problems().iter().for_each(|problem| problem::log(problem, run.id()));
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
        &self.0.view
    }

    /// Returns a problem for each name in the run's options that neither the catalog nor the policy contains. Such a
    /// name grants nothing. The problems were logged when the run started.
    #[must_use]
    pub fn problems(&self) -> &[ParseError] {
        &self.0.problems
    }

    /// Returns the agent's id, if the application set one.
    pub(crate) fn agent_id(&self) -> Option<&str> {
        self.options().agent.as_deref()
    }

    /// Returns the conversation's id, if the application set one.
    pub(crate) fn conversation_id(&self) -> Option<&str> {
        self.options().conversation.as_deref()
    }

    /// Adds text that the user wrote to the evidence of the run: the ids that the user wrote or a result contained. The
    /// model may use these ids in arguments that require evidence.
    pub fn add_user_text(&self, text: &str) {
        // A model wrote the input of a graph, so it is not evidence.
        if self.parent().is_none() {
            self.evidence().insert_text(text);
        }
    }

    /// Marks the beginning of a turn of the model. The same mistake in several calls of one turn counts once.
    pub fn begin_turn(&self) {
        self.state().begin_turn();
    }

    /// Whether the model called a tool with the same mistake in its arguments in three turns. The agent loop should
    /// then stop asking the model, and show the user the [`clarification`](Self::clarification).
    ///
    /// Mistakes are the same if their tool is the same and their [`Violation`]s have equal `pointer`, `keyword` and
    /// `expected`. Arguments that cannot be parsed are one such mistake of their tool. Turns without a call of the tool
    /// do not count. A valid call of the tool, or a turn with only other mistakes in it, starts the count again.
    #[must_use]
    pub fn should_end_turn(&self) -> bool {
        self.state().clarification.is_some()
    }

    /// Returns a request for clarification to show to the user. It names the tool that the model cannot call and the
    /// expected form of its arguments, without their values. `None` unless [`should_end_turn`](Self::should_end_turn).
    #[must_use]
    pub fn clarification(&self) -> Option<String> {
        self.state().clarification.clone()
    }

    /// Returns the budgets that the policy sets for the run, with the used amounts. They include the budgets that the
    /// run shares with other runs of its principal and tenant.
    ///
    /// ```
    /// use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let policy = ToolPolicy::from_toml("[budgets.run]\ncalls = 10\n[budgets.tenant]\nwindow = \"1d\"\ncalls = 100")?;
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, policy).build()?;
    /// let balances = runner.run(RunOptions::new().tenant("acme")).balances().await?;
    /// assert_eq!((balances[0].holder, balances[0].amounts["calls"]), ("run", (0.0, 10.0)));
    /// assert_eq!((balances[1].holder, balances[1].window.as_deref()), ("tenant", Some("1d")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store cannot be reached, or its documents cannot be read.
    pub async fn balances(&self) -> Result<Vec<Balance>, StoreError> {
        let options = self.options();
        let party = (options.tenant.as_ref(), options.principal.as_ref());
        let store = &self.shared().store_of_application;
        Balance::all(&**store, self.policy(), self.spent(), party).await
    }

    /// Returns a summary of the run so far: its calls by outcome, its tokens and its cost.
    #[must_use]
    pub fn summary(&self) -> RunSummary {
        self.state().summary.clone()
    }

    /// Returns the token that fires when the run is cancelled.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.options().cancellation
    }

    /// Cancels the run. Running tools are stopped, and later calls end as `cancelled`.
    pub fn cancel(&self) {
        self.cancellation().cancel();
    }

    /// Whether a tool with effects began to run under this id and its result was not returned, because the call still
    /// runs or the caller dropped its future. It is unknown whether such a call took effect.
    #[must_use]
    pub fn may_have_begun(&self, call_id: &CallId) -> bool {
        self.state().began(call_id)
    }

    /// Returns the stored document of a waiting call of this run. `None` if the call does not wait, or belongs to
    /// another principal or tenant.
    ///
    /// # Errors
    /// The store cannot be reached, or its documents cannot be read.
    pub async fn pending(&self, call_id: &CallId) -> Result<Option<PendingCall>, StoreError> {
        let waiting = self.shared().store.waiting(self.waiting_key(call_id)).await;
        let waiting = waiting.map_err(|error| self.store_unread(error))?.map(|waiting| waiting.call);
        Ok(waiting.filter(|call| self.owns(call.principal.as_deref(), call.tenant.as_deref())))
    }

    /// Charges a model's usage to the budgets of the run, its principal and its tenant: tokens by kind, and cost in the
    /// application's own unit. A cost that is negative or not a number counts as 0.
    ///
    /// The amounts of principal and tenant are in the store. This method does not wait for their write;
    /// [`exhausted`](Self::exhausted) does.
    pub fn account(&self, usage: Usage, cost: f64) {
        let used = Spend::turn(usage, cost);
        self.spending().charge(used);
        self.state().charge(usage, cost);
        // The parent has the same principal and tenant, so their accounts are charged only once, below.
        if let Some(parent) = self.parent() {
            parent.spending().charge(used);
            parent.state().charge(usage, cost);
        }
        self.accounts().add(&self.shared().store, used);
    }

    /// Returns a budget of turns, tokens or cost that is used up. The agent loop must then send no further request to
    /// the model. `None` while each of these budgets has some left.
    ///
    /// # Errors
    /// The policy has budgets of principals or tenants, and the store could not be read or could not charge an earlier
    /// turn. The agent loop must send no request in this case either.
    pub async fn exhausted(&self) -> Result<Option<BudgetExceeded>, StoreError> {
        let parent = || self.parent().and_then(|parent| parent.spending().exhausted_for_model());
        if let Some(exceeded) = self.spending().exhausted_for_model().or_else(parent) {
            return Ok(Some(exceeded));
        }
        if self.accounts().all().is_empty() {
            return Ok(None);
        }
        self.accounts().overdrawn(&self.shared().store).await.map_err(|error| self.store_unread(error))
    }

    /// Sends an event to the run's sinks. The runner emits the events of calls; the agent loop emits the events of the
    /// model.
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

    /// Whether `is` accepts a budget of the run, of its parent run, of its principal or of its tenant.
    pub(crate) fn has_budget(&self, is: fn(&Allowance) -> bool) -> bool {
        self.spending().any(is)
            || self.accounts().all().iter().any(|account| is(account.allowance()))
            || self.parent().is_some_and(|parent| parent.spending().any(is))
    }

    /// Returns the amounts that the run has spent so far.
    pub(crate) fn spent(&self) -> Spend {
        self.spending().spent().plus(self.state().counted())
    }

    /// Loads visible tools in addition to the tools loaded before. Returns the part of `names` that is loaded now.
    /// Later requests offer the model only loaded tools.
    pub(crate) fn load<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
        offer::load(self.remembered(), self.catalog(), offer::MAX_LOADED_TOOLS, names)
    }

    /// Loads the tools that the application requests, without a maximum number.
    pub(crate) fn load_all<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        offer::load(self.remembered(), self.catalog(), usize::MAX, names);
    }

    /// Whether the model is offered only a subset of its tools.
    pub(crate) fn is_picking(&self) -> bool {
        self.state().offered().is_some()
    }

    /// Returns the tools that the model is offered now, in the order of loading; `None` if it is offered all visible
    /// tools.
    pub(crate) fn offered(&self) -> Option<Arc<CatalogView>> {
        offer::offered(self.remembered(), &self.0.view)
    }

    /// Returns the rules about tools for the system prompt. They are the same in every request of the run.
    pub(crate) fn guidance(&self) -> String {
        offer::guidance(self.remembered(), self.catalog())
    }

    /// Returns the effect that the policy gives a tool. `None` if there is no such tool.
    pub(crate) fn effect_of(&self, name: &str) -> Option<ToolEffect> {
        let shared = self.shared();
        shared.catalog.get(name).map(|spec| self.policy().effect_of(name, spec.effect))
    }

    /// Returns the maximum number of `read_only` calls of one turn that run at the same time; at least one.
    pub(crate) fn parallel(&self) -> usize {
        self.policy().parallel()
    }

    /// Returns the reason why a person may not decide on a call of this tool in this run. `None` if the person may.
    pub(crate) fn bars(&self, tool: &str, decider: &Decider) -> Option<DecisionError> {
        self.policy().bars(decider, &self.decided(tool))
    }

    /// Whether a call of this tool needs more approvals than there are people who may decide on it.
    pub(crate) fn is_undecidable(&self, tool: &str, required: u32) -> bool {
        let admitted = self.policy().admitted(&self.decided(tool));
        admitted.is_some_and(|admitted| usize::try_from(required).is_ok_and(|required| required > admitted))
    }

    fn decided<'a>(&'a self, tool: &'a str) -> Decided<'a> {
        let options = self.options();
        // If the catalog no longer has the tool, assume the greatest effect.
        let effect = self.shared().catalog.get(tool).map_or(ToolEffect::ExternalSideEffect, |spec| spec.effect);
        Decided { tool, effect, principal: options.principal.as_deref(), tenant: options.tenant.as_deref() }
    }

    /// Returns the highest number of approvals that any rule of the policy can require of a call of this tool.
    pub(crate) fn most_required(&self, tool: &str) -> u32 {
        let effect = self.shared().catalog.get(tool).map_or(ToolEffect::ExternalSideEffect, |spec| spec.effect);
        self.policy().most_required(tool, effect)
    }

    /// Checks a value against a schema that belongs to no tool, with the runner's validator.
    pub(crate) fn check_value(&self, schema: &Schema, value: &Tree<'_>) -> Result<(), Vec<Violation>> {
        self.shared().compiled.check_value(schema, value)
    }

    /// Sets or removes a sink that receives the run's events in addition to the run's own sink.
    pub(crate) fn listen(&self, sink: Option<Arc<EventSink>>) {
        let failures = &self.shared().failures;
        self.listener().set(sink.map(|sink| Arc::new(Contained::new(sink, failures.clone()))));
    }

    /// Returns the run that called the graph, if this is the run of a graph; otherwise `None`.
    pub(super) fn parent(&self) -> Option<&Self> {
        self.options().parent.as_ref()
    }

    /// Whether documents with this principal and tenant belong to the run. An application may take run ids from
    /// requests, so runs of different principals can have the same id.
    pub(super) fn owns(&self, principal: Option<&str>, tenant: Option<&str>) -> bool {
        let options = self.options();
        options.principal.as_deref() == principal && options.tenant.as_deref() == tenant
    }

    /// Returns the key of the document of a waiting call of this run.
    pub(super) fn waiting_key(&self, call_id: &CallId) -> Key {
        let options = self.options();
        Key::waiting(Arc::clone(self.identity()), options.tenant.as_deref(), options.principal.as_deref(), call_id)
    }

    /// Returns the keys that each write of the run locks: the run's own key and, for the run of a graph, also the key
    /// of the run whose lease the graph's run has.
    pub(super) fn keys(&self) -> Vec<Key> {
        let held = self.lease().map(|lease| lease.run_id).filter(|held| held != self.identity());
        [Some(self.identity().clone()), held].into_iter().flatten().map(Key::run_head).collect()
    }

    /// Returns the run's current labels.
    pub(super) fn labels(&self) -> Vec<Arc<str>> {
        self.remembered().labels().map(|labels| labels.to_vec()).unwrap_or_default()
    }

    /// Passes the policy and the properties of the run, with its current labels, to `ask`.
    pub(super) fn ask<T>(&self, ask: impl FnOnce(&RunPolicy, &PolicyContext<'_>) -> T) -> T {
        let labels = self.remembered().labels();
        ask(self.policy(), &self.options().context(self.id(), labels.as_deref().unwrap_or_default()))
    }

    /// Returns the runner's [`Digests`]. If they have no key yet, first reads the store's. If that fails, they use a
    /// key that only this runner has.
    pub(super) async fn digests(&self) -> &Digests {
        let shared = self.shared();
        if !shared.digests.has_key() {
            match Box::pin(shared.store.digest_key()).await {
                Ok(key) => shared.digests.set_key(key),
                Err(error) => discard(self.store_unread(error)),
            }
        }
        &shared.digests
    }

    /// Reports a failure of the store that kept a waiting call from being finished.
    pub(super) fn store_failed(&self, error: StoreError) -> ResumeError {
        ResumeError::Store(self.store_unread(error))
    }

    /// Reports a failure of the store that belongs to no call.
    pub(super) fn store_unread(&self, error: StoreError) -> StoreError {
        self.report("the store failed", error.code(), &error.detail());
        error
    }

    /// Returns the hash of catalog and policy.
    #[cfg(feature = "agent")]
    pub(crate) fn version(&self) -> Hash {
        self.shared().version()
    }

    /// Logs a failure that belongs to no call, such as a model's, and reports it to the operators' sink.
    pub(crate) fn report(&self, what: &'static str, code: &str, text: &str) {
        self.report_failure(format_args!("{what}"), &self.failure(code, text));
    }

    pub(super) fn report_failure(&self, what: fmt::Arguments<'_>, failure: &Failure<'_>) {
        self.shared().failures.report(what, failure);
    }

    /// Returns a failure with the ids of this run.
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

    /// Returns the application's adapter for a capability. `None` if there is none.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn adapter<T: ?Sized + 'static>(&self) -> Option<Arc<T>> {
        let bound = self.shared().capabilities.get(std::any::TypeId::of::<T>())?;
        bound.downcast_ref::<Arc<T>>().cloned()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Returns the policies of this run: the runner's policy, and the policies under which earlier processes ran it.
    pub(super) fn policy(&self) -> &RunPolicy {
        &self.0.policy
    }

    /// Returns the lease of the worker or engine that holds this run, if there is one.
    pub(super) fn lease(&self) -> Option<RunLease> {
        self.options().lease.clone()
    }

    pub(super) fn options(&self) -> &RunOptions {
        &self.0.options
    }

    /// Returns the id of this run, in an allocation of its own. Two runs never share the pointer, even if their ids are
    /// equal.
    pub(super) fn identity(&self) -> &Arc<str> {
        &self.0.fields.run_id
    }

    /// Returns the fields of the run that the context of each call contains.
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

    /// Whether a sink receives the run's events.
    pub(super) fn has_sink(&self) -> bool {
        self.0.events.is_some() || self.0.listener.is_set()
    }

    pub(super) fn decision_locks(&self) -> &DecisionLocks {
        &self.0.decisions
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.0.listener
    }
}

#[cfg(feature = "picking")]
impl Run {
    /// Picks tools for a query as [`ToolCatalog::pick`](crate::ToolCatalog::pick) does, but only from the tools that
    /// the model of this run may see.
    #[must_use]
    pub fn pick(&self, query: &str, options: &PickOptions) -> Vec<Pick> {
        self.shared().catalog.pick_of(query, options, self.catalog().entries())
    }

    /// Returns the words of a query that match no tool, as
    /// [`PickIndex::unmatched`](crate::catalog::PickIndex::unmatched) does, but considers only the tools that the model
    /// of this run may see.
    #[must_use]
    pub fn unmatched(&self, query: &str) -> Vec<String> {
        self.shared().catalog.unmatched_of(query, self.catalog().entries())
    }

    /// Picks by the scores of the application's scorer. Without a scorer, or if it fails, picks as [`pick`](Self::pick)
    /// does.
    pub(crate) async fn pick_scored(
        &self,
        query: &str,
        options: &PickOptions,
        scorer: Option<&(Arc<dyn Scorer>, std::time::Duration)>,
    ) -> Vec<Pick> {
        let Some(scorer) = scorer else { return self.pick(query, options) };
        match scored(self.catalog(), query, options, scorer).await {
            Ok(picks) => picks,
            Err(fault) => {
                self.report("the tool scorer returned no usable scores", fault.code, &fault.text);
                self.pick(query, options)
            }
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("id", &self.0.fields.run_id).finish_non_exhaustive()
    }
}
