//! [`RunPolicy`]: the policies that decide for one run. The policies under which a restored run ran before still apply,
//! so the run never gains rights.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::call::{Caller, Decider, Decision, DecisionError, Verdict};
use crate::json;
use crate::policy::allowance::Allowance;
use crate::policy::approvals::Decided;
use crate::policy::budget::{Budgets, ToolLimits};
use crate::policy::data::ToolRule;
use crate::policy::decision::ReadOnce;
use crate::policy::exceeded::Holder;
use crate::policy::loop_guard::{LoopGuard, LoopThresholds};
use crate::policy::notice_rule::{NoticeEvent, NoticeTerms};
use crate::policy::resource::{PolicyContext, PolicyResource, Standing};
use crate::policy::spending::Spending;
use crate::policy::terms::Terms;
use crate::policy::tool_policy::ToolPolicy;
use crate::policy::window::Window;
use crate::tool::{Hash, ToolEffect, is_discovered};

/// The maximum number of earlier policies that apply to a run. A snapshot contains all of them.
const MAX_EARLIER_POLICIES: usize = 16;

/// The runner's policy, and the policies under which the run ran in earlier processes. Each policy decides with the
/// principal's current and earlier roles and attributes, and the strictest decision applies.
#[derive(Debug, Clone)]
pub(crate) struct RunPolicy {
    current: ToolPolicy,
    earlier: Vec<ToolPolicy>,
    /// A copy of the runner's policy with the notices of an earlier process, if they differ. Notices do not affect
    /// decisions, so only [`notices`](Self::notices) reads it.
    noticed: Option<ToolPolicy>,
    /// The earlier roles and attributes of the principal.
    standings: Vec<Standing>,
}

/// The policies of a run in a snapshot.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Policies(Vec<ToolPolicy>);

impl RunPolicy {
    /// Creates the policy of a run that begins now.
    pub(crate) const fn new(current: ToolPolicy) -> Self {
        Self { current, earlier: Vec::new(), noticed: None, standings: Vec::new() }
    }

    /// Creates the policy of a restored run, to which its earlier policies and standings still apply. `None` if there
    /// are more than [`MAX_EARLIER_POLICIES`] of either.
    pub(crate) fn restored(current: ToolPolicy, before: Policies, standings: Vec<Standing>) -> Option<Self> {
        let (mut earlier, mut noticed) = (Vec::<ToolPolicy>::new(), None);
        for policy in before.0 {
            // A revision leaves the notices out, so policies of one revision can list different arguments.
            let revision = policy.revision();
            let is_current = revision == current.revision();
            let same = earlier.iter_mut().chain(&mut noticed).find(|other| other.revision() == revision);
            match same {
                Some(same) if same.data().notices == policy.data().notices => {}
                Some(same) => *same = same.listing_as(&policy),
                None if is_current => noticed = Some(policy),
                None => earlier.push(policy),
            }
        }
        noticed.take_if(|noticed| noticed.data().notices == current.data().notices);
        (earlier.len() <= MAX_EARLIER_POLICIES && standings.len() <= MAX_EARLIER_POLICIES).then_some(Self {
            current,
            earlier,
            noticed,
            standings,
        })
    }

    /// Returns the same policies, plus a copy of the runner's policy that also requires an approval of `state_change`
    /// and `external_side_effect` calls. `None` if the run would have more than [`MAX_EARLIER_POLICIES`] earlier
    /// policies.
    #[cfg(feature = "code-mode")]
    pub(crate) fn asking_for_effects(&self) -> Option<Self> {
        let effects = [ToolEffect::StateChange, ToolEffect::ExternalSideEffect];
        let asking = self.current.clone().with_approval_for_effects(effects);
        let before = Policies(self.earlier.iter().chain(&self.noticed).cloned().chain([asking]).collect());
        Self::restored(self.current.clone(), before, self.standings.clone())
    }

    /// Returns the policies for a snapshot.
    pub(crate) fn policies(&self) -> Policies {
        Policies(self.all().chain(&self.noticed).cloned().collect())
    }

