//! [`ToolPolicy::admit`] and [`ToolPolicy::decide`]: allow, deny or require approval, with the rule that decided. Both
//! are pure functions.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::call::{Caller, Decision, Verdict};
use crate::json::{self, Limits, Tree};
use crate::policy::cedar::CedarRules;
use crate::policy::compile::Compiled;
use crate::policy::data::Ceiling;
use crate::policy::label::LabelRule;
use crate::policy::resource::{PolicyContext, PolicyResource};
use crate::policy::rule_verdict::RuleVerdict;
use crate::policy::tool_policy::ToolPolicy;
use crate::text::pointer;
use crate::tool::{NoSchemaMode, ToolEffect, is_discovered, is_graph};

impl ToolPolicy {
    /// Decides whether a model may see the tool and whether a call of it may proceed, without the arguments of the
    /// call. [`decide`](Self::decide) also applies the rules about arguments.
    #[must_use]
    pub fn admit(&self, context: &PolicyContext<'_>, tool: &PolicyResource<'_>) -> Decision {
        self.judge(context, tool, None, &mut Strictest::default())
    }

    /// Decides on a call. `arguments` is the JSON text of its arguments. If a rule reads them and they cannot be
    /// parsed, the call is denied.
    ///
    /// ```
    /// use tool_runtime::call::Verdict;
    /// use tool_runtime::policy::{PolicyContext, PolicyResource};
    /// use tool_runtime::{ToolEffect, ToolPolicy};
    ///
    /// let policy = ToolPolicy::allow(["core__add"]);
    /// let remove = PolicyResource::new("core__remove", ToolEffect::StateChange);
    /// let decision = policy.decide(&PolicyContext::default(), &remove, "{}");
    /// assert_eq!((decision.verdict, &*decision.rule), (Verdict::Deny, "allowed_tools"));
    /// ```
    #[must_use]
    pub fn decide(&self, context: &PolicyContext<'_>, tool: &PolicyResource<'_>, arguments: &str) -> Decision {
        self.decide_on(context, tool, &ReadOnce::new(arguments))
    }

    /// Returns the decision and every rule that denied the call or required an approval. With `arguments`, the
    /// decision is the same as from [`decide`](Self::decide); without, it is the same as from [`admit`](Self::admit).
    ///
    /// If the run may not use the tool at all, for example because no list allows it, or because the policy does not
    /// pin the hash of the tool's definition, no other rule is evaluated. The list is then empty, and only the decision
    /// names the rule. A denial because a rule reads arguments that cannot be parsed is not in the list, either; the
    /// list can then have the rules of labels and tags.
    ///
    /// ```
    /// use tool_runtime::policy::{PolicyContext, PolicyResource};
    /// use tool_runtime::{ToolEffect, ToolPolicy};
    ///
    /// let policy = ToolPolicy::from_toml(
    ///     r#"
    ///     allowed_tools = ["mail__send"]
    ///     require_approval_for_tools = ["mail__send"]
    ///     require_approval_for_effects = ["external_side_effect"]
    ///     "#,
    /// )?;
    /// let send = PolicyResource::new("mail__send", ToolEffect::ExternalSideEffect);
    /// let (decision, rules) = policy.explain(&PolicyContext::default(), &send, Some("{}"));
    /// assert_eq!(decision.rule, "require_approval_for_tools");
    /// assert_eq!(rules.len(), 2);
    /// # Ok::<(), tool_runtime::error::BuildError>(())
    /// ```
    #[must_use]
    pub fn explain(
        &self,
        context: &PolicyContext<'_>,
        tool: &PolicyResource<'_>,
        arguments: Option<&str>,
    ) -> (Decision, Vec<Decision>) {
        let mut strictest = Strictest::keeping_all();
        let arguments = arguments.map(ReadOnce::new);
        let decision = self.judge(context, tool, arguments.as_ref(), &mut strictest);
        (decision, strictest.all.unwrap_or_default())
    }

