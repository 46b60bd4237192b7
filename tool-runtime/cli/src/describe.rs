//! Describes a waiting call for an approver: its effect, its arguments, its principal and the rule that applies.

use tool_runtime::call::{ArgumentChange, JsonText, NamedArgument, Suspension};
use tool_runtime::store::PendingCall;
use tool_runtime::{ToolCatalog, ToolEffect, ToolPolicy};

use crate::fold::{INDENT, Room, fields, folded};
use crate::terminal;

/// The maximum number of lines for arguments.
const LINES: usize = 40;

/// The call that a person decides: the waiting call, or, if that is a graph, the call inside the graph.
pub(super) struct ShownCall<'a> {
    pub(super) tool: &'a str,
    /// The arguments, masked, as JSON text.
    pub(super) arguments: &'a str,
    pub(super) summary: Option<&'a str>,
    pub(super) changes: &'a [ArgumentChange],
    pub(super) names: &'a [NamedArgument],
    /// The rule that required the decision.
    pub(super) rule: Option<&'a str>,
}

impl<'a> ShownCall<'a> {
    pub(super) fn of(call: &'a PendingCall) -> Self {
        match &call.graph {
            Some(graph) => Self {
                tool: &graph.tool,
                arguments: graph.shown_arguments.as_ref().map_or("{}", JsonText::get),
                summary: graph.summary.as_deref(),
                changes: &graph.changes,
                names: &graph.names,
                rule: graph.rule.as_deref(),
            },
            None => Self {
                tool: call.tool.as_str(),
                arguments: call.shown_arguments.get(),
                summary: call.summary.as_deref(),
                changes: &call.changes,
                names: &call.names,
                rule: call.rule.as_deref(),
            },
        }
    }
}

/// Returns the lines that a person reads before a decision. Sensitive arguments are masked unless `unmask` is `true`.
pub(super) fn describe(
    (catalog, policy): (&ToolCatalog, &ToolPolicy),
    call: &PendingCall,
    unmask: bool,
) -> Vec<String> {
    let ShownCall { summary, changes, names, rule, arguments, .. } = ShownCall::of(call);
    let mut lines = Vec::new();
    // Marks that isolate text directions are removed. Terminals do not reorder text, and `safe` would escape the marks.
    let summary = summary.map(|text| terminal::safe(&text.replace(['\u{2068}', '\u{2069}'], "")));
    lines.extend(summary.iter().flat_map(|text| paragraph(text)));
    lines.extend(paragraph(&sentence(catalog, policy, call)));
    if let Some(graph) = &call.graph {
        lines.extend(paragraph(&terminal::safe(&graph.path)));
    }
    let arguments = if unmask && call.graph.is_none() { call.arguments() } else { arguments };
    lines.extend(fields(arguments, Room::of_message(LINES)));
    lines.extend(changes.iter().flat_map(|change| paragraph(&terminal::safe(&change.to_string()))));
    lines.extend(names.iter().flat_map(|named| paragraph(&terminal::safe(&named.to_string()))));
    let mut about = Vec::new();
    if let Some(rule) = rule {
        about.push(format!("required by {}", terminal::safe(rule)));
    }
    let party: Vec<_> =
        [&call.principal, &call.tenant].into_iter().flatten().map(|name| terminal::safe(name)).collect();
    if !party.is_empty() {
        about.push(format!("for {}", party.join(" of ")));
    }
    if !call.labels.is_empty() {
        about.push(format!("after reading data labelled {}", call.labels.join(", ")));
    }
    about.push(format!("until {:.0}", call.expires_at));
    lines.extend(paragraph(&format!("({})", about.join("; "))));
    lines
}

/// Returns a string as indented lines that fit the terminal. Without a terminal, it is one line.
fn paragraph(text: &str) -> Vec<String> {
    let room = terminal::width().map_or(usize::MAX, |width| width.saturating_sub(INDENT).max(20));
    folded(text, room).into_iter().map(|line| format!("{:INDENT$}{line}", "")).collect()
}

/// Returns the sentence that describes the call's effect, which the policy can raise.
fn sentence(catalog: &ToolCatalog, policy: &ToolPolicy, call: &PendingCall) -> String {
    let tool = ShownCall::of(call).tool;
    let Some(spec) = catalog.get(tool) else {
        return format!("{}: this application no longer has the tool", terminal::safe(tool));
    };
    let text = terminal::safe(spec.description.lines().next().unwrap_or_default().trim());
    let reach = match policy.effect_of(tool, spec.effect) {
        ToolEffect::ReadOnly => "It reads only.",
        ToolEffect::StateChange => "It changes data of this system.",
        ToolEffect::ExternalSideEffect => "It reaches outside this system, and its effect may be permanent.",
    };
    let who = match call.suspension {
        Suspension::Approval => "",
        _ => " A client executes it.",
    };
    format!("{text} {reach}{who}")
}
