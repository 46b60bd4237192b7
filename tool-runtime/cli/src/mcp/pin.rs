//! `mcp pin`: shows changes of tools' definitions, and writes their pins into the policy file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;

use serde_json::Value;
use tool_runtime::ToolPolicy;
use tool_runtime::mcp::source::McpTool;
use tool_runtime::tool::Hash;

use crate::exit::{Exit, Failure};
use crate::mcp::edit;
use crate::mcp::edit::Pin;
use crate::mcp::servers::{is_down, source};
use crate::mcp::settings::Servers;
use crate::session::Cli;
use crate::text::nearest;
use crate::written::PolicyFile;
use crate::{input, replace, terminal};

/// The pinned definitions, from a file next to the policy.
type Pins = BTreeMap<String, Value>;

/// The tools to pin: their names, and whether to pin all.
type Wanted<'a> = (&'a [String], bool);

pub(super) async fn pin(cli: &Cli<'_>, servers: &Servers, wanted: Wanted<'_>, yes: bool) -> Result<Exit, Failure> {
    let Some(path) = cli.settings.policy.clone().filter(|path| path.extension().is_some_and(|end| end == "toml"))
    else {
        return Err(Failure::usage("the file for the pins is missing; name the policy with `--policy FILE.toml`"));
    };
    let (policy, beside) = (cli.policy()?, path.with_extension("pins.json"));
    let written = PolicyFile::of(&policy)?;
    let text = input::text(input::file(&path)?, &path.display().to_string())?;
    let mut kept = read(&beside)?;
    let source = source(cli, servers).await?;
    let (tools, notes) = (source.tools(), source.notes());
    source.shutdown().await;
    // A wanted tool may belong to a server that is down.
    let mut exit = if notes.values().any(|note| is_down(note)) { Exit::Failed } else { Exit::Done };
    for (server, note) in notes {
        terminal::message(&terminal::safe_lines(&format!("the server `{server}`: {note}")));
    }
    let chosen = chosen(&tools, wanted, &policy)
        .map_err(|failure| if exit == Exit::Done { failure } else { Failure { exit, ..failure } })?;
    let (mut pins, mut is_compared) = (BTreeMap::new(), false);
    for tool in chosen {
        let (Some(name), Some(pin), Some(definition)) = (tool.name(), tool.pin(), tool.definition()) else {
            let why = tool.problem(&policy).map(|why| format!(": {}: {why}", why.code())).unwrap_or_default();
            terminal::message(&terminal::safe(&format!("`{}` cannot be pinned{why}", name_of(tool))));
            exit = Exit::Failed;
            continue;
        };
        is_compared = true;
        let old = written.pin(name);
        if old == Some(pin) {
            continue;
        }
        // Only the definition with the pinned hash is compared. Another one would show wrong differences.
        let before = kept.get(name).filter(|before| old == Some(McpTool::pin_of(before)));
        let changes = before.and_then(|before| tool.changes(before));
        show(name, before, definition, old);
        if let Some(changes) = changes {
            terminal::message(&terminal::safe_lines(&changes.to_string()));
        }
        pins.insert(name.to_owned(), Pin { pin, paths: tool.result_paths() });
        kept.insert(name.to_owned(), definition.clone());
    }
    if pins.is_empty() {
        if is_compared {
            terminal::message("nothing to pin: the policy pins these definitions already");
        } else if tools.is_empty() {
            terminal::message("nothing to pin: no server lists a tool");
        }
        return Ok(exit);
    }
    if !yes {
        let question = format!("write {} pins into {}? [y/N] ", pins.len(), path.display());
        terminal::message(&terminal::safe(&question));
        let mut answer = String::new();
        let is_read = std::io::stdin().is_terminal() && std::io::stdin().read_line(&mut answer).is_ok();
        if !(is_read && matches!(answer.trim(), "y" | "Y" | "yes")) {
            return Err(Failure::usage("nothing was written; answer `y`, or write `--yes`").code("not_written"));
        }
    }
    let Some(edited) = edit::with_pins(&text, &pins) else {
        let lines: Vec<_> =
            pins.iter().map(|(name, Pin { pin, .. })| format!("tools.{name}.pin = \"{pin}\"")).collect();
        let lines = lines.join("\n");
        return Err(Failure::usage(format!("the policy does not have a table for each tool; write by hand:\n{lines}")));
    };
    // The definitions are written first, so that a crash between the two writes enables no tool.
    let kept = serde_json::to_vec_pretty(&kept).unwrap_or_default();
    replace::whole(&beside, &kept)?;
    replace::whole(&path, edited.as_bytes())?;
    for name in pins.keys().filter(|name| !policy.mentions(name)) {
        terminal::note(&format!("`{name}` stays denied until `allowed_tools` names it"));
    }
    for name in pins.keys().filter(|name| written.tool(name, "redact").is_none()) {
        terminal::note(&format!("`{name}` shows nothing until `redact` of its table names fields"));
    }
    Ok(exit)
}