    /// Returns the trust labels that the policy's rules name, including its Cedar policies.
    #[must_use]
    pub fn named_labels(&self) -> BTreeSet<&str> {
        let cedar = self.data().cedar.iter().flat_map(CedarRules::labels);
        self.data().labels.keys().chain(cedar).map(String::as_str).collect()
    }

    /// Returns the graphs (agents and scripts that run as tools) that the policy names as callers or in budgets.
    pub fn named_graphs(&self) -> impl Iterator<Item = &str> {
        let callers = self.data().callers.keys().filter_map(|caller| caller.strip_prefix("graph:"));
        callers.chain(self.data().budgets.graphs.keys().map(String::as_str))
    }

    /// Whether decisions on calls of the tool depend on their arguments.
    #[must_use]
    pub fn reads_arguments(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|rule| !rule.arguments.is_empty())
            || self.data().cedar.as_ref().is_some_and(CedarRules::reads_arguments)
    }

    /// Whether decisions on calls of the tool depend on this argument. A record masks sensitive arguments, so a
    /// decision that reads one cannot be made again from the record.
    #[must_use]
    pub fn reads_argument(&self, tool: &str, argument: &str) -> bool {
        let first = |path: &str| pointer::split(path).into_iter().flatten().next().is_some_and(|name| name == argument);
        self.tool(tool).is_some_and(|rule| rule.arguments.iter().any(|rule| first(&rule.pointer)))
            || self.data().cedar.as_ref().is_some_and(|cedar| cedar.reads(argument))
    }

    /// Like [`decide`](Self::decide), but shares the parsed arguments with other policies.
    pub(super) fn decide_on(
        &self,
        context: &PolicyContext<'_>,
        tool: &PolicyResource<'_>,
        arguments: &ReadOnce<'_>,
    ) -> Decision {
        self.judge(context, tool, Some(arguments), &mut Strictest::default())
    }

    pub(super) fn judge(
        &self,
        context: &PolicyContext<'_>,
        tool: &PolicyResource<'_>,
        arguments: Option<&ReadOnce<'_>>,
        strictest: &mut Strictest,
    ) -> Decision {
        let (is_graph, is_discovered) = (is_graph(tool.name), is_discovered(tool.name));
        if is_graph && matches!(context.caller, Caller::Graph { .. }) {
            return deny("graph.depth");
        }
        if context.tools.is_some_and(|tools| !tools.contains(tool.name)) {
            return deny("run.tools");
        }
        let list = if is_graph { "allowed_graphs" } else { "allowed_tools" };
        let Some(compiled) = self.compiled(tool.name) else {
            return deny(list);
        };
        let allowed_by = match admitted_by(compiled, context, list) {
            Ok(rule) => rule,
            Err(decision) => return decision,
        };
        // Both `callers.graph` and `callers.graph:NAME` can apply to one graph.
        for (id, ceiling) in &self.data().callers {
            if Ceiling::is_about(id, context.caller)
                && let Some(key) = ceiling.refuses(tool.name)
            {
                return deny(format!("callers.{id}.{key}"));
            }
        }
        if let Some(rule) = &compiled.disabled {
            return deny(rule.to_string());
        }
        // A server can change its definition of a tool at any time; only the definition that a person reviewed may run.
        if is_discovered && (compiled.pin.is_none() || compiled.pin != tool.pin) {
            return deny(format!("tools.{}.pin", tool.name));
        }
        let effect = compiled.effect_of(tool.name, tool.effect);
        if tool.no_schema == Some(NoSchemaMode::RejectEffects) && effect != ToolEffect::ReadOnly {
            return deny("no_schema_mode.reject_effects");
        }
        if !self.data().labels.is_empty() {
            self.apply_labels(context, effect, strictest);
        }
        if !self.data().tags.is_empty() {
            self.apply_tags(tool, strictest);
        }
        let cedar = self.data().cedar.as_ref();
        let read = !compiled.arguments.is_empty() || cedar.is_some_and(CedarRules::reads_arguments);
        let none = Tree::Object(Vec::new());
        let arguments = match arguments {
            None => None,
            // There are arguments, but no rule reads them, so they stay unparsed.
            Some(_) if !read => Some(&none),
            Some(arguments) => match arguments.tree() {
                Some(arguments) => Some(arguments),
                None => return deny("internal_error.arguments_unreadable"),
            },
        };
        if let Some(arguments) = arguments {
            for (at, rule) in compiled.arguments.iter().enumerate() {
                if rule.fires(arguments) {
                    strictest.add(rule.verdict, || format!("tools.{}.arguments[{at}]", tool.name).into());
                }
            }
        }
        if let Some((verdict, rules)) = cedar.and_then(|cedar| cedar.say(context, tool, effect, arguments)) {
            rules.into_iter().for_each(|rule| strictest.add(verdict, || rule.into()));
        }
        // General rules come last. The decision names the first rule, and a specific one helps the decider more.
        if compiled.approval {
            strictest.add(RuleVerdict::RequireApproval, || "require_approval_for_tools".into());
        }
        if self.approves(effect) {
            strictest.add(RuleVerdict::RequireApproval, || "require_approval_for_effects".into());
        }
        if tool.repaired && self.data().repair.require_approval {
            strictest.add(RuleVerdict::RequireApproval, || "repair.require_approval".into());
        }
        if tool.no_schema == Some(NoSchemaMode::ApproveEach) {
            strictest.add(RuleVerdict::RequireApproval, || "no_schema_mode.approve_each".into());
        }
        strictest.decided.take().unwrap_or(Decision { verdict: Verdict::Allow, rule: allowed_by })
    }

    /// Adds the verdicts of the rules for the run's labels.
    fn apply_labels(&self, context: &PolicyContext<'_>, effect: ToolEffect, strictest: &mut Strictest) {
        for name in context.labels {
            let Some(rule) = self.data().labels.get(&**name) else { continue };
            if rule.deny_effects.contains(&effect) {
                strictest.add(RuleVerdict::Deny, || format!("labels.{name}.deny_effects").into());
            } else if rule.require_approval_for_effects.contains(&effect) {
                let rule = || format!("labels.{name}.require_approval_for_effects").into();
                strictest.add(RuleVerdict::RequireApproval, rule);
            }
        }
    }

    /// Adds the verdicts of the rules for the tool's tags.
    fn apply_tags(&self, tool: &PolicyResource<'_>, strictest: &mut Strictest) {
        for tag in tool.tags {
            if let Some(verdict) = self.data().tags.get(&**tag) {
                strictest.add(*verdict, || format!("tags.{tag}").into());
            }
        }
    }

    /// Returns the labels that a result of this tool puts on its run, each once. A discovered tool (`mcp__`, from an
    /// MCP server) always puts `untrusted`.
    pub fn labels_of<'a>(&'a self, tool: &PolicyResource<'a>) -> impl Iterator<Item = &'a str> + 'a {
        let (name, tags) = (tool.name, tool.tags);
        let discovered = is_discovered(name).then_some(LabelRule::UNTRUSTED);
        let ruled = self.data().labels.iter().filter(move |(label, rule)| {
            let named = rule.from_tools.contains(name) || tags.iter().any(|tag| rule.from_tags.contains(&**tag));
            named && !(discovered.is_some() && label.as_str() == LabelRule::UNTRUSTED)
        });
        discovered.into_iter().chain(ruled.map(|(label, _)| label.as_str()))
    }

    /// Returns the tool's effect under the policy. For a discovered tool (`mcp__`, from an MCP server) the policy's
    /// value replaces `declared`; for any other tool that value can only raise the effect. Without a value in the
    /// policy the effect is `declared`.
    #[must_use]
    pub fn effect_of(&self, name: &str, declared: ToolEffect) -> ToolEffect {
        self.terms_of(name, declared).effect
    }
}

