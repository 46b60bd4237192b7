//! Builds a Cedar request from the run, the tool and the arguments, and turns the engine's answer into a verdict.

use std::collections::{BTreeSet, HashMap, HashSet};

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicyId, PolicySet, Request,
    RestrictedExpression,
};

use crate::call::Caller;
use crate::contain::attempted;
use crate::json::Tree;
use crate::policy::cedar::kind::Kind;
use crate::policy::cedar::{CedarRules, Ready};
use crate::policy::resource::{PolicyContext, PolicyResource};
use crate::policy::rule_verdict::RuleVerdict;
use crate::policy::server_rule::server_of;
use crate::tool::{Schema, ToolEffect, is_discovered};

/// The rule of a denial after a failure of the engine.
const FAILED: &str = "internal_error.cedar";

/// The minimum free stack for an evaluation. The engine returns an error before it overflows its stack.
const EVALUATION_BYTES: usize = 1024 * 1024;

/// The names of the entity types, parsed once.
pub(super) struct Types {
    principal: EntityTypeName,
    role: EntityTypeName,
    tenant: EntityTypeName,
    tool: EntityTypeName,
    action: EntityTypeName,
}

impl Types {
    pub(super) fn new() -> Option<Self> {
        let named = |name: &str| name.parse().ok();
        Some(Self {
            principal: named("Principal")?,
            role: named("Role")?,
            tenant: named("Tenant")?,
            tool: named("Tool")?,
            action: named("Action")?,
        })
    }
}

fn uid(of: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(of.clone(), EntityId::new(id))
}

fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> RestrictedExpression {
    RestrictedExpression::new_set(texts.into_iter().map(text))
}

fn text(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}

/// The error if the engine cannot decide. The call is denied.
struct Undecided;

impl CedarRules {
    /// Returns the verdict that restricts a call, and the rules with that verdict in a fixed order. `None` if the
    /// policies do not restrict the call. `arguments` is `None` before the arguments are read. A `forbid` that reads
    /// arguments is not evaluated at that stage, and a `permit` is evaluated without its clauses about arguments.
    pub(crate) fn say(
        &self,
        context: &PolicyContext<'_>,
        tool: &PolicyResource<'_>,
        effect: ToolEffect,
        arguments: Option<&Tree<'_>>,
    ) -> Option<(RuleVerdict, Vec<String>)> {
        let said = stacker::maybe_grow(EVALUATION_BYTES, 4 * EVALUATION_BYTES, || {
            attempted(|| self.0.evaluate(context, tool, effect, arguments))
        });
        match said {
            Ok(Ok(said)) => said,
            Ok(Err(Undecided)) | Err(_) => Some((RuleVerdict::Deny, vec![FAILED.to_owned()])),
        }
    }
}

impl Ready {
    fn evaluate(
        &self,
        context: &PolicyContext<'_>,
        tool: &PolicyResource<'_>,
        effect: ToolEffect,
        arguments: Option<&Tree<'_>>,
    ) -> Result<Option<(RuleVerdict, Vec<String>)>, Undecided> {
        let sets = if arguments.is_some() { &self.frozen } else { &self.admission };
        let request = Request::new(
            // A run without a principal has the empty id.
            uid(&self.types.principal, context.principal.unwrap_or_default()),
            uid(&self.types.action, tool.name),
            uid(&self.types.tool, tool.name),
            self.context(context, tool, arguments)?,
            None,
        );
        let request = request.map_err(|_| Undecided)?;
        let entities = self.entities(context, tool, effect)?;
        if let Some(denied) = denies(&request, &sets.decide, &entities, true) {
            return Ok(Some((RuleVerdict::Deny, denied)));
        }
        if sets.ask.is_empty() {
            return Ok(None);
        }
        let asked = denies(&request, &sets.ask, &entities, false);
        Ok(asked.map(|rules| {
            // A failure of a policy denies the call; it must not become a request for approval.
            let failed = rules.iter().any(|rule| rule.starts_with(FAILED));
            (if failed { RuleVerdict::Deny } else { RuleVerdict::RequireApproval }, rules)
        }))
    }

