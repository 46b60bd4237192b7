//! How costs grow: each benchmark is repeated with ten times more tools, turns or records. The counts of allocations
//! and bytes are exact. The memory that is kept is `alloc` and `grow` without `dealloc` and `shrink`.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "a benchmark says what it expects")]

mod calls;
mod conversations;
mod records;
mod runs;

use std::sync::Arc;

use async_trait::async_trait;
use divan::AllocProfiler;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{ToolCatalog, ToolContext, ToolEffect, ToolError, ToolPolicy, ToolRunner};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

struct Echo;

#[async_trait]
impl DynamicHandler for Echo {
    async fn call(&self, arguments: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(arguments.clone())
    }
}

fn tool(at: usize) -> DynamicTool {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id of the document, as a list returned it."},
            "title": {"type": "string", "maxLength": 100, "description": "A new title."},
            "count": {"type": "integer", "minimum": 0, "maximum": 1000},
            "urgency": {"type": "string", "enum": ["low", "normal", "high"], "default": "normal"},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 16},
            "place": {"type": "object", "properties": {"town": {"type": "string"}}, "additionalProperties": false},
        },
        "required": ["id"],
        "additionalProperties": false,
    });
    let name = format!("bench__tool_{at}");
    let description = "Changes one of many documents and returns it as it is then.";
    DynamicTool::new(name, description, schema, ToolEffect::ReadOnly, Arc::new(Echo)).redact(["title"])
}

fn catalog(tools: usize) -> ToolCatalog {
    (0..tools).fold(ToolCatalog::builder(), |builder, at| builder.dynamic(tool(at))).build().unwrap()
}

fn runner(tools: usize) -> ToolRunner {
    let policy = ToolPolicy::allow((0..tools).map(|at| format!("bench__tool_{at}")));
    ToolRunner::builder(catalog(tools), policy).build().unwrap()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// An answer of a model in Chat Completions.
const ANSWER: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
