//! Checks the rules that can apply only to a tool that a run is allowed: the lists of callers, and
//! `require_approval_for_tools`. Both search the same parts of the policy for the tool.

use std::collections::HashMap;

use crate::error::Problem;
use crate::policy::tool_policy::ToolPolicy;
use crate::tool::{ToolSpec, is_discovered};

const ALLOW: &str = "add it to `allowed_tools`, or to those of a role, a principal, an attribute or a tenant";

pub(super) fn problems(policy: &ToolPolicy, tools: &HashMap<&str, &ToolSpec>, problems: &mut Vec<Problem>) {
    for (caller, ceiling) in &policy.data().callers {
        for name in ceiling.allowed_tools.iter().flatten().filter(|name| is_allowed_nowhere(policy, name)) {
            let message = format!("no run is allowed `{name}`, and a caller grants no tools; {ALLOW}");
            problems.push(Problem::policy(format!("callers.{caller}.allowed_tools"), message));
        }
    }
    let approved = policy.data().require_approval_for_tools.iter();
    let exists = |name: &&String| tools.contains_key(name.as_str()) || is_discovered(name);
    for name in approved.filter(exists).filter(|name| is_allowed_nowhere(policy, name)) {
        let message = format!("no run is allowed `{name}`, so no call of it needs an approval; {ALLOW}");
        problems.push(Problem::policy("require_approval_for_tools".to_owned(), message));
    }
}

/// Whether no part of the policy allows the tool. `false` for a tool of a server that `enabled = false` turns off.
fn is_allowed_nowhere(policy: &ToolPolicy, name: &str) -> bool {
    !policy.mentions(name) && policy.compiled(name).is_none_or(|compiled| compiled.disabled.is_none())
}