    /// Returns the standings for a snapshot: `now`, and the earlier ones.
    pub(crate) fn standings(&self, now: Standing) -> Vec<Standing> {
        let mut standings: Vec<_> = self.standings.iter().filter(|standing| **standing != now).cloned().collect();
        standings.insert(0, now);
        standings
    }

    /// Returns one revision for all policies. A waiting call continues only in a run with the same revision.
    pub(crate) fn revision(&self) -> Hash {
        if self.earlier.is_empty() {
            return self.current.revision();
        }
        let mut revisions: Vec<_> = self.all().map(|policy| policy.revision().0).collect();
        revisions.sort_unstable();
        json::digest(revisions.concat())
    }

    /// Whether the run ran under the runner's policy only.
    pub(crate) const fn is_current(&self) -> bool {
        self.earlier.is_empty()
    }

    /// Returns the runner's policy, if no earlier policy or standing applies.
    pub(super) fn alone(&self) -> Option<&ToolPolicy> {
        (self.earlier.is_empty() && self.standings.is_empty()).then_some(&self.current)
    }

    /// Returns why the decider may not decide on a call. `None` if every policy of the run lets them decide. Each
    /// policy uses its own effect of the tool, like [`required`](Self::required). `call` has the effect that the tool
    /// declares.
    pub(crate) fn bars(&self, decider: &Decider, call: &Decided<'_>) -> Option<DecisionError> {
        if decider.tenant_id() != call.tenant {
            return Some(DecisionError::DeciderTenant);
        }
        if !decider.is_named() {
            return Some(DecisionError::DeciderName);
        }
        self.all().find_map(|policy| {
            let effect = policy.effect_of(call.tool, call.effect);
            policy.data().approvals.bars(decider, &Decided { effect, ..*call })
        })
    }

    /// Returns how many people may decide on a call, regardless of roles. `None` if no policy lists principals.
    pub(crate) fn admitted(&self, call: &Decided<'_>) -> Option<usize> {
        let of_call = |policy: &ToolPolicy| Decided { effect: policy.effect_of(call.tool, call.effect), ..*call };
        let lists = self.all().filter_map(|policy| {
            let Decided { tool, effect, .. } = of_call(policy);
            policy.data().approvals.principals_of(tool, effect)
        });
        let may = |principal: &&String| {
            let decider = Decider::new(principal.as_str());
            self.all().all(|policy| {
                let bar = policy.data().approvals.bars(&decider, &of_call(policy));
                !matches!(bar, Some(DecisionError::OwnCall | DecisionError::DeciderPrincipal))
            })
        };
        // Each person who may decide is in all lists, so the shortest list is enough.
        lists.min_by_key(|list| list.len()).map(|list| list.iter().filter(may).count())
    }

    /// Returns the highest number of deciders that calls of a tool can need under any of the policies.
    pub(crate) fn most_required(&self, tool: &str, declared: ToolEffect) -> u32 {
        let of = |policy: &ToolPolicy| policy.data().approvals.most_required(tool, policy.effect_of(tool, declared));
        self.all().map(of).max().unwrap_or(1)
    }

    /// Whether some call can need several approvals.
    pub(crate) fn can_require_several(&self) -> bool {
        self.all().any(|policy| policy.data().approvals.can_require_several())
    }

