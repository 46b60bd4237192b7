//! Reads files that contain one tool definition per line. The definitions may come from many servers, so a broken one
//! does not affect the others.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{ToolContext, ToolEffect, ToolError, ToolSpec};

use crate::exit::Failure;
use crate::text::cut;
use crate::{input, terminal};

/// The maximum number of broken or refused definitions that are reported, a line each.
const MAX_NOTES: usize = 5;

/// A definition with the keys of MCP servers or of providers.
#[derive(Deserialize)]
struct DefinitionLine {
    /// The name that calls use, if it differs from `name`.
    wire_name: Option<String>,
    name: Option<String>,
    description: Option<String>,
    #[serde(alias = "inputSchema", alias = "input_schema", alias = "parameters")]
    schema: Value,
}

/// A definition that [`read_definitions`] read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Definition {
    /// The name that calls use.
    pub name: String,
    /// The definition as a catalog keeps it.
    pub spec: ToolSpec,
    /// The definition as a tool for a catalog. Each call of the tool fails. If a line has no description, its tool
    /// has the description `No description.`, because a catalog refuses a tool without one.
    pub tool: DynamicTool,
}

struct NotRunnable;

#[async_trait]
impl DynamicHandler for NotRunnable {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Err(ToolError::safe("this command executes nothing"))
    }
}

/// Reads a file of tool definitions, one JSON object per line; `-` is standard input. The keys are those of servers and
/// providers: `name`, `description`, and one of `inputSchema`, `input_schema`, `parameters` and `schema`. `wire_name`,
/// if present, is the name that calls use in place of `name`.
///
/// The function passes each definition to `take`, which returns `Err` with the reason if it refuses the definition.
/// Refused and broken definitions are reported on stderr: the first five with their reasons and, if there are more, the
/// number of all.
///
/// # Errors
/// The file cannot be read, or contains no definition that `take` accepts.
pub fn read_definitions(path: &Path, mut take: impl FnMut(Definition) -> Result<(), String>) -> Result<(), Failure> {
    let bytes = input::file(path)?;
    let (mut taken, mut broken) = (0_usize, 0_usize);
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()) {
        match define(line).and_then(&mut take) {
            Ok(()) => taken += 1,
            Err(problem) => {
                broken += 1;
                if broken <= MAX_NOTES {
                    let problem = terminal::safe(cut(&problem, 200));
                    terminal::note(&format!("{}, line {}: left out: {problem}", path.display(), at + 1));
                }
            }
        }
    }
    if broken > MAX_NOTES {
        terminal::note(&format!("{}: {broken} definitions left out, {taken} taken", path.display()));
    }
    if taken == 0 {
        let message = "has no usable tool definition; write one JSON object per line, with `name`, `description` and \
                       `inputSchema`";
        return Err(Failure::usage(format!("{} {message}", path.display())));
    }
    Ok(())
}

fn define(line: &[u8]) -> Result<Definition, String> {
    let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8 text")?;
    let DefinitionLine { wire_name, name, description, schema } =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let name = wire_name.or(name).ok_or("it has no name")?;
    let description = description.unwrap_or_default();
    let tool = |description: &str| {
        let schema = schema.clone();
        match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            Some((server, name)) => DynamicTool::discovered(server, name, description, schema, Arc::new(NotRunnable)),
            None => DynamicTool::new(&name, description, schema, ToolEffect::ReadOnly, Arc::new(NotRunnable)).foreign(),
        }
    };
    let spec = tool(&description).definition().map_err(|_| "its name or its schema cannot be used")?;
    // A catalog refuses a tool without a description.
    let tool = tool(if description.trim().is_empty() { "No description." } else { &description });
    Ok(Definition { name, spec, tool })
}
