//! Compares a policy with a catalog: every name in the policy must exist, and every rule must be able to apply.

mod allowed;
mod budgets;
mod graphs;
pub(super) mod unsatisfiable;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::error::Problem;
use crate::policy::approvals::GuardedTool;
use crate::policy::cedar::CedarRules;
use crate::policy::data::{Given, Grant};
use crate::policy::label::LabelRule;
use crate::policy::problem::{missing_tool, unknown};
use crate::policy::resource::PolicyResource;
use crate::policy::rule_verdict::RuleVerdict;
use crate::policy::server_rule::{ServerRule, server_of};
use crate::policy::tool_policy::ToolPolicy;
use crate::text::{is_name, nearest, pointer};
use crate::tool::{NoSchemaMode, Schema, ToolEffect, ToolSpec, is_discovered};

impl ToolPolicy {
    /// Returns the parts of the policy that do not fit an application:
    ///
    /// - names of tools, graphs, tags, repairers and callers that do not exist,
    /// - tables that decide nothing, labels that no rule sets or reads, and budgets that are too small for one call,
    /// - an effect below the effect that the tool declares, and a key for discovered tools on an authored tool,
    /// - pointers to arguments that do not exist, and conditions that no argument can meet,
    /// - names of roles, principals, attributes and tenants that are empty, or have outer spaces or invisible
    ///   characters.
    ///
    /// Names under `mcp__` are accepted, because their server may not have answered yet. So are roles, principals,
    /// attributes and tenants, which no catalog knows. The allowlists of outputs (`redact` and `model`) are not checked
    /// here, but when a runner compiles them.
    #[must_use]
    pub fn check<'a>(
        &self,
        tools: impl IntoIterator<Item = &'a ToolSpec>,
        repairers: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Problem> {
        let tools: HashMap<&str, &ToolSpec> = tools.into_iter().map(|spec| (spec.name.as_str(), spec)).collect();
        let tags: BTreeSet<&str> = tools.values().flat_map(|spec| spec.tags.iter().map(|tag| &**tag)).collect();
        let repairers: BTreeSet<&str> = repairers.into_iter().collect();
        let mut problems = Vec::new();
        let mut unlinked = BTreeSet::new();
        for (path, name) in self.names().filter(|(_, name)| !is_discovered(name) && !tools.contains_key(name)) {
            let (message, nearest) = missing_tool(name, tools.keys().copied(), &mut unlinked);
            problems.push(Problem::policy(path, message).with_nearest(nearest));
        }
        for (path, tag) in self.tags() {
            unknown("tag", path, tag, tags.contains(tag), tags.iter().copied(), &mut problems);
        }
        for name in &self.data().repair.allowed {
            let path = "repair.allowed".to_owned();
            unknown(
                "repairer",
                path,
                name,
                repairers.contains(name.as_str()),
                repairers.iter().copied(),
                &mut problems,
            );
        }
        graphs::problems(self, &tools, &mut problems);
        self.check_labels(&mut problems);
        self.check_grants(&mut problems);
        self.check_parties(&mut problems);
        self.check_callers(&mut problems);
        allowed::problems(self, &tools, &mut problems);
        budgets::problems(self.data(), &mut problems);
        self.data().notices.iter().for_each(|notices| notices.check(&mut problems));
        let named: BTreeSet<&str> = self.names().map(|(_, name)| name).collect();
        self.check_servers(&named, &mut problems);
        let rules = self.approval_rules();
        self.data().approvals.check(&rules, &self.asked(&rules, &tools), &mut problems);
        let of_notices = self.data().notices.iter().flat_map(|notices| notices.tools.keys());
        let with_rules: BTreeSet<&String> = self.data().tools.keys().chain(of_notices).collect();
        for name in with_rules {
            if let Some(spec) = tools.get(name.as_str()) {
                self.check_tool(name, spec, &mut problems);
            }
        }
        if let Some(cedar) = &self.data().cedar {
            let tools = tools.iter().filter(|(_, spec)| self.is_as_pinned(spec));
            let tools = tools.map(|(name, spec)| (*name, (*spec, self.effect_of(name, spec.effect))));
            problems.extend(cedar.check(&self.data().labels, &tools.collect()));
        }
        problems
    }