    /// Returns how many deciders have to approve a call: the highest number of all policies and standings.
    pub(crate) fn required(&self, context: &PolicyContext<'_>, tool: &PolicyResource<'_>, arguments: &str) -> u32 {
        let mut most = 1;
        for policy in self.all().filter(|policy| policy.data().approvals.can_require_several()) {
            let effect = policy.effect_of(tool.name, tool.effect);
            let mut of = |context: &PolicyContext<'_>| {
                let (_, rules) = policy.explain(context, tool, Some(arguments));
                let rules = rules.iter().filter(|rule| rule.verdict == Verdict::RequireApproval);
                most = most.max(policy.required_approvals(tool.name, effect, rules.map(|rule| &*rule.rule)));
            };
            of(context);
            for Standing { roles, attributes } in &self.standings {
                of(&PolicyContext { attributes, roles, ..*context });
            }
        }
        most
    }

    /// Whether any of the policies requires a record of each call.
    #[inline]
    pub(crate) fn requires_records(&self) -> bool {
        self.all().any(|policy| policy.data().records.required)
    }

    /// See [`ToolPolicy::admit`].
    pub(crate) fn admit(&self, context: &PolicyContext<'_>, tool: &PolicyResource<'_>) -> Decision {
        self.strictest(context, tool, |policy, context| policy.admit(context, tool))
    }

    /// See [`ToolPolicy::decide`].
    pub(crate) fn decide(&self, context: &PolicyContext<'_>, tool: &PolicyResource<'_>, arguments: &str) -> Decision {
        let arguments = ReadOnce::new(arguments);
        self.strictest(context, tool, |policy, context| policy.decide_on(context, tool, &arguments))
    }

    /// Returns the strongest of the effects that [`ToolPolicy::effect_of`] returns for the policies.
    pub(crate) fn effect_of(&self, name: &str, declared: ToolEffect) -> ToolEffect {
        self.terms_of(name, declared).effect
    }

    /// Returns the rules for each call of a tool: the strictest of all policies.
    pub(crate) fn terms_of(&self, name: &str, declared: ToolEffect) -> Terms {
        let terms = self.current.terms_of(name, declared);
        self.earlier.iter().fold(terms, |terms, policy| terms.strictest(&policy.terms_of(name, declared)))
    }

    /// Returns [`ToolPolicy::labels_of`] for each policy, so a label may occur twice.
    pub(crate) fn labels_of<'a>(&'a self, tool: &'a PolicyResource<'a>) -> impl Iterator<Item = &'a str> + 'a {
        self.all().flat_map(move |policy| policy.labels_of(tool))
    }

    /// Whether a result of this tool may put labels on its run.
    pub(crate) fn puts_labels(&self, name: &str) -> bool {
        is_discovered(name) || self.all().any(|policy| !policy.data().labels.is_empty())
    }

    /// Returns the limits of one call of this tool: the lowest of all policies.
    pub(crate) fn limits_of(&self, name: &str) -> ToolLimits {
        self.terms_of(name, ToolEffect::ReadOnly).limits
    }

    /// Returns the maximum length of a call id, in bytes: the lowest limit of all policies.
    pub(crate) fn call_id_bytes(&self) -> usize {
        self.all().map(|policy| policy.data().limits.call_id_bytes).fold(usize::MAX, usize::min)
    }

    /// Returns the maximum nesting of arguments: the lowest limit of all policies.
    pub(crate) fn argument_depth(&self) -> usize {
        self.all().map(|policy| policy.data().limits.argument_depth).fold(usize::MAX, usize::min)
    }

    /// Whether every policy allows this repairer.
    pub(crate) fn repairs(&self, repairer: &str) -> bool {
        self.all().all(|policy| policy.data().repair.allowed.contains(repairer))
    }

    /// See [`ToolPolicy::parallel`].
    pub(crate) fn parallel(&self) -> usize {
        self.all().map(ToolPolicy::parallel).min().unwrap_or(1)
    }

    /// Returns an empty [`Spending`] for a new run, with the lowest budgets of a run and, for a task of a graph, of the
    /// graph.
    pub(crate) fn spending(&self, caller: &Caller) -> Spending {
        let of = |name: &str| {
            let graphs = self.all().filter_map(|policy| policy.data().budgets.graphs.get(name).copied());
            graphs.reduce(Allowance::narrower)
        };
        let graph = match caller {
            Caller::Direct => None,
            Caller::Graph { name, .. } => of(name).map(|budget| (Holder::Graph, budget)),
        };
        Spending::new(std::iter::once((Holder::Run, self.budget())).chain(graph), self.parallel())
    }

    /// Returns the lowest budget of a run of all policies.
    pub(crate) fn budget(&self) -> Allowance {
        let budgets = self.all().map(|policy| policy.data().budgets.run);
        budgets.reduce(Allowance::narrower).unwrap_or_default()
    }

    /// Returns the budgets that runs share, one for each holder and window: the lowest of all policies.
    pub(crate) fn shared(&self) -> Vec<(Holder, Window, Allowance)> {
        let mut shared: BTreeMap<(Holder, Window), Allowance> = BTreeMap::new();
        for Budgets { principal, tenant, .. } in self.all().map(|policy| &policy.data().budgets) {
            let principal = principal.iter().map(|allowance| (Holder::Principal, *allowance));
            for (holder, allowance) in principal.chain(tenant.iter().map(|allowance| (Holder::Tenant, *allowance))) {
                let window = allowance.window.unwrap_or(Window::LONGEST);
                let least = shared.entry((holder, window)).or_insert(allowance);
                *least = least.narrower(allowance);
            }
        }
        shared.into_iter().map(|((holder, window), allowance)| (holder, window, allowance)).collect()
    }

    /// Returns a guard that warns and stops at the earliest of all thresholds. For a policy without thresholds,
    /// `unnamed` applies.
    pub(crate) fn loop_guard(&self, unnamed: LoopThresholds) -> LoopGuard {
        // 0 means never, so any other number is earlier.
        let earlier = |one: u32, other: u32| if one == 0 || other == 0 { one.max(other) } else { one.min(other) };
        let guards = self.all().map(|policy| policy.data().loop_guard.unwrap_or(unnamed));
        let guard = guards.reduce(|one, other| LoopThresholds {
            warn_at: earlier(one.warn_at, other.warn_at),
            stop_at: earlier(one.stop_at, other.stop_at),
        });
        LoopGuard::new(guard.unwrap_or(unnamed))
    }

    /// Returns the terms of the notices about calls of a tool. `None` if the runner's policy has none of these events.
    /// A restored run lists only arguments that each of its policies lists.
    pub(crate) fn notices(&self, tool: &str, events: &[NoticeEvent]) -> Option<NoticeTerms> {
        let rule = self.current.data().notices.as_ref()?;
        if !events.iter().any(|event| rule.events.contains(event)) {
            return None;
        }
        let lists = |policy: &ToolPolicy, pointer: &str| {
            policy.data().notices.as_ref().is_some_and(|rule| rule.lists(tool, pointer))
        };
        Some(rule.terms(tool, |pointer| self.earlier.iter().chain(&self.noticed).all(|policy| lists(policy, pointer))))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ToolPolicy> {
        std::iter::once(&self.current).chain(&self.earlier)
    }

    /// Returns the strictest decision. Among equally strict decisions, the decision of the runner's policy comes first.
    fn strictest(
        &self,
        context: &PolicyContext<'_>,
        tool: &PolicyResource<'_>,
        decide: impl Fn(&ToolPolicy, &PolicyContext<'_>) -> Decision,
    ) -> Decision {
        if self.alone().is_some() {
            return decide(&self.current, context);
        }
        let mut strictest = decide(&self.current, context);
        let mut also = |decision: Decision| {
            if rank(decision.verdict) > rank(strictest.verdict) {
                strictest = decision;
            }
        };
        for policy in &self.earlier {
            if !shows_no_more(&self.current, policy, tool.name) {
                return Decision { verdict: Verdict::Deny, rule: format!("tools.{}.redact", tool.name).into() };
            }
            also(decide(policy, context));
        }
        for Standing { roles, attributes } in &self.standings {
            let then = PolicyContext { attributes, roles, ..*context };
            self.all().for_each(|policy| also(decide(policy, &then)));
        }
        strictest
    }
}

const fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::RequireApproval => 1,
        Verdict::Deny => 2,
    }
}

/// Whether the runner's policy shows no more of a tool's output than an earlier policy. The allowlists are compiled
/// once for all runs of a runner, so they cannot be narrowed for a single run.
fn shows_no_more(current: &ToolPolicy, earlier: &ToolPolicy, tool: &str) -> bool {
    let shown =
        |policy: &ToolPolicy| policy.tool(tool).map(|rule: &ToolRule| (rule.redact.clone(), rule.model.clone()));
    let (now, before) = (shown(current).unwrap_or_default(), shown(earlier).unwrap_or_default());
    match (now.0, before.0) {
        (None, None) => true,
        (Some(now_shown), Some(shown)) => {
            now_shown.iter().all(|path| shown.contains(path))
                && now.1.iter().all(|path| shown.contains(path) || before.1.contains(path))
        }
        // An authored tool has its own allowlist, which every policy narrows.
        (Some(_), None) => !is_discovered(tool),
        _ => false,
    }
}
