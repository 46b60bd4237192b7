//! Starts and continues the runs of graphs: agents and scripts that run as tools. The run of a graph has no more
//! permissions than the run that called the graph.

use std::sync::{Arc, Mutex, PoisonError};

use crate::call::{CallId, Caller, Decider, Event, Outcome, PendingGraph, ToolContext};
use crate::policy::common_tools;
use crate::runner::ledger::digests::Digests;
use crate::runner::{ApprovalDecision, Run, RunOptions, ToolRunner};
use crate::tool::{ToolEffect, is_graph};

/// Gives a graph, or the tool-search tool, access to the run that called it.
pub(crate) struct Host {
    run: Run,
    /// The id of the graph's run.
    graph: Arc<str>,
    continued: Mutex<Option<Continued>>,
}

/// A graph that waited, and the decision on its call.
pub(crate) struct Continued {
    pub(crate) pending: PendingGraph,
    pub(crate) decision: ApprovalDecision,
    pub(crate) decider: Decider,
    /// The deciders who approved the call before, if it needs several approvals.
    pub(crate) earlier: Vec<Decider>,
}

/// The graph whose run begins.
pub(crate) struct GraphIdentity<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    pub(crate) tools: &'a [String],
    /// Whether the graph is a script, without a model.
    pub(crate) is_script: bool,
}

impl Host {
    pub(in crate::runner) fn new(run: Run, graph: Arc<str>, continued: Option<Continued>) -> Self {
        Self { run, graph, continued: Mutex::new(continued) }
    }

    /// Returns the run that made the call.
    pub(in crate::runner) const fn run(&self) -> &Run {
        &self.run
    }

    /// Takes the suspended graph to continue. `None` if there is none, or if it was taken before.
    pub(crate) fn continued(&self) -> Option<Continued> {
        self.continued.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Starts the run of a graph.
    pub(crate) fn start(&self, context: &ToolContext, identity: &GraphIdentity<'_>) -> Work {
        let policy = self.run.policy().clone();
        let run = Run::start(Arc::clone(self.run.shared()), policy, self.first(context, identity));
        Work::new(self.run.clone(), run)
    }

    /// Starts the run of a script. Each of its calls with effects waits for an approval. `None` if the maximum number
    /// of policies already applies to the run.
    #[cfg(feature = "code-mode")]
    pub(crate) fn start_asking(&self, context: &ToolContext, identity: &GraphIdentity<'_>) -> Option<Work> {
        let policy = self.run.policy().asking_for_effects()?;
        let run = Run::start(Arc::clone(self.run.shared()), policy, self.first(context, identity));
        Some(Work::new(self.run.clone(), run))
    }

    /// Returns the runner and the options that continue the run of a graph.
    pub(crate) fn again(
        &self,
        context: &ToolContext,
        identity: &GraphIdentity<'_>,
        pending: &PendingGraph,
    ) -> (ToolRunner, RunOptions) {
        let options = self.options(context, identity, Arc::clone(&pending.run_id));
        (ToolRunner { shared: Arc::clone(self.run.shared()) }, options)
    }

    fn first(&self, context: &ToolContext, identity: &GraphIdentity<'_>) -> RunOptions {
        self.options(context, identity, Arc::clone(&self.graph))
    }

    /// Links the continued run of a graph to its parent run.
    pub(crate) fn work(&self, run: Run) -> Work {
        Work::new(self.run.clone(), run)
    }

    /// Returns the options of a graph's run, with no more permissions than the calling run has.
    fn options(&self, context: &ToolContext, identity: &GraphIdentity<'_>, run_id: Arc<str>) -> RunOptions {
        let (run, options) = (&self.run, self.run.options());
        // Effects are ordered. A graph gets only tools whose effect under the policy is not above its own.
        let most = run.effect_of(context.tool().as_str()).unwrap_or(ToolEffect::ReadOnly);
        let has = |name: &&String| !is_graph(name) && run.effect_of(name).is_some_and(|effect| effect <= most);
        let tools = identity.tools.iter().filter(has).map(|name| name.as_str().into()).collect();
        let caller = Caller::Graph {
            run: run.id().to_owned(),
            name: identity.name.to_owned(),
            version: identity.version.to_owned(),
        };
        let labels = run.labels();
        let options = RunOptions {
            tools: common_tools(options.tools.clone(), Some(tools)),
            agent: Some(identity.name.into()),
            labels,
            user_text: Vec::new(),
            cancellation: Arc::new(context.cancellation().child_token()),
            parent: Some(run.clone()),
            is_script: identity.is_script,
            ..options.clone()
        };
        options.run_id(run_id).caller(caller).events(forward_events(run, context.call_id(), identity.name))
    }
}

/// Returns a closure that forwards the events of a graph's run to the run that calls it.
pub(in crate::runner) fn forward_events(run: &Run, call: &CallId, graph: &str) -> impl Fn(Event) + Send + Sync + use<> {
    let (run, id, name) = (run.clone(), call.clone(), graph.to_owned());
    move |event| run.emit(Event::Graph { id: id.clone(), name: name.clone(), event: Box::new(event) })
}

/// The separator between the names in the path of a call.
pub(crate) const SEPARATOR: &str = " > ";

/// Derives the id of a graph's run from the idempotency key of the call. Records contain the id, so it does not reveal
/// the arguments in the key.
pub(in crate::runner) fn run_id(digests: &Digests, idempotency_key: &str) -> String {
    format!("graph_{}", digests.id_of(idempotency_key))
}

/// The run of a graph. Its labels and its evidence are added to the run that called it, even if it fails or is dropped.
pub(crate) struct Work {
    parent: Run,
    pub(crate) run: Run,
}

impl Work {
    fn new(parent: Run, run: Run) -> Self {
        let seen = parent.evidence().clone();
        run.evidence().merge(&seen);
        Self { parent, run }
    }

    /// Whether an effect of the graph may have begun.
    pub(crate) fn begun(&self, graph: &ToolContext) -> bool {
        let effect = self.parent.effect_of(graph.tool().as_str());
        let never = |outcome: &Outcome| {
            matches!(
                outcome,
                Outcome::InvalidJson
                    | Outcome::ValidationError
                    | Outcome::LimitExceeded
                    | Outcome::IncompleteCall
                    | Outcome::Unavailable
                    | Outcome::PolicyDenied
                    | Outcome::ApprovalDenied
                    | Outcome::ApprovalExpired
                    | Outcome::BudgetExceeded
            )
        };
        effect != Some(ToolEffect::ReadOnly) && !self.run.state().summary.calls.keys().all(never)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.parent.remembered().label(self.run.labels());
        let seen = self.run.evidence().clone();
        self.parent.evidence().merge(&seen);
    }
}