    fn check_callers(&self, problems: &mut Vec<Problem>) {
        for caller in self.data().callers.keys() {
            let named = caller.strip_prefix("graph:").is_some_and(|name| !name.is_empty());
            if !named && !matches!(caller.as_str(), "direct" | "graph") {
                let message = "unknown caller; write `direct`, `graph` or `graph:NAME`".to_owned();
                let suggestion = nearest(caller, ["direct", "graph"]).map(str::to_owned);
                problems.push(Problem::policy(format!("callers.{caller}"), message).with_nearest(suggestion));
            }
        }
    }

    /// Reports servers whose rules decide nothing.
    fn check_servers(&self, named: &BTreeSet<&str>, problems: &mut Vec<Problem>) {
        for (id, rule) in &self.data().servers {
            let path = format!("servers.{id}");
            if *rule == ServerRule::default() {
                let message = "this decides nothing; write `enabled = false`, `effect` or a limit".to_owned();
                problems.push(Problem::policy(path, message));
            } else if !named.iter().any(|tool| server_of(tool) == Some(id)) {
                let message = format!("this decides nothing: the policy names no tool of the server, `mcp__{id}__..`");
                let nearest = nearest(id, named.iter().filter_map(|tool| server_of(tool))).map(str::to_owned);
                problems.push(Problem::policy(path, message).with_nearest(nearest));
            }
        }
    }

    fn check_labels(&self, problems: &mut Vec<Problem>) {
        for (label, rule) in &self.data().labels {
            let read = self.data().cedar.as_ref().is_some_and(|cedar| cedar.labels().contains(label));
            if rule.deny_effects.is_empty() && rule.require_approval_for_effects.is_empty() && !read {
                let message = "the label decides nothing; write `deny_effects` or `require_approval_for_effects`";
                problems.push(Problem::policy(format!("labels.{label}"), message.to_owned()));
            }
            if rule.from_tools.is_empty()
                && rule.from_tags.is_empty()
                && !rule.from_run
                && label != LabelRule::UNTRUSTED
            {
                let message =
                    "no rule puts this label on a run; write `from_tools`, `from_tags`, or `from_run = true` \
                               for a label that the application sets"
                        .to_owned();
                let suggestion = nearest(label, [LabelRule::UNTRUSTED]).map(str::to_owned);
                problems.push(Problem::policy(format!("labels.{label}"), message).with_nearest(suggestion));
            }
        }
    }

    fn check_grants(&self, problems: &mut Vec<Problem>) {
        let mut idle = |path: String, message: &str| {
            problems.push(Problem::policy(path, format!("this decides nothing; {message}")));
        };
        for (path, given) in self.grants() {
            if given.is_empty() {
                idle(path, "write `allowed_tools`, `allowed_graphs` or `denied_tools`");
            }
        }
        for (name, _) in self.data().attributes.iter().filter(|(_, values)| values.is_empty()) {
            idle(format!("attributes.{name}"), &format!("write a table for a value, `attributes.{name}.VALUE`"));
        }
        for (caller, ceiling) in &self.data().callers {
            if ceiling.allowed_tools.is_none() && ceiling.denied_tools.is_empty() {
                idle(format!("callers.{caller}"), "write `allowed_tools` or `denied_tools`");
            }
        }
    }

