//! Lists the rules of a policy that can require an approval. If there are any, the runner's builder requires a call of
//! `approvals`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::{Entry, ToolCatalog};
use crate::error::Problem;
use crate::policy::{RuleVerdict, ToolPolicy};
use crate::tool::{NoSchemaMode, ToolEffect, ToolSpec};

/// Returns every rule that can require an approval of a call of an executable tool. Tools of an MCP server that has not
/// connected yet are included, because the policy names them.
pub(in crate::runner) fn of_catalog(policy: &ToolPolicy, catalog: &ToolCatalog) -> Vec<String> {
    rules(policy, executable(policy, catalog))
}

fn executable<'e>(policy: &'e ToolPolicy, catalog: &'e ToolCatalog) -> impl Iterator<Item = ToolProperties<'e>> {
    let known = catalog.entries().map(|entry| ToolProperties::of(entry)).filter(move |tool| policy.mentions(tool.name));
    let later = policy.mentioned().filter(move |name| catalog.get(name).is_none() && catalog.missing(name).is_some());
    known.chain(later.map(ToolProperties::discovered))
}

/// Returns every rule under which a call of an MCP client can wait for a person. If `own` is `true`, omits rules for
/// calls on which their own principal may decide alone. Includes scripts whose calls with effects always wait.
pub(in crate::runner) fn of_clients(policy: &ToolPolicy, catalog: &ToolCatalog, own: bool) -> Vec<String> {
    let decides = |name: &str, effect| own && decides_alone(policy, name, effect);
    let tools = executable(policy, catalog);
    let mut rules = rules(policy, tools.filter(|tool| !decides(tool.name, policy.effect_of(tool.name, tool.effect))));
    let scripts = catalog.entries().filter(|entry| policy.mentions(entry.spec.name.as_str()));
    for (name, graph) in scripts.filter_map(|entry| Some((&entry.spec.name, entry.graph.as_deref()?))) {
        let effect = |tool: &str| Some(policy.effect_of(tool, catalog.entry(tool)?.spec.effect));
        let waits = |tool: &String| effect(tool).is_some_and(|it| it != ToolEffect::ReadOnly && !decides(tool, it));
        if graph.asks_each && graph.tools.iter().any(waits) {
            rules.push(format!("each effect of `{name}`"));
        }
    }
    rules
}

/// Returns a warning for each table of `approvals.tools` that only a call after one of unknown outcome can need: its
/// author probably expects that the table itself requires approvals. Calls of scripts with effects always wait.
pub(in crate::runner) fn warnings(policy: &ToolPolicy, catalog: &ToolCatalog) -> Vec<Problem> {
    let scripts = catalog.entries().filter_map(|entry| entry.graph.as_deref()).filter(|graph| graph.asks_each);
    let asked: BTreeSet<&str> = scripts.flat_map(|graph| &graph.tools).map(String::as_str).collect();
    let unasked = policy.unasked(catalog.specs()).into_iter().filter(|name| !asked.contains(name));
    let warning = |name: &str| {
        let message = format!(
            "no rule requires an approval of `{name}`, so this applies only after a call of unknown outcome; to \
             require approvals, add the tool to `require_approval_for_tools`"
        );
        Problem::policy(format!("approvals.tools.{name}"), message)
    };
    unasked.map(warning).collect()
}

/// Returns the tools whose calls can wait because the outcome of an earlier call is unknown. If `own` is `true`, omits
/// tools on whose calls their own principal may decide alone.
#[cfg(feature = "mcp-server")]
pub(in crate::runner) fn unknown_outcomes(policy: &ToolPolicy, catalog: &ToolCatalog, own: bool) -> Vec<String> {
    let decides = |entry: &Entry| {
        let name = entry.spec.name.as_str();
        own && decides_alone(policy, name, policy.effect_of(name, entry.spec.effect))
    };
    let entries = catalog.entries().filter(|entry| policy.mentions(entry.spec.name.as_str()));
    let waits = entries.filter(|entry| can_be_twin(policy, entry) && !decides(entry));
    waits.map(|entry| format!("an unknown outcome of `{}`", entry.spec.name)).collect()
}