/// Returns the name of a tool in a policy. For a rejected tool, returns the name that it would have.
fn name_of(tool: &McpTool) -> Cow<'_, str> {
    match tool.name() {
        Some(name) => name.into(),
        None => format!("mcp__{}__{}", tool.server(), tool.raw_name()).into(),
    }
}

/// Returns the named tools, all tools with `--all`, or the tools that the policy allows.
fn chosen<'a>(
    tools: &'a [McpTool],
    (names, all): Wanted<'_>,
    policy: &ToolPolicy,
) -> Result<Vec<&'a McpTool>, Failure> {
    if names.is_empty() {
        let is_allowed = |tool: &&McpTool| policy.mentions(&name_of(tool));
        let chosen: Vec<_> = tools.iter().filter(|tool| all || is_allowed(tool)).collect();
        if chosen.is_empty() && !tools.is_empty() {
            let message = "the policy allows none of these tools; add them to `allowed_tools`, or name them with `--tool NAME` \
                           or `--all`";
            return Err(Failure::usage(message));
        }
        return Ok(chosen);
    }
    let all = || tools.iter().filter_map(McpTool::name);
    let find = |name: &String| {
        let usable = tools.iter().find(|tool| tool.name() == Some(name));
        usable.or_else(|| tools.iter().find(|tool| name_of(tool) == *name)).ok_or_else(|| {
            let meant = nearest(name, all()).map(|meant| format!("; did you mean `{meant}`?"));
            let meant = meant.unwrap_or_else(|| "; `mcp tools` lists what they offer".to_owned());
            Failure::usage(format!("no server offers a tool `{}`{meant}", terminal::safe(name)))
        })
    };
    names.iter().map(find).collect()
}

/// Reads the definitions that were pinned before. They only serve for comparisons; the policy enables tools.
fn read(path: &Path) -> Result<Pins, Failure> {
    if !path.exists() {
        return Ok(Pins::new());
    }
    serde_json::from_slice(&input::file(path)?).map_err(|error| {
        let (path, line) = (path.display(), error.line());
        Failure::usage(format!(
            "{path} does not hold the definitions of pins (line {line}); restore it, or remove it to review all \
             definitions again"
        ))
        .code("pins")
    })
}

/// Prints the differences, line by line.
fn show(name: &str, before: Option<&Value>, now: &Value, old: Option<Hash>) {
    let what = match (before, old) {
        (Some(_), _) => "changed",
        (None, Some(_)) => "changed; the definition that was pinned is not known",
        (None, None) => "new",
    };
    terminal::message(&format!("{name}: {what}"));
    let text = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let (before, now) = (before.map(text).unwrap_or_default(), text(now));
    let (before, now): (Vec<_>, Vec<_>) = (before.lines().collect(), now.lines().collect());
    let same = before.iter().zip(&now).take_while(|(one, other)| one == other).count();
    let left = before.len().min(now.len()) - same;
    let after = before.iter().rev().zip(now.iter().rev()).take(left).take_while(|(one, other)| one == other).count();
    let part = |lines: &[&str], mark: &str| {
        let lines = lines.get(same..lines.len() - after).unwrap_or_default();
        lines.iter().for_each(|line| terminal::message(&format!("{mark} {}", terminal::safe(line))));
    };
    part(&before, "-");
    part(&now, "+");
}