impl Compiled {
    pub(super) fn effect_of(&self, name: &str, declared: ToolEffect) -> ToolEffect {
        match self.effect {
            Some(effect) if is_discovered(name) => effect,
            Some(effect) => effect.max(declared),
            None => declared,
        }
    }
}

/// Returns the rule that allows the tool, or the denial.
fn admitted_by(
    compiled: &Compiled,
    context: &PolicyContext<'_>,
    list: &'static str,
) -> Result<Cow<'static, str>, Decision> {
    let mut granted = None;
    for grant in compiled.grants.iter().filter(|grant| grant.who.is(context)) {
        if !grant.allow {
            return Err(deny(format!("{}.denied_tools", grant.who)));
        }
        granted = granted.or(Some(grant));
    }
    match granted {
        _ if compiled.allowed => Ok(list.into()),
        Some(grant) => Ok(format!("{}.{list}", grant.who).into()),
        None => Err(deny(list)),
    }
}

impl Ceiling {
    /// Whether the table `callers.ID` applies to this caller.
    fn is_about(id: &str, caller: &Caller) -> bool {
        match caller {
            Caller::Direct => id == "direct",
            Caller::Graph { name, .. } => id == "graph" || id.strip_prefix("graph:") == Some(name),
        }
    }

    /// Returns the key that denies the tool. `None` if the table allows it.
    fn refuses(&self, tool: &str) -> Option<&'static str> {
        if self.denied_tools.contains(tool) {
            return Some("denied_tools");
        }
        self.allowed_tools.as_ref().filter(|only| !only.contains(tool)).map(|_| "allowed_tools")
    }
}

