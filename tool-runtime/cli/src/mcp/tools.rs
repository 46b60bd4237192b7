//! `mcp tools`: lists the tools that servers offer, with their state under the policy.

use serde_json::json;
use tool_runtime::mcp::source::McpTool;

use crate::exit::{Exit, Failure};
use crate::mcp::servers::{is_down, source};
use crate::mcp::settings::Servers;
use crate::session::Cli;
use crate::{table, terminal};

/// The number of characters of a pin in the table.
const SHORT: usize = 12;

pub(super) async fn tools(cli: &Cli<'_>, servers: &Servers) -> Result<Exit, Failure> {
    let policy = cli.policy()?;
    let source = source(cli, servers).await?;
    let (tools, notes) = (source.tools(), source.notes());
    source.shutdown().await;
    let mut rows = Vec::new();
    for tool in &tools {
        let (state, problem) = (tool.state(&policy), tool.problem(&policy));
        let why = match &problem {
            Some(why) => format!("{}: {why}", why.code()),
            None if state == "drifted" => "the policy pins another definition, or the server switched back".to_owned(),
            None => claims(tool),
        };
        if cli.settings.json {
            let row = json!({
                "server": tool.server(),
                "raw_name": tool.raw_name(),
                "name": tool.name(),
                "state": state,
                "pin": tool.pin(),
                "why": problem.is_some().then_some(&why),
                "definition": tool.definition(),
            });
            terminal::line(&terminal::safe_json(&row.to_string()));
        } else {
            let pin = tool.pin().map(|pin| pin.to_string()).unwrap_or_default();
            let name = tool.name().unwrap_or_else(|| tool.raw_name());
            rows.push([name, state, pin.get(..SHORT).unwrap_or_default(), &why].map(terminal::safe));
        }
    }
    if !cli.settings.json {
        table::print(["TOOL", "STATE", "PIN", "WHY, OR WHAT IT CLAIMS"], &rows);
    }
    let is_down = notes.values().any(|note| is_down(note));
    for (server, note) in notes {
        terminal::message(&terminal::safe_lines(&format!("the server `{server}`: {note}")));
    }
    Ok(if is_down { Exit::Failed } else { Exit::Done })
}

/// Returns the hints of a server about its tool. They are unchecked, and no decision depends on them.
fn claims(tool: &McpTool) -> String {
    let hints = tool.definition().and_then(|definition| definition.get("annotations")?.as_object());
    let claims: Vec<_> = hints
        .into_iter()
        .flatten()
        .filter_map(|(hint, value)| Some((hint.strip_suffix("Hint")?, value.as_bool()?)))
        .map(|(hint, said)| format!("{}{hint}", if said { "" } else { "not " }))
        .collect();
    if claims.is_empty() { String::new() } else { format!("claims: {}", claims.join(", ")) }
}
