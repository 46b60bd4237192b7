//! What grows with what: each benchmark is run with ten times more tools, turns or records than the time before. The
//! counts of allocations and bytes are exact.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "a benchmark says what it expects")]

use std::sync::Arc;

use async_trait::async_trait;
use divan::{AllocProfiler, Bencher};
use serde_json::{Value, json};
use tests::server::{Reply, Server};
use tokio::runtime::Runtime;
use tool_runtime::agent::http::HttpModel;
use tool_runtime::agent::{Agent, Ended, ModelClient, ModelError, ModelRequest, Show};
use tool_runtime::policy::{PolicyContext, Subject};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::wire::history::{CallMessage, Message, Part, ResultMessage};
use tool_runtime::wire::{DecodeOptions, Decoded, EncodeOptions, Format, RequestSettings};
use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolContext, ToolEffect, ToolError, ToolPolicy, ToolRunner};

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

fn runner(tools: usize) -> ToolRunner {
    let catalog = (0..tools).fold(ToolCatalog::builder(), |builder, at| builder.dynamic(tool(at)));
    let policy = ToolPolicy::allow((0..tools).map(|at| format!("bench__tool_{at}")));
    ToolRunner::builder(catalog.build().unwrap(), policy).build().unwrap()
}

const TOOLS: [usize; 4] = [10, 100, 1_000, 10_000];
const TURNS: [usize; 4] = [1, 10, 100, 1_000];

#[divan::bench(args = TOOLS, sample_count = 5, sample_size = 1)]
fn a_build(bencher: Bencher, tools: usize) {
    bencher
        .with_inputs(|| (0..tools).fold(ToolCatalog::builder(), |builder, at| builder.dynamic(tool(at))))
        .bench_values(|builder| builder.build().unwrap());
}

/// Nobody has started a run before.
#[divan::bench(args = TOOLS, sample_count = 5, sample_size = 1)]
fn b_run_first(bencher: Bencher, tools: usize) {
    bencher.with_inputs(|| runner(tools)).bench_refs(|runner| runner.run(RunOptions::new()));
}

#[divan::bench(args = TOOLS)]
fn b_run_next(bencher: Bencher, tools: usize) {
    let runner = runner(tools);
    let first = runner.run(RunOptions::new());
    bencher.bench(|| runner.run(RunOptions::new().principal("ada")));
    drop(first);
}

#[divan::bench(args = TOOLS)]
fn b_run_with_three_tools(bencher: Bencher, tools: usize) {
    let runner = runner(tools);
    bencher.bench(|| runner.run(RunOptions::new().tools(["bench__tool_1", "bench__tool_5", "bench__tool_7"])));
}

#[divan::bench(args = TOOLS)]
fn b_look_up_and_decide(bencher: Bencher, tools: usize) {
    let (runner, context) = (runner(tools), PolicyContext::default());
    bencher.bench(|| {
        let spec = runner.catalog().get("bench__tool_7").unwrap();
        runner.policy().admit(&context, &Subject::of(spec))
    });
}

#[divan::bench(args = TOOLS, sample_count = 5, sample_size = 1)]
fn c_encode_tools(bencher: Bencher, tools: usize) {
    let run = runner(tools).run(RunOptions::new());
    bencher.bench(|| Format::OpenAiChat.encode_tools(run.catalog().specs(), &EncodeOptions::default()).unwrap());
}

