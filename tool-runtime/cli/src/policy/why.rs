//! Explains in one sentence why a rule of a policy applies. The sentence names keys, labels and pointers, but never the
//! value of an argument.

use tool_runtime::call::{Decision, Verdict};
use tool_runtime::error::Problem;
use tool_runtime::{ToolPolicy, ToolSpec};

use crate::policy::explain::Explain;
use crate::written::PolicyFile;

/// Returns the sentence for the rule of a decision.
pub(super) fn of(
    decision: &Decision,
    policy: &ToolPolicy,
    written: &PolicyFile,
    (spec, unready): (&ToolSpec, Option<&Problem>),
    asked: &Explain,
) -> String {
    let (rule, name) = (&*decision.rule, spec.name.as_str());
    let effect = policy.effect_of(name, spec.effect);
    if let Some(id) = rule.strip_prefix("cedar:") {
        return format!("the Cedar policy `{id}` forbids it");
    }
    if rule.starts_with("internal_error.") {
        return "it could not be decided, and so it is denied".to_owned();
    }
    let (table, rest) = rule.split_once('.').unwrap_or((rule, ""));
    let (subject, key) = rest.rsplit_once('.').unwrap_or((rest, ""));
    match (table, key) {
        ("allowed_tools" | "allowed_graphs", _) if decision.verdict == Verdict::Allow => {
            "every run may call it".to_owned()
        }
        ("allowed_tools" | "allowed_graphs", _) => {
            format!("neither the policy nor a table that applies to the run names it under `{table}`")
        }
        ("graph", _) => "a graph may not call another graph".to_owned(),
        ("run", _) => "the tools of the run do not include it".to_owned(),
        ("servers", _) => format!("the policy disables the server `{subject}`"),
        ("callers", "allowed_tools") => format!("calls of `{subject}` may use other tools only"),
        ("callers", _) => format!("calls of `{subject}` may not use it"),
        ("roles" | "principals" | "attributes" | "tenants", "allowed_tools" | "allowed_graphs") => {
            format!("`{table}.{subject}` may use it")
        }
        ("roles" | "principals" | "attributes" | "tenants", _) => format!("`{table}.{subject}` may not use it"),
        ("labels", _) => format!("the run has the label `{subject}`, and the effect is `{effect}`"),
        ("tags", _) => format!("the tool has the tag `{rest}`"),
        ("tools", "pin") => match unready {
            Some(why) => why.to_string(),
            None => "its definition is not the one that the policy pins".to_owned(),
        },
        ("tools", _) => argument(rest, written, name),
        ("require_approval_for_tools", _) => "calls of this tool wait for a person".to_owned(),
        ("require_approval_for_effects", _) => format!("calls of the effect `{effect}` wait for a person"),
        ("repair", _) => "the arguments had to be repaired".to_owned(),
        ("no_schema_mode", _) => "the arguments of the tool have no schema".to_owned(),
        ("cedar", _) => format!("no Cedar policy permits it to {}", who(asked)),
        _ => "a rule of the policy applies".to_owned(),
    }
}

fn who(asked: &Explain) -> &'static str {
    if asked.caller == tool_runtime::call::Caller::Direct { "this run" } else { "this caller" }
}

/// Returns the sentence for an argument rule, such as `NAME.arguments[2]`.
fn argument(rest: &str, written: &PolicyFile, name: &str) -> String {
    let at = rest.rsplit_once('[').and_then(|(_, at)| at.strip_suffix(']')).and_then(|at| at.parse::<usize>().ok());
    let pointer = at.and_then(|at| written.tool(name, "arguments")?.get(at)?.get("pointer")?.as_str());
    match pointer {
        Some(pointer) => format!("the rule does not admit the argument at `{pointer}`"),
        None => "a rule about its arguments applies".to_owned(),
    }
}
