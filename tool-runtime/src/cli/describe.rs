//! A waiting call in words: what would happen, to what, for whom, and why it waits.

use serde_json::Value;

use crate::call::Suspension;
use crate::catalog::ToolCatalog;
use crate::cli::fold::{Room, fields};
use crate::cli::session::Cli;
use crate::cli::terminal;
use crate::store::PendingCall;
use crate::tool::ToolEffect;

/// How many lines of arguments are shown.
const LINES: usize = 40;

/// The lines that a person reads before a decision. Sensitive arguments are masked unless `unmask` says otherwise.
pub(super) fn describe(cli: &Cli<'_>, catalog: &ToolCatalog, call: &PendingCall, unmask: bool) -> Vec<String> {
    let mut lines = vec![format!("   {}", sentence(catalog, call))];
    if let Some(graph) = &call.graph {
        lines.push(format!("   {}", terminal::safe(&graph.path)));
    }
    let arguments = if unmask && call.graph.is_none() { call.arguments.as_str() } else { call.decided_arguments() };
    lines.extend(fields(arguments, Room::of_message(LINES)));
    lines.extend(call.changes.iter().map(|change| format!("   changed: {}", terminal::safe(&change.to_string()))));
    lines.extend(names(cli, call).into_iter().map(|(id, name)| format!("   {id} is \u{201c}{name}\u{201d}")));
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

/// The ids among the arguments that the application can name.
fn names(cli: &Cli<'_>, call: &PendingCall) -> Vec<(String, String)> {
    let Some(name_of) = &cli.app.name_of else { return Vec::new() };
    // The shown arguments: a masked value is not looked up either.
    let arguments: Value = serde_json::from_str(call.decided_arguments()).unwrap_or_default();
    let mut texts = Vec::new();
    collect(&arguments, &mut texts);
    texts
        .into_iter()
        .filter_map(|id| Some((terminal::safe(id), terminal::safe(&name_of(&cli.settings.data, id)?))))
        .collect()
}

fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) if !texts.contains(&text.as_str()) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect(member, texts)),
        _ => {}
    }
}
