//! Many calls in 100 runs at a time: their time, and the growth of memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tool_runtime::{Outcome, RunOptions, ToolCall};

use crate::arguments;
use crate::peers::ours::{name, runner};
use crate::tools::Shape;

/// Runs at a time, and calls of each before another run takes its place.
const RUNS: usize = 100;
const CALLS_OF_A_RUN: usize = 1_000;

const PARTS: usize = 10;

pub fn print(calls: usize) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    println!("| calls | calls/s | median, us | 99 % | 99.9 % | slowest | resident, MB |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    runtime.block_on(async {
        let (runner, texts) = (Arc::new(runner()), Arc::new(arguments(Shape::Medium)));
        for part in 1..=PARTS {
            let start = Instant::now();
            let tasks: Vec<_> = (0..RUNS)
                .map(|_| {
                    let (runner, texts) = (Arc::clone(&runner), Arc::clone(&texts));
                    tokio::spawn(async move {
                        let mut taken = Vec::with_capacity(calls / PARTS / RUNS);
                        let mut run = runner.run(RunOptions::new());
                        for at in 0..calls / PARTS / RUNS {
                            if at % CALLS_OF_A_RUN == 0 {
                                run = runner.run(RunOptions::new());
                            }
                            let start = Instant::now();
                            let call =
                                ToolCall::text(format!("call_{at}"), name(Shape::Medium), texts[at % 2].as_str());
                            let result = run.exec(call).await;
                            assert_eq!(result.outcome(), Outcome::Ok);
                            taken.push(start.elapsed());
                            // As between two turns of a model, other runs continue.
                            tokio::task::yield_now().await;
                        }
                        taken
                    })
                })
                .collect();
            let mut taken = Vec::with_capacity(calls / PARTS);
            for task in tasks {
                taken.extend(task.await.expect("no task fails"));
            }
            let rate = taken.len() as f64 / start.elapsed().as_secs_f64();
            taken.sort();
            let at = |share: f64| micros(taken[((taken.len() - 1) as f64 * share) as usize]);
            println!(
                "| {} | {rate:.0} | {:.1} | {:.1} | {:.1} | {:.0} | {:.1} |",
                part * taken.len(),
                at(0.5),
                at(0.99),
                at(0.999),
                at(1.0),
                resident()
            );
        }
    });
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The memory of this process, in megabytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says what a process takes");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line for memory");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().expect("a number") / 1024.0
}