    /// Principals, tenants, roles and attributes are compared byte for byte, and no catalog knows them. A rule for a
    /// name with a trailing space or an invisible character would look effective and never match.
    fn check_parties(&self, problems: &mut Vec<Problem>) {
        let data = self.data();
        let roles = data.roles.keys().chain(data.tenants.values().flat_map(|grant| grant.roles.keys()));
        let attributes = data.attributes.iter().flat_map(|(name, values)| values.keys().chain([name]));
        let kinds = [
            ("roles", roles.collect::<BTreeSet<_>>()),
            ("principals", data.principals.keys().collect()),
            ("attributes", attributes.collect()),
            ("tenants", data.tenants.keys().collect()),
            ("approvals", data.approvals.named_roles().chain(data.approvals.named_principals()).collect()),
        ];
        for (kind, names) in kinds {
            for name in names.into_iter().filter(|name| !is_name(name) || name.trim() != name.as_str()) {
                let message = format!(
                    "{name:?} is empty, begins or ends with a space, or has invisible characters; write it as the \
                     application does"
                );
                problems.push(Problem::policy(kind.to_owned(), message));
            }
        }
    }

    /// Whether the rules for a tool apply to this definition. If a server's definition differs from the pinned one, the
    /// tool is denied, but the policy stays valid.
    pub(crate) fn is_as_pinned(&self, spec: &ToolSpec) -> bool {
        spec.pin.is_none() || self.tool(spec.name.as_str()).is_none_or(|rule| rule.pin == spec.pin)
    }

    /// Reports rules for a tool that do not fit its definition.
    pub(crate) fn check_tool(&self, name: &str, spec: &ToolSpec, problems: &mut Vec<Problem>) {
        if let Some(notices) = self.data().notices.as_ref().filter(|_| self.is_as_pinned(spec)) {
            let input = Schema::to_value(&spec.input_schema);
            notices.check_tool(spec, |pointer| resolve(&input, pointer).map(drop), problems);
        }
        let Some(rule) = self.tool(name).filter(|_| self.is_as_pinned(spec)) else { return };
        let path = |key: &str| format!("tools.{name}.{key}");
        if !is_discovered(name) {
            if let Some(effect) = rule.effect.filter(|effect| *effect < spec.effect) {
                let message = format!(
                    "`{effect}` is less than the tool declares; write `{}` or more, or change the tool",
                    spec.effect
                );
                problems.push(Problem::policy(path("effect"), message));
            }
            if rule.pin.is_some() {
                let message = "an authored tool is part of the program; pin it with `tools.lock`".to_owned();
                problems.push(Problem::policy(path("pin"), message));
            }
        }
        if rule.arguments.is_empty() {
            return;
        }
        let input = Schema::to_value(&spec.input_schema);
        for (at, rule) in rule.arguments.iter().enumerate() {
            match resolve(&input, &rule.pointer) {
                Err((message, nearest)) => {
                    let path = path(&format!("arguments[{at}].pointer"));
                    problems.push(Problem::policy(path, message).with_nearest(nearest));
                }
                Ok(found) => {
                    if let Some(unsatisfiable) =
                        found.and_then(|argument| unsatisfiable::of(&rule.condition, &input, argument))
                    {
                        let (path, nearest) = (path(&format!("arguments[{at}]")), unsatisfiable.nearest);
                        problems.push(Problem::policy(path, unsatisfiable.message).with_nearest(nearest));
                    }
                }
            }
        }
    }

    /// Returns the names of the rules that can require an approval.
    fn approval_rules(&self) -> BTreeSet<String> {
        let data = self.data();
        let asks = |verdict: &RuleVerdict| *verdict == RuleVerdict::RequireApproval;
        let arguments = data.tools.iter().flat_map(|(tool, rule)| {
            let asking = rule.arguments.iter().enumerate().filter(move |(_, rule)| asks(&rule.verdict));
            asking.map(move |(at, _)| format!("tools.{tool}.arguments[{at}]"))
        });
        let labels = data.labels.iter().filter(|(_, rule)| !rule.require_approval_for_effects.is_empty());
        let labels = labels.map(|(label, _)| format!("labels.{label}.require_approval_for_effects"));
        let tags = data.tags.iter().filter(|(_, verdict)| asks(verdict)).map(|(tag, _)| format!("tags.{tag}"));
        let general = [
            ("require_approval_for_tools", !data.require_approval_for_tools.is_empty()),
            ("require_approval_for_effects", !data.require_approval_for_effects.is_empty()),
            ("repair.require_approval", data.repair.require_approval && !data.repair.allowed.is_empty()),
            ("no_schema_mode.approve_each", true),
        ];
        let general = general.into_iter().filter(|(_, is_there)| *is_there).map(|(rule, _)| rule.to_owned());
        arguments.chain(labels).chain(tags).chain(general).chain(data.cedar.iter().flat_map(CedarRules::asks)).collect()
    }