/// Arguments as text, which is parsed once for all rules of all policies, and only if a rule reads it.
pub(super) struct ReadOnce<'a> {
    text: &'a str,
    tree: OnceCell<Option<Tree<'a>>>,
}

impl<'a> ReadOnce<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, tree: OnceCell::new() }
    }

    /// Returns the parsed arguments. `None` if they cannot be parsed.
    fn tree(&self) -> Option<&Tree<'a>> {
        self.tree.get_or_init(|| json::parse(self.text, &Limits::UNBOUNDED).ok()).as_ref()
    }
}

/// Keeps the strictest verdict and, among equal ones, the first.
#[derive(Default)]
pub(super) struct Strictest {
    decided: Option<Decision>,
    /// Every verdict with its rule, for an explanation. `None` if they are not kept.
    pub(super) all: Option<Vec<Decision>>,
}

impl Strictest {
    /// Creates a value that also keeps every verdict.
    pub(super) fn keeping_all() -> Self {
        Self { all: Some(Vec::new()), ..Self::default() }
    }

    fn add(&mut self, verdict: RuleVerdict, rule: impl FnOnce() -> Cow<'static, str>) {
        let stricter = match (verdict, self.decided.as_ref().map(|decision| decision.verdict)) {
            (_, Some(Verdict::Deny)) | (RuleVerdict::RequireApproval, Some(_)) => false,
            (RuleVerdict::Deny, _) | (RuleVerdict::RequireApproval, None) => true,
        };
        if !stricter && self.all.is_none() {
            return;
        }
        let verdict = match verdict {
            RuleVerdict::Deny => Verdict::Deny,
            RuleVerdict::RequireApproval => Verdict::RequireApproval,
        };
        let decision = Decision { verdict, rule: rule() };
        self.all.iter_mut().for_each(|all| all.push(decision.clone()));
        if stricter {
            self.decided = Some(decision);
        }
    }
}

fn deny(rule: impl Into<Cow<'static, str>>) -> Decision {
    Decision { verdict: Verdict::Deny, rule: rule.into() }
}
