//! Catalogs of dynamic tools: building, the view of a run, looking a tool up and asking the policy.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "a benchmark says what it expects")]

use std::sync::Arc;

use async_trait::async_trait;
use divan::{AllocProfiler, Bencher};
use serde_json::{Value, json};
use tool_runtime::policy::{PolicyContext, Subject};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::wire::{EncodeOptions, Format};
use tool_runtime::{RunOptions, ToolCatalog, ToolContext, ToolEffect, ToolError, ToolPolicy, ToolRunner};

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
            "id": {"type": "string", "description": "The id."},
            "title": {"type": "string", "maxLength": 100},
            "count": {"type": "integer", "minimum": 0},
            "place": {"type": "object", "properties": {"town": {"type": "string"}}, "additionalProperties": false},
        },
        "required": ["id"],
        "additionalProperties": false,
    });
    let name = format!("bench__tool_{at}");
    DynamicTool::new(name, "Does one of many things.", schema, ToolEffect::ReadOnly, Arc::new(Echo)).redact(["title"])
}

fn catalog(tools: usize) -> ToolCatalog {
    (0..tools).fold(ToolCatalog::builder(), |builder, at| builder.dynamic(tool(at))).build().unwrap()
}

fn runner(tools: usize) -> ToolRunner {
    let policy = ToolPolicy::allow((0..tools).map(|at| format!("bench__tool_{at}")));
    ToolRunner::builder(catalog(tools), policy).build().unwrap()
}

#[divan::bench(args = [1_000, 10_000])]
fn build(bencher: Bencher, tools: usize) {
    bencher
        .with_inputs(|| (0..tools).fold(ToolCatalog::builder(), |builder, at| builder.dynamic(tool(at))))
        .bench_values(|builder| builder.build().unwrap());
}

#[divan::bench(args = [20, 1_000, 10_000])]
fn run(bencher: Bencher, tools: usize) {
    let runner = runner(tools);
    bencher.bench(|| runner.run(RunOptions::new()));
}

#[divan::bench(args = [20, 10_000])]
fn look_up_and_decide(bencher: Bencher, tools: usize) {
    let runner = runner(tools);
    let context = PolicyContext::default();
    bencher.bench(|| {
        let spec = runner.catalog().get("bench__tool_7").unwrap();
        runner.policy().admit(&context, &Subject::of(spec))
    });
}

#[divan::bench(args = [20, 1_000])]
fn encode(bencher: Bencher, tools: usize) {
    let run = runner(tools).run(RunOptions::new());
    bencher.bench(|| Format::OpenAiChat.encode_tools(run.catalog().specs(), &EncodeOptions::default()).unwrap());
}