    /// Returns the tools that have a table under `approvals.tools` although no rule can require an approval of their
    /// calls.
    pub(crate) fn unasked<'a>(&'a self, tools: impl IntoIterator<Item = &'a ToolSpec>) -> Vec<&'a str> {
        let tools = tools.into_iter().map(|spec| (spec.name.as_str(), spec)).collect();
        let asked = self.asked(&self.approval_rules(), &tools).into_iter();
        let has_table = |tool: &GuardedTool<'_>| self.data().approvals.tools.contains_key(tool.name);
        asked.filter(|tool| tool.rules.is_empty() && has_table(tool)).map(|tool| tool.name).collect()
    }

    /// Returns the tools that a run may call or that `approvals.tools` names, each with the rules that can require an
    /// approval of its calls. A discovered tool is included even if its server has not answered yet.
    fn asked<'a>(&'a self, rules: &BTreeSet<String>, tools: &HashMap<&'a str, &'a ToolSpec>) -> Vec<GuardedTool<'a>> {
        let named: BTreeSet<&str> =
            self.mentioned().chain(self.data().approvals.tools.keys().map(String::as_str)).collect();
        let asked = named.into_iter().filter_map(|name| {
            let resource = match tools.get(name) {
                Some(spec) => PolicyResource::of(spec),
                None if is_discovered(name) => PolicyResource::new(name, ToolEffect::ExternalSideEffect),
                None => return None,
            };
            let effect = self.effect_of(name, resource.effect);
            let rules = rules.iter().filter(|rule| self.can_ask(rule, &resource, effect)).cloned().collect();
            Some(GuardedTool { name, effect, rules })
        });
        asked.collect()
    }

    /// Whether this rule can require an approval of the tool's calls.
    fn can_ask(&self, rule: &str, tool: &PolicyResource<'_>, effect: ToolEffect) -> bool {
        let data = self.data();
        let label =
            |rule: &str| rule.strip_suffix(".require_approval_for_effects").and_then(|label| data.labels.get(label));
        match rule {
            "require_approval_for_tools" => data.require_approval_for_tools.contains(tool.name),
            "require_approval_for_effects" => self.approves(effect),
            "no_schema_mode.approve_each" => tool.no_schema == Some(NoSchemaMode::ApproveEach),
            _ => match rule.split_once(['.', ':']) {
                Some(("tags", tag)) => tool.tags.iter().any(|known| **known == *tag),
                Some(("labels", rule)) => {
                    label(rule).is_some_and(|it| it.require_approval_for_effects.contains(&effect))
                }
                Some(("tools", rule)) => rule.strip_prefix(tool.name).is_some_and(|rest| rest.starts_with('.')),
                Some(("cedar", _)) => data.cedar.as_ref().is_some_and(|cedar| cedar.can_ask(rule, tool.name, effect)),
                // The arguments of any tool can be repaired.
                _ => true,
            },
        }
    }

    /// Returns every tag in the policy with its path.
    fn tags(&self) -> impl Iterator<Item = (String, &str)> {
        let own = self.data().tags.keys().map(|tag| (format!("tags.{tag}"), tag.as_str()));
        own.chain(self.data().labels.iter().flat_map(|(label, rule)| {
            rule.from_tags.iter().map(move |tag| (format!("labels.{label}.from_tags"), tag.as_str()))
        }))
    }

    /// Returns every table that adds or removes tools, with its path.
    pub(super) fn grants(&self) -> Vec<(String, Given<'_>)> {
        fn of<'a>(key: &str, grants: &'a BTreeMap<String, Grant>) -> impl Iterator<Item = (String, Given<'a>)> {
            grants.iter().map(move |(id, grant)| (format!("{key}.{id}"), grant.given()))
        }
        let data = self.data();
        let mut all: Vec<_> = of("roles", &data.roles).chain(of("principals", &data.principals)).collect();
        data.attributes.iter().for_each(|(name, values)| all.extend(of(&format!("attributes.{name}"), values)));
        for (tenant, grant) in &data.tenants {
            let path = format!("tenants.{tenant}");
            all.extend(of(&format!("{path}.roles"), &grant.roles));
            if grant.roles.is_empty() || !grant.given().is_empty() {
                all.push((path, grant.given()));
            }
        }
        all
    }

    /// Returns every name of a tool in the policy, with its path.
    fn names(&self) -> impl Iterator<Item = (String, &str)> {
        let data = self.data();
        let lists = [
            ("allowed_tools".to_owned(), &data.allowed_tools),
            ("require_approval_for_tools".to_owned(), &data.require_approval_for_tools),
        ];
        let grants = self.grants().into_iter().flat_map(|(path, given)| {
            [(format!("{path}.allowed_tools"), given.tools), (format!("{path}.denied_tools"), given.denied)]
        });
        let callers = data.callers.iter().flat_map(|(caller, ceiling)| {
            let denied = (format!("callers.{caller}.denied_tools"), &ceiling.denied_tools);
            let only = ceiling.allowed_tools.as_ref().map(|only| (format!("callers.{caller}.allowed_tools"), only));
            only.into_iter().chain([denied])
        });
        let labels = data.labels.iter().map(|(label, rule)| (format!("labels.{label}.from_tools"), &rule.from_tools));
        let lists = lists.into_iter().chain(grants).chain(callers).chain(labels);
        let keys = data.budgets.tools.keys().map(|name| (format!("budgets.tools.{name}"), name.as_str()));
        let keys =
            keys.chain(data.approvals.tools.keys().map(|name| (format!("approvals.tools.{name}"), name.as_str())));
        let keys = keys.chain(data.tools.keys().map(|name| (format!("tools.{name}"), name.as_str())));
        let notices = data.notices.iter().flat_map(|notices| notices.tools.keys());
        let keys = keys.chain(notices.map(|name| (format!("notices.tools.{name}"), name.as_str())));
        lists.flat_map(|(path, names)| names.iter().map(move |name| (path.clone(), name.as_str()))).chain(keys)
    }
}