/// A whole request over loopback, whose tools have been asked with before.
#[divan::bench(args = TOOLS, sample_count = 20, sample_size = 1)]
fn c_request_next(bencher: Bencher, tools: usize) {
    let (server, runtime) = (Server::start([Reply::stream(ANSWER)]).unwrap(), runtime());
    let model = HttpModel::builder(Format::OpenAiChat, server.url(), "m").build().unwrap();
    let (messages, settings) = ([Message::user("Hello.")], RequestSettings::new());
    let run = runner(tools).run(RunOptions::new());
    let ask = || {
        let request = ModelRequest::new(&messages, run.catalog(), &settings);
        runtime.block_on(model.complete(request, &mut |_| {})).unwrap()
    };
    ask();
    bencher.bench_local(ask);
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

const ANSWER: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Answers without looking at what it is asked.
struct Quick;

#[async_trait]
impl ModelClient for Quick {
    fn name(&self) -> &'static str {
        "instant"
    }

    async fn complete(&self, _: ModelRequest<'_>, show: &mut Show<'_>) -> Result<Decoded, ModelError> {
        let mut decoder = Format::OpenAiChat.decoder(DecodeOptions::default());
        decoder.push_with(ANSWER.as_bytes(), show);
        Ok(decoder.finish())
    }
}

#[divan::bench(args = TURNS, sample_count = 20, sample_size = 1)]
fn d_send_once_more(bencher: Bencher, turns: usize) {
    let runtime = runtime();
    let mut conversation = Agent::new(Quick).converse(runner(10).run(RunOptions::new()));
    let mut send = || {
        let ended = runtime.block_on(conversation.send("What is there to do today, and who is it for?"));
        assert!(matches!(ended, Ended::Answered { .. }));
    };
    (0..turns).for_each(|_| send());
    bencher.bench_local(send);
}

fn history(turns: usize) -> Vec<Message> {
    let turn = |at: usize| {
        let arguments = r#"{"id":"doc-17","title":"A title of a few words","count":3,"tags":["one","two"]}"#;
        let id = format!("call_{at}");
        [
            Message::user("What is there to do today, and who is it for?"),
            Message::Assistant(vec![Part::Call(CallMessage::new(id.clone(), "bench__tool_1", arguments))]),
            Message::Result(ResultMessage::new(id, r#"{"title":"A title of a few words"}"#)),
            Message::assistant("There is one document, and it has a new title now."),
        ]
    };
    (0..turns).flat_map(turn).collect()
}

fn formats() -> impl Iterator<Item = (Format, usize)> {
    Format::ALL.iter().flat_map(|format| [1, 100].map(|turns| (*format, turns)))
}

#[divan::bench(args = formats())]
fn e_encode_history(bencher: Bencher, (format, turns): (Format, usize)) {
    let history = history(turns);
    bencher.bench(|| format.encode_messages(&history, None));
}

fn stored(runtime: &Runtime, calls: usize) -> (MemoryStore, ToolRunner) {
    let store = MemoryStore::new();
    let catalog = ToolCatalog::builder().dynamic(tool(0)).build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["bench__tool_0"])).store(Arc::new(store.clone()));
    let runner = runner.build().unwrap();
    call(runtime, &runner, calls);
    (store, runner)
}

fn call(runtime: &Runtime, runner: &ToolRunner, calls: usize) -> tool_runtime::Run {
    let run = runner.run(RunOptions::new());
    for at in 0..calls {
        let arguments = format!(r#"{{"id":"doc-{at}","title":"A title of a few words"}}"#);
        let call = ToolCall::text(format!("call_{at}"), "bench__tool_0", arguments);
        assert!(runtime.block_on(run.exec(call)).is_ok());
    }
    run
}

/// All records of the store, and one that is read.
#[divan::bench(args = [10, 100, 1_000], sample_count = 5, sample_size = 1)]
fn f_seal(bencher: Bencher, calls: usize) {
    let runtime = runtime();
    let first = RecordFilter { limit: Some(1), ..RecordFilter::default() };
    bencher
        .with_inputs(|| stored(&runtime, calls).0)
        .bench_local_refs(|store| runtime.block_on(store.records(&first)).unwrap());
}

/// The record of a call, beside those of another run.
#[divan::bench(args = [10, 100, 1_000])]
fn f_recorded(bencher: Bencher, calls: usize) {
    let runtime = runtime();
    let (_, runner) = stored(&runtime, calls);
    let run = call(&runtime, &runner, 1);
    bencher.bench_local(|| runtime.block_on(run.recorded(&"call_0".into())).unwrap());
}
