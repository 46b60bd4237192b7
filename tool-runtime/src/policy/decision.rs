//! [`ToolPolicy::decide`]: allow, deny or require approval, with the rule that said so. Pure.

use std::borrow::Cow;
use std::sync::Arc;

use crate::call::{Decision, Verdict};
use crate::policy::argument::ArgumentView;
use crate::policy::compile::{Compiled, Party};
use crate::policy::data::RuleVerdict;
use crate::policy::names::RunTools;
use crate::policy::{ToolPolicy, label};
use crate::tool::{NoSchemaMode, ToolEffect, ToolSpec};

/// When the policy is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// May the model see the tool?
    Visibility,
    /// May the call go on, before its arguments are read?
    Admission,
    /// May the call run, with the arguments it will run with?
    Frozen,
}

/// Who asks, and in which run. Borrowed: a decision allocates nothing on the usual way.
#[derive(Debug, Clone, Copy, Default)]
pub struct PolicyContext<'a> {
    /// The id of the run.
    pub run: &'a str,
    /// Who the run acts for.
    pub principal: Option<&'a str>,
    /// The organisation the run acts in.
    pub tenant: Option<&'a str>,
    /// The principal's roles.
    pub roles: &'a [Arc<str>],
    /// The trust labels the run has so far.
    pub labels: &'a [Arc<str>],
    /// The tools of the run; `None` when the run does not narrow them.
    pub tools: Option<&'a RunTools>,
}

/// What the policy needs to know of the tool and the call.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// The effect the tool declares.
    pub effect: ToolEffect,
    /// The tool's tags.
    pub tags: &'a [Arc<str>],
    /// The tool has no schema, and this is what its author set for that.
    pub no_schema: Option<NoSchemaMode>,
    /// The arguments had to be repaired.
    pub repaired: bool,
}

impl<'a> Subject<'a> {
    /// A tool without tags whose arguments were not repaired.
    #[must_use]
    pub const fn new(name: &'a str, effect: ToolEffect) -> Self {
        Self { name, effect, tags: &[], no_schema: None, repaired: false }
    }

    /// What a definition says.
    #[must_use]
    pub fn of(spec: &'a ToolSpec) -> Self {
        Self { tags: &spec.tags, ..Self::new(spec.name.as_str(), spec.effect) }
    }
}

impl ToolPolicy {
    /// Decides. At [`Stage::Frozen`] the arguments are needed; without them a tool with argument rules is denied,
    /// as is whatever else the policy cannot make sense of.
    ///
    /// ```
    /// use tool_runtime::policy::{PolicyContext, Stage, Subject, ToolPolicy, Verdict};
    /// use tool_runtime::ToolEffect;
    ///
    /// let policy = ToolPolicy::allow(["core__add"]);
    /// let decision = policy.decide(
    ///     &PolicyContext::default(),
    ///     Stage::Admission,
    ///     &Subject::new("core__remove", ToolEffect::StateChange),
    ///     None,
    /// );
    /// assert_eq!((decision.verdict, &*decision.rule), (Verdict::Deny, "allowed_tools"));
    /// ```
    #[must_use]
    pub fn decide(
        &self,
        context: &PolicyContext<'_>,
        stage: Stage,
        tool: &Subject<'_>,
        arguments: Option<&dyn ArgumentView>,
    ) -> Decision {
        if context.tools.is_some_and(|tools| !tools.contains(tool.name)) {
            return deny("run.tools");
        }
        let Some(compiled) = self.compiled(tool.name) else {
            return deny("allowed_tools");
        };
        let allowed_by = match admitted_by(compiled, context) {
            Ok(rule) => rule,
            Err(decision) => return decision,
        };
        let effect = compiled.effect_of(tool.name, tool.effect);
        let mut verdict = Strictest(None);
        if tool.no_schema == Some(NoSchemaMode::RejectEffects) && effect != ToolEffect::ReadOnly {
            return deny("no_schema_mode.reject_effects");
        }
        if !self.data().labels.is_empty() {
            self.labels_say(context, effect, &mut verdict);
        }
        if !self.data().tags.is_empty() {
            self.tags_say(tool, &mut verdict);
        }
        if stage == Stage::Frozen && !compiled.arguments.is_empty() {
            let Some(arguments) = arguments else {
                return deny("internal_error.arguments_missing");
            };
            for (at, rule) in compiled.arguments.iter().enumerate() {
                if rule.fires(arguments) {
                    verdict.add(rule.verdict, || format!("tools.{}.arguments[{at}]", tool.name).into());
                }
            }
        }
        // Standing rules come last: of several reasons to ask a person, the particular one is more use to them.
        if compiled.approval {
            verdict.add(RuleVerdict::RequireApproval, || "require_approval_for_tools".into());
        }
        if self.approves(effect) {
            verdict.add(RuleVerdict::RequireApproval, || "require_approval_for_effects".into());
        }
        if tool.repaired && self.data().repair.require_approval {
            verdict.add(RuleVerdict::RequireApproval, || "repair.require_approval".into());
        }
        if tool.no_schema == Some(NoSchemaMode::ApproveEach) {
            verdict.add(RuleVerdict::RequireApproval, || "no_schema_mode.approve_each".into());
        }
        verdict.0.unwrap_or(Decision { verdict: Verdict::Allow, rule: allowed_by })
    }