/// Whether a call of this tool waits while the outcome of an equal earlier call is unknown.
#[cfg(feature = "mcp-server")]
pub(in crate::runner) fn can_be_twin(policy: &ToolPolicy, entry: &Entry) -> bool {
    let has_effect = policy.effect_of(entry.spec.name.as_str(), entry.spec.effect) != ToolEffect::ReadOnly;
    has_effect && (!entry.spec.idempotent || entry.spec.once.is_some())
}

/// Whether the policy lets a principal, who is one person, decide alone on their own calls of a tool.
fn decides_alone(policy: &ToolPolicy, name: &str, effect: ToolEffect) -> bool {
    let approvals = &policy.data().approvals;
    approvals.has_own_calls(name, effect) && approvals.most_required(name, effect) == 1
}

/// The properties of a tool that the rules read.
struct ToolProperties<'e> {
    name: &'e str,
    effect: ToolEffect,
    tags: &'e [Arc<str>],
    approves_each: bool,
}

impl<'e> ToolProperties<'e> {
    fn of(entry: &'e Entry) -> Self {
        let ToolSpec { name, effect, tags, no_schema, .. } = &*entry.spec;
        let approves_each = *no_schema == Some(NoSchemaMode::ApproveEach);
        Self { name: name.as_str(), effect: *effect, tags, approves_each }
    }

    /// Describes a tool that a server publishes. Its effect is always `external_side_effect`, whatever the server
    /// declares.
    const fn discovered(name: &'e str) -> Self {
        Self { name, effect: ToolEffect::ExternalSideEffect, tags: &[], approves_each: false }
    }
}

/// Whether a call of this tool can wait for a person.
#[cfg(feature = "mcp-server")]
pub(in crate::runner) fn asks(policy: &ToolPolicy, entry: &Entry) -> bool {
    !rules(policy, std::iter::once(ToolProperties::of(entry))).is_empty()
}

/// Returns every rule that can require an approval of a call of one of these tools, in the notation of the policy and
/// without duplicates.
fn rules<'e>(policy: &ToolPolicy, tools: impl Iterator<Item = ToolProperties<'e>>) -> Vec<String> {
    let (data, mut rules, mut any) = (policy.data(), BTreeSet::new(), false);
    for tool in tools {
        of_tool(policy, &tool, &mut rules);
        any = true;
    }
    if any && let Some(cedar) = &data.cedar {
        rules.extend(cedar.asks());
    }
    if any && data.repair.require_approval && !data.repair.allowed.is_empty() {
        rules.insert("repair.require_approval".to_owned());
    }
    rules.into_iter().collect()
}

fn of_tool(policy: &ToolPolicy, tool: &ToolProperties<'_>, rules: &mut BTreeSet<String>) {
    let (data, name) = (policy.data(), tool.name);
    let effect = policy.effect_of(name, tool.effect);
    let asks = |verdict: &RuleVerdict| *verdict == RuleVerdict::RequireApproval;
    if data.require_approval_for_tools.contains(name) {
        rules.insert(format!("require_approval_for_tools = [\"{name}\"]"));
    }
    if data.require_approval_for_effects.contains(&effect) {
        rules.insert(format!("require_approval_for_effects = [\"{effect}\"]"));
    }
    let tags = tool.tags.iter().filter(|tag| data.tags.get(&***tag).is_some_and(asks));
    rules.extend(tags.map(|tag| format!("tags.{tag}")));
    let labels = data.labels.iter().filter(|(_, rule)| rule.require_approval_for_effects.contains(&effect));
    rules.extend(labels.map(|(label, _)| format!("labels.{label}.require_approval_for_effects")));
    if data.tools.get(name).is_some_and(|rule| rule.arguments.iter().any(|rule| asks(&rule.verdict))) {
        rules.insert(format!("tools.{name}.arguments"));
    }
    if tool.approves_each {
        rules.insert(format!("`no_schema_mode = approve_each` of `{name}`"));
    }
}
