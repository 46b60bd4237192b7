//! Records of a store in memory, by how many there are.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use divan::Bencher;
use tokio::runtime::Runtime;
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolPolicy, ToolRunner};

use crate::{runtime, tool};

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

/// Seals all records of the store, and reads one.
#[divan::bench(args = [10, 100, 1_000], sample_count = 5, sample_size = 1)]
fn f_seal(bencher: Bencher, calls: usize) {
    let runtime = runtime();
    let first = RecordFilter { limit: Some(1), ..RecordFilter::default() };
    bencher
        .with_inputs(|| stored(&runtime, calls).0)
        .bench_local_refs(|store| runtime.block_on(store.records(&first)).unwrap());
}

/// The record of a call, next to those of another run.
#[divan::bench(args = [10, 100, 1_000])]
fn f_recorded(bencher: Bencher, calls: usize) {
    let runtime = runtime();
    let (_, runner) = stored(&runtime, calls);
    let run = call(&runtime, &runner, 1);
    bencher.bench_local(|| runtime.block_on(run.recorded(&"call_0".into())).unwrap());
}

/// One call, while a reader on another thread seals the records before it, which takes milliseconds.
#[divan::bench(args = [1_000, 4_000], sample_count = 50, sample_size = 1)]
fn f_call_while_sealing(bencher: Bencher, calls: usize) {
    let runtime = runtime();
    let sealing = || {
        let (store, runner) = stored(&runtime, calls);
        let (run, start) = (runner.run(RunOptions::new()), Arc::new(Barrier::new(2)));
        let begun = Arc::clone(&start);
        let reader = thread::spawn(move || {
            let (runtime, first) = (crate::runtime(), RecordFilter { limit: Some(1), ..RecordFilter::default() });
            begun.wait();
            runtime.block_on(store.records(&first)).unwrap()
        });
        start.wait();
        thread::sleep(Duration::from_micros(200));
        (run, reader)
    };
    bencher.with_inputs(sealing).bench_local_values(|(run, reader)| {
        let call = ToolCall::text("call", "bench__tool_0", r#"{"id":"doc-17","title":"A title of a few words"}"#);
        (runtime.block_on(run.exec(call)), reader)
    });
}
