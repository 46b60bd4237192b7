//! Whether a policy can ask for an approval, so that nobody forgets to say whether there is somebody who gives it.

use crate::catalog::Entry;
use crate::policy::{RuleVerdict, ToolPolicy};
use crate::tool::NoSchemaMode;

/// The first rule that can ask for an approval of a call of one of these tools, in the policy's own terms.
pub(super) fn rule<'e>(policy: &ToolPolicy, tools: impl Iterator<Item = &'e Entry>) -> Option<String> {
    let mut tools = tools.peekable();
    tools.peek()?;
    let data = policy.data();
    if data.repair.require_approval && !data.repair.allowed.is_empty() {
        return Some("repair.require_approval".to_owned());
    }
    tools.find_map(|entry| of_tool(policy, entry))
}

fn of_tool(policy: &ToolPolicy, entry: &Entry) -> Option<String> {
    let (data, name) = (policy.data(), entry.spec.name.as_str());
    let effect = policy.effect_of(name, entry.spec.effect);
    let asks = |verdict: &RuleVerdict| *verdict == RuleVerdict::RequireApproval;
    if data.require_approval_for_tools.contains(name) {
        return Some(format!("require_approval_for_tools = [\"{name}\"]"));
    }
    if data.require_approval_for_effects.contains(&effect) {
        return Some(format!("require_approval_for_effects = [\"{effect}\"]"));
    }
    if let Some(tag) = entry.spec.tags.iter().find(|tag| data.tags.get(&***tag).is_some_and(asks)) {
        return Some(format!("tags.{tag}"));
    }
    if let Some((label, _)) = data.labels.iter().find(|(_, rule)| rule.require_approval_for_effects.contains(&effect)) {
        return Some(format!("labels.{label}.require_approval_for_effects"));
    }
    if data.tools.get(name).is_some_and(|rule| rule.arguments.iter().any(|rule| asks(&rule.verdict))) {
        return Some(format!("tools.{name}.arguments"));
    }
    (entry.spec.no_schema == Some(NoSchemaMode::ApproveEach))
        .then(|| format!("`no_schema_mode = approve_each` of `{name}`"))
}
