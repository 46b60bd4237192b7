//! Catalogs, runs and requests by the number of tools.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use divan::Bencher;
use tests::server::{Reply, Server};
use tool_runtime::agent::http::HttpModel;
use tool_runtime::agent::{ModelClient, ModelRequest};
use tool_runtime::policy::{PolicyContext, PolicyResource};
use tool_runtime::wire::{EncodeOptions, Format, Message, RequestSettings};
use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

use crate::{ANSWER, catalog, runner, runtime, tool};

const TOOLS: [usize; 4] = [10, 100, 1_000, 10_000];

#[divan::bench(args = TOOLS, sample_count = 5, sample_size = 1)]
fn a_build(bencher: Bencher, tools: usize) {
    bencher
        .with_inputs(|| (0..tools).fold(ToolCatalog::builder(), |builder, at| builder.dynamic(tool(at))))
        .bench_values(|builder| builder.build().unwrap());
}

/// Builds the catalog and its tools.
#[divan::bench(args = TOOLS, sample_count = 5, sample_size = 1)]
fn a_keep(bencher: Bencher, tools: usize) {
    bencher.bench(|| catalog(tools));
}

/// The first run of its runner.
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
        runner.policy().admit(&context, &PolicyResource::of(spec))
    });
}

#[divan::bench(args = TOOLS, sample_count = 5, sample_size = 1)]
fn c_encode_tools(bencher: Bencher, tools: usize) {
    let run = runner(tools).run(RunOptions::new());
    bencher.bench(|| Format::OpenAiChat.encode_tools(run.catalog().specs(), &EncodeOptions::default()).unwrap());
}

/// A whole request over loopback. An earlier request contained the same tools.
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

/// The first run and request of a party that may see the same tools as another one.
#[divan::bench(args = TOOLS, sample_count = PARTIES, sample_size = 1)]
fn c_request_of_next_party(bencher: Bencher, tools: usize) {
    let (server, runtime) = (Server::start([Reply::stream(ANSWER)]).unwrap(), runtime());
    let model = HttpModel::builder(Format::OpenAiChat, server.url(), "m").build().unwrap();
    let (messages, settings) = ([Message::user("Hello.")], RequestSettings::new());
    let (runner, next) = (runner_with_roles(tools), AtomicUsize::new(0));
    let ask = || {
        let role = format!("role_{}", next.fetch_add(1, Ordering::Relaxed));
        let run = runner.run(RunOptions::new().role(role));
        assert_eq!(run.catalog().len(), tools);
        let request = ModelRequest::new(&messages, run.catalog(), &settings);
        runtime.block_on(model.complete(request, &mut |_| {})).unwrap();
        (run.catalog().hash(), run.catalog().guidance())
    };
    ask();
    bencher.bench_local(ask);
}

/// The number of parties that ask after the first one.
const PARTIES: u32 = 20;

/// Each role may see all tools, and is a separate party.
fn runner_with_roles(tools: usize) -> ToolRunner {
    let names: Vec<_> = (0..tools).map(|at| format!("bench__tool_{at}")).collect();
    let mut policy = format!("allowed_tools = {names:?}\n");
    (0..=PARTIES).for_each(|role| writeln!(policy, "[roles.role_{role}]\nallowed_tools = {:?}", &names[..1]).unwrap());
    ToolRunner::builder(catalog(tools), ToolPolicy::from_toml(&policy).unwrap()).build().unwrap()
}
