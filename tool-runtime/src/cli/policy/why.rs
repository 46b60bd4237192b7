//! Why a rule of a policy spoke, in a sentence. It names keys, labels and pointers, and never the value of an argument.

use crate::call::{Decision, Verdict};
use crate::catalog::Entry;
use crate::cli::args::Explain;
use crate::policy::{ToolPolicy, Unready};

/// The sentence for the rule of a decision.
pub(super) fn of(decision: &Decision, policy: &ToolPolicy, entry: &Entry, asked: &Explain) -> String {
    let (rule, name) = (&*decision.rule, entry.spec.name.as_str());
    let effect = policy.effect_of(name, entry.spec.effect);
    if let Some(id) = rule.strip_prefix("cedar:") {
        return format!("the Cedar policy `{id}` forbids it");
    }
    if rule.starts_with("internal_error.") {
        return "it could not be decided, and so it is denied".to_owned();
    }
    let (table, rest) = rule.split_once('.').unwrap_or((rule, ""));
    let (subject, key) = rest.rsplit_once('.').unwrap_or((rest, ""));
    match (table, key) {
        ("allowed_tools", _) if decision.verdict == Verdict::Allow => "every run may call it".to_owned(),
        ("allowed_tools", _) => "neither the policy nor a table that applies to the run names it".to_owned(),
        ("callers", "allowed_tools") => format!("calls of `{subject}` may use other tools only"),
        ("callers", _) => format!("calls of `{subject}` may not use it"),
        ("roles" | "principals" | "attributes" | "tenants", "allowed_tools") => {
            format!("`{table}.{subject}` is granted it")
        }
        ("roles" | "principals" | "attributes" | "tenants", _) => format!("`{table}.{subject}` may not use it"),
        ("labels", _) => format!("the run has the label `{subject}`, and the effect is `{effect}`"),
        ("tags", _) => format!("the tool has the tag `{rest}`"),
        ("tools", "pin") if policy.tool(name).is_none_or(|rule| rule.pin.is_none()) => Unready::NotPinned.to_string(),
        ("tools", "pin") => Unready::Drifted.to_string(),
        ("tools", _) => argument(rest, policy, name),
        ("require_approval_for_tools", _) => "calls of this tool wait for a person".to_owned(),
        ("require_approval_for_effects", _) => format!("calls of the effect `{effect}` wait for a person"),
        ("repair", _) => "the arguments had to be repaired".to_owned(),
        ("no_schema_mode", _) => "the arguments of the tool have no schema".to_owned(),
        ("cedar", _) => format!("no Cedar policy permits it to {}", who(asked)),
        _ => "a rule of the policy says so".to_owned(),
    }
}

fn who(asked: &Explain) -> &'static str {
    if asked.caller == crate::call::Caller::Direct { "this run" } else { "this caller" }
}

/// `NAME.arguments[2]`: the pointer of the rule.
fn argument(rest: &str, policy: &ToolPolicy, name: &str) -> String {
    let at = rest.rsplit_once('[').and_then(|(_, at)| at.strip_suffix(']')).and_then(|at| at.parse::<usize>().ok());
    let rule = at.and_then(|at| policy.tool(name).and_then(|rule| rule.arguments.get(at)));
    match rule {
        Some(rule) => format!("the argument at `{}` is not what the rule lets through", rule.pointer),
        None => "a rule about its arguments says so".to_owned(),
    }
}