    fn labels_say(&self, context: &PolicyContext<'_>, effect: ToolEffect, verdict: &mut Strictest) {
        for name in context.labels {
            let Some(rule) = self.data().labels.get(&**name) else { continue };
            if rule.deny_effects.contains(&effect) {
                verdict.add(RuleVerdict::Deny, || format!("labels.{name}.deny_effects").into());
            } else if rule.require_approval_for_effects.contains(&effect) {
                let rule = || format!("labels.{name}.require_approval_for_effects").into();
                verdict.add(RuleVerdict::RequireApproval, rule);
            }
        }
    }

    fn tags_say(&self, tool: &Subject<'_>, verdict: &mut Strictest) {
        for tag in tool.tags {
            if let Some(said) = self.data().tags.get(&**tag) {
                verdict.add(*said, || format!("tags.{tag}").into());
            }
        }
    }

    /// How far the policy takes a tool to reach: what the policy says of a discovered tool, and never less than
    /// an authored tool declares.
    #[must_use]
    pub fn effect_of(&self, name: &str, declared: ToolEffect) -> ToolEffect {
        self.compiled(name).map_or(declared, |compiled| compiled.effect_of(name, declared))
    }
}

impl Compiled {
    fn effect_of(&self, name: &str, declared: ToolEffect) -> ToolEffect {
        match self.effect {
            Some(effect) if label::is_discovered(name) => effect,
            Some(effect) => effect.max(declared),
            None => declared,
        }
    }
}

/// The rule that lets the tool in, or the denial.
fn admitted_by(compiled: &Compiled, context: &PolicyContext<'_>) -> Result<Cow<'static, str>, Decision> {
    let applies = |party: &Party, id: &str| match party {
        Party::Role => context.roles.iter().any(|role| **role == *id),
        Party::Principal => context.principal == Some(id),
        Party::Tenant => context.tenant == Some(id),
    };
    let mut granted = None;
    for grant in &compiled.grants {
        if applies(&grant.party, &grant.id) {
            if !grant.allow {
                return Err(deny(format!("{}.{}.denied_tools", grant.party.key(), grant.id)));
            }
            granted = granted.or(Some(grant));
        }
    }
    match granted {
        _ if compiled.allowed => Ok("allowed_tools".into()),
        Some(grant) => Ok(format!("{}.{}.allowed_tools", grant.party.key(), grant.id).into()),
        None => Err(deny("allowed_tools")),
    }
}

/// The strictest verdict so far; of equals, the first.
struct Strictest(Option<Decision>);

impl Strictest {
    fn add(&mut self, said: RuleVerdict, rule: impl FnOnce() -> Cow<'static, str>) {
        match (said, self.0.as_ref().map(|decision| decision.verdict)) {
            (_, Some(Verdict::Deny)) | (RuleVerdict::RequireApproval, Some(_)) => {}
            (RuleVerdict::Deny, _) => self.0 = Some(deny(rule())),
            (RuleVerdict::RequireApproval, None) => {
                self.0 = Some(Decision { verdict: Verdict::RequireApproval, rule: rule() });
            }
        }
    }
}

fn deny(rule: impl Into<Cow<'static, str>>) -> Decision {
    Decision { verdict: Verdict::Deny, rule: rule.into() }
}