    fn entities(
        &self,
        context: &PolicyContext<'_>,
        tool: &PolicyResource<'_>,
        effect: ToolEffect,
    ) -> Result<Entities, Undecided> {
        let types = &self.types;
        let attributes = self.reads.attributes.iter().map(|name| {
            let held = context.attributes.iter().filter(|(held, _)| **held == **name);
            (name.clone(), texts(held.map(|(_, value)| &**value)))
        });
        let roles = context.roles.iter().map(|role| uid(&types.role, role));
        let parents: HashSet<_> = roles.chain(context.tenant.map(|tenant| uid(&types.tenant, tenant))).collect();
        let principal = uid(&types.principal, context.principal.unwrap_or_default());
        let principal = Entity::new(principal, attributes.collect(), parents).map_err(|_| Undecided)?;
        let mut described = HashMap::from([
            ("effect".to_owned(), text(effect.as_str())),
            ("tags".to_owned(), texts(tool.tags.iter().map(|tag| &**tag))),
            ("discovered".to_owned(), RestrictedExpression::new_bool(is_discovered(tool.name))),
        ]);
        if let Some(server) = server_of(tool.name) {
            described.insert("server".to_owned(), text(server));
        }
        let described = Entity::new(uid(&types.tool, tool.name), described, HashSet::new()).map_err(|_| Undecided)?;
        let groups = HashSet::from([effect.as_str(), "call"].map(|group| uid(&types.action, group)));
        let action = Entity::new_no_attrs(uid(&types.action, tool.name), groups);
        Entities::from_entities([principal, described, action], None).map_err(|_| Undecided)
    }

    fn context(
        &self,
        context: &PolicyContext<'_>,
        tool: &PolicyResource<'_>,
        arguments: Option<&Tree<'_>>,
    ) -> Result<Context, Undecided> {
        let mut pairs = vec![("labels".to_owned(), texts(context.labels.iter().map(|label| &**label)))];
        match context.caller {
            Caller::Direct => pairs.push(("caller".to_owned(), text("direct"))),
            Caller::Graph { name, .. } => {
                pairs.push(("caller".to_owned(), text("graph")));
                pairs.push(("graph".to_owned(), text(name)));
            }
        }
        if let Some(arguments) = arguments.filter(|_| self.reads.arguments) {
            let schema = tool.input_schema.map(Schema::to_value).unwrap_or_default();
            let kind = Kind::arguments(&schema, |name| self.reads.whole || self.reads.names.contains(name));
            // If the arguments do not fit the record, a policy would decide on rounded or missing values.
            let record = kind.value(arguments).ok().flatten().ok_or(Undecided)?;
            pairs.push(("arguments".to_owned(), record));
        }
        Context::from_pairs(pairs).map_err(|_| Undecided)
    }
}

/// Returns the rules that deny a request. With `permit`, a request that no `permit` policy matches is denied, too.
fn denies(request: &Request, policies: &PolicySet, entities: &Entities, permit: bool) -> Option<Vec<String>> {
    // Cedar reports ids in no fixed order; the rule of a decision must always be the same.
    let named = |ids: &mut dyn Iterator<Item = &PolicyId>, prefix: &str| {
        let ids = ids.collect::<BTreeSet<_>>().into_iter();
        ids.map(|policy| format!("{prefix}:{policy}")).collect::<Vec<_>>()
    };
    let answer = Authorizer::new().is_authorized(request, policies, entities);
    let mut failed = answer.diagnostics().errors().map(|error| match error {
        cedar_policy::AuthorizationError::PolicyEvaluationError(error) => error.policy_id(),
    });
    // Cedar skips a policy that fails. A skipped `forbid` would allow the call, so every failure denies.
    let failed = named(&mut failed, FAILED);
    if !failed.is_empty() {
        return Some(failed);
    }
    if answer.decision() == Decision::Allow {
        return None;
    }
    // All rules are returned, because each can set its own number of approvals.
    let denied = named(&mut answer.diagnostics().reason(), "cedar");
    if denied.is_empty() { permit.then(|| vec!["cedar".to_owned()]) } else { Some(denied) }
}
