//! One call through the whole gate, compared with the floor: `serde_json` parses and writes, and nothing is checked.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "a benchmark says what it expects")]

mod work;

use divan::{AllocProfiler, Bencher, black_box};
use tool_runtime::{Outcome, RunOptions, ToolCall};
use work::{TINY, large_floor, large_text, medium_floor, medium_text, ready, runner, tiny_floor};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

#[divan::bench(name = "tiny_floor")]
fn floor_of_tiny(bencher: Bencher) {
    bencher.bench(|| tiny_floor(black_box(TINY)));
}

#[divan::bench(name = "medium_floor")]
fn floor_of_medium(bencher: Bencher) {
    let text = medium_text();
    bencher.bench(|| medium_floor(black_box(&text)));
}

#[divan::bench(name = "large_floor")]
fn floor_of_large(bencher: Bencher) {
    let text = large_text();
    bencher.bench(|| large_floor(black_box(&text)));
}

fn gate(bencher: Bencher, name: &str, text: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _entered = runtime.enter();
    let runner = runner();
    let warm = runner.run(RunOptions::new());
    assert_eq!(ready(warm.exec(ToolCall::text("warm", name, text))).outcome(), Outcome::Ok);
    bencher
        .with_inputs(|| (runner.run(RunOptions::new()), ToolCall::text("call_1", name, text)))
        .bench_values(|(run, call)| (ready(run.exec(call)).to_model(), run));
}

#[divan::bench]
fn tiny_gate(bencher: Bencher) {
    gate(bencher, "bench__tiny", TINY);
}

#[divan::bench]
fn medium_gate(bencher: Bencher) {
    gate(bencher, "bench__medium", &medium_text());
}

#[divan::bench]
fn large_gate(bencher: Bencher) {
    gate(bencher, "bench__large", &large_text());
}
