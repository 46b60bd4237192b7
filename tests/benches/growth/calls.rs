//! Calls by the number of tools that are called, and by the number of rules over their arguments.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use divan::Bencher;
use serde_json::json;
use tool_runtime::registration::DynamicTool;
use tool_runtime::{Run, RunOptions, ToolCall, ToolCatalog, ToolEffect, ToolPolicy, ToolRunner};

use crate::{Echo, runner, runtime};

/// Calls each tool once.
fn call_each(runner: &ToolRunner) -> Run {
    let (runtime, run) = (runtime(), runner.run(RunOptions::new()));
    for spec in runner.catalog().specs() {
        let call = ToolCall::text(spec.name.as_str(), spec.name.as_str(), r#"{"id":"doc-17","count":3}"#);
        assert!(runtime.block_on(run.exec(call)).is_ok());
    }
    run
}

/// The first call of a tool compiles its schema.
#[divan::bench(args = [10, 100, 1_000], sample_count = 5, sample_size = 1)]
fn g_call_each_first(bencher: Bencher, tools: usize) {
    bencher.with_inputs(|| runner(tools)).bench_local_refs(|runner| call_each(runner));
}

#[divan::bench(args = [10, 100, 1_000], sample_count = 20, sample_size = 1)]
fn g_call_each_next(bencher: Bencher, tools: usize) {
    let runner = runner(tools);
    call_each(&runner);
    bencher.bench_local(|| call_each(&runner));
}

/// A call with 34 KB of arguments, and this many rules about them. No rule matches.
#[divan::bench(args = [0, 1, 10, 100], sample_count = 50, sample_size = 1)]
fn g_argument_rules(bencher: Bencher, rules: usize) {
    let (runtime, runner, next) = (runtime(), runner_with_rules(rules), AtomicUsize::new(0));
    let run = runner.run(RunOptions::new());
    let records = json!(vec![
        json!({"id": "doc-17", "count": 3, "title": "A title of a few words, and what belongs to it", "town": "Graz", "tags": ["one", "two", "three"], "note": "Nothing to say about it."});
        212
    ]);
    let call = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let arguments = json!({"title": at.to_string(), "records": records}).to_string();
        ToolCall::text(format!("call_{at}"), "bench__records", arguments)
    };
    bencher.with_inputs(call).bench_local_values(|call| {
        let result = runtime.block_on(run.exec(call));
        assert!(result.is_ok());
        result
    });
}

fn runner_with_rules(rules: usize) -> ToolRunner {
    let record = json!({"type": "object", "properties": {"id": {"type": "string"}, "count": {"type": "integer"}}});
    let schema = json!({
        "type": "object",
        "properties": {"title": {"type": "string"}, "records": {"type": "array", "items": record}},
    });
    let tool = DynamicTool::new("bench__records", "Keeps records.", schema, ToolEffect::ReadOnly, Arc::new(Echo));
    let mut policy = "allowed_tools = ['bench__records']\n[limits]\nargument_bytes = 65536\n".to_owned();
    for at in 0..rules {
        write!(policy, "[[tools.bench__records.arguments]]\npointer = '/title'\nequals = 'not {at}'\nthen = 'deny'\n")
            .unwrap();
    }
    let catalog = ToolCatalog::builder().dynamic(tool.redact(["title"])).build().unwrap();
    ToolRunner::builder(catalog, ToolPolicy::from_toml(&policy).unwrap()).build().unwrap()
}
