//! A waiting call in words: what would happen, to what, for whom, and why it waits.

use crate::call::Suspension;
use crate::catalog::ToolCatalog;
use crate::cli::fold::{Room, fields};
use crate::cli::terminal;
use crate::store::PendingCall;
use crate::tool::ToolEffect;

/// How many lines of arguments are shown.
const LINES: usize = 40;

/// The lines that a person reads before a decision. Sensitive arguments are masked unless `unmask` says otherwise.
pub(super) fn describe(catalog: &ToolCatalog, call: &PendingCall, unmask: bool) -> Vec<String> {
    let (summary, changes, looked_up) = call.decided_explanation();
    let mut lines = Vec::new();
    // Terminals do not reorder text, so marks that isolate one direction from the other only disturb.
    lines.extend(summary.map(|text| format!("   {}", terminal::safe(&text.replace(['\u{2068}', '\u{2069}'], "")))));
    lines.push(format!("   {}", sentence(catalog, call)));
    if let Some(graph) = &call.graph {
        lines.push(format!("   {}", terminal::safe(&graph.path)));
    }
    let arguments = if unmask && call.graph.is_none() { call.arguments.as_str() } else { call.decided_arguments() };
    lines.extend(fields(arguments, Room::of_message(LINES)));
    lines.extend(changes.iter().map(|change| format!("   {}", terminal::safe(&change.to_string()))));
    lines.extend(looked_up.iter().map(|named| format!("   {}", terminal::safe(&named.to_string()))));
    let mut about = Vec::new();
    if let Some(rule) = call.decided_rule() {
        about.push(format!("asked by {}", terminal::safe(rule)));
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
    lines.push(format!("   ({})", about.join("; ")));
    lines
}

/// What the call would do, in one sentence.
fn sentence(catalog: &ToolCatalog, call: &PendingCall) -> String {
    let tool = call.decided();
    let Some(spec) = catalog.get(tool) else {
        return format!("{}: this application has no such tool any more", terminal::safe(tool));
    };
    let text = terminal::safe(spec.description.lines().next().unwrap_or_default().trim());
    let reach = match spec.effect {
        ToolEffect::ReadOnly => "It reads only.",
        ToolEffect::StateChange => "It changes data of this system.",
        ToolEffect::ExternalSideEffect => "It reaches outside this system and may not be undone.",
    };
    let who = match call.suspension {
        Suspension::Approval => "",
        Suspension::Client => " A client executes it.",
    };
    format!("{text} {reach}{who}")
}
