//! Files of tool definitions, one on a line. They may come from many servers, so what is broken costs no other its place.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use crate::call::ToolContext;
use crate::cli::exit::Failure;
use crate::cli::{input, terminal};
use crate::error::ToolError;
use crate::registration::{DynamicHandler, DynamicTool};
use crate::text::cut;
use crate::tool::{ToolEffect, ToolSpec};

/// How many broken definitions are noted, a line each.
const MAX_NOTES: usize = 5;

/// A definition, as servers and providers spell it.
#[derive(Deserialize)]
struct Row {
    /// The name that calls use, where the tool was published under another one.
    wire_name: Option<String>,
    name: Option<String>,
    description: Option<String>,
    #[serde(alias = "inputSchema", alias = "input_schema", alias = "parameters")]
    schema: Value,
}

/// A tool that is never run, and its definition.
pub(super) struct Defined {
    pub(super) name: String,
    pub(super) spec: ToolSpec,
    pub(super) tool: DynamicTool,
}

struct Never;

#[async_trait]
impl DynamicHandler for Never {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Err(ToolError::safe("this command executes nothing"))
    }
}

/// Reads definitions and hands each to `take`, which says why it takes none. What is left out is noted.
///
/// # Errors
/// The file cannot be read, or none of its definitions is taken.
pub(super) fn read(path: &Path, mut take: impl FnMut(Defined) -> Result<(), String>) -> Result<(), Failure> {
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
        let message = "has no tool definition that can be read; write one JSON object per line, with `name`, \
                       `description` and `inputSchema`";
        return Err(Failure::usage(format!("{} {message}", path.display())));
    }
    Ok(())
}

fn define(line: &[u8]) -> Result<Defined, String> {
    let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8 text")?;
    let Row { wire_name, name, description, schema } = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let name = wire_name.or(name).ok_or("it has no name")?;
    let description = description.unwrap_or_default();
    let tool = |description: &str| {
        let schema = schema.clone();
        match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            Some((server, name)) => DynamicTool::discovered(server, name, description, schema, Arc::new(Never)),
            None => DynamicTool::new(&name, description, schema, ToolEffect::ReadOnly, Arc::new(Never)).foreign(),
        }
    };
    let spec = tool(&description).describe().spec().map_err(|_| "its name or its schema cannot be used")?;
    // A catalog refuses a tool that says nothing.
    let tool = tool(if description.trim().is_empty() { "No description." } else { &description });
    Ok(Defined { name, spec, tool })
}