/// Whether a segment of a pointer is the index of an item: digits without a leading zero.
fn is_index(segment: &str) -> bool {
    segment == "0"
        || (!segment.is_empty() && !segment.starts_with('0') && segment.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the schema of the argument at a pointer. `None` if the schema allows members that it does not describe. The
/// error is a message and the nearest pointer that exists.
fn resolve<'a>(
    document: &'a serde_json::Value,
    pointer: &str,
) -> Result<Option<&'a serde_json::Value>, (String, Option<String>)> {
    let mut schema = unsatisfiable::target(document, document);
    for (depth, segment) in pointer::split(pointer).into_iter().flatten().enumerate() {
        let properties = schema.get("properties").and_then(|properties| properties.as_object());
        let property = properties.and_then(|properties| properties.get(&*segment));
        let item = schema.get("items").filter(|_| is_index(&segment));
        let Some(next) = property.or(item) else {
            let open = schema.get("additionalProperties") != Some(&serde_json::Value::Bool(false));
            if open && schema.get("items").is_none() {
                return Ok(None);
            }
            let names = properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
            let parent: Vec<_> = pointer.split('/').take(depth + 1).collect();
            let whole = |name: &str| {
                let mut whole = parent.join("/");
                pointer::push(&mut whole, name);
                whole
            };
            let nearest = nearest(&segment, names).map(whole);
            return Err((format!("the arguments have nothing at `{pointer}`"), nearest));
        };
        schema = unsatisfiable::target(document, next);
    }
    Ok(Some(schema))
}
