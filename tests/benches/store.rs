//! How many records a second the stores keep, and how many calls with effects the gate finishes over them.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark prints and says what it expects"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use tests::postgres::Postgres;
use tool_runtime::store::{AuditRecord, MemoryStore, SqlOptions, SqlStore, Store};
use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

const LASTS: Duration = Duration::from_secs(4);

/// Counts.
#[tool(name = "bench__count", effect = state_change, redact = ["$"])]
fn count(
    /// A number.
    number: u64,
) -> Result<u64, ToolError> {
    Ok(number + 1)
}

fn record(run: &str, call: &str) -> AuditRecord {
    let record = serde_json::json!({"call": {
        "tool_call_id": call, "name": "bench__count", "definition_hash": null, "arguments": {"masked": {"number": 1}},
        "result": 2, "outcome": "ok", "executed": true, "started_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:00:01Z", "run_id": run, "session_id": null, "conversation_id": null,
        "principal": "ada", "roles": [], "tenant": null, "violations": [], "caller": "direct", "decision": null,
        "validator": null, "repair": null,
    }});
    serde_json::from_value(record).expect("a record")
}

/// Lets so many tasks work for a while; returns how often they did in a second.
async fn rate<F: Future<Output = ()> + Send>(
    tasks: usize,
    work: impl Fn(usize, usize) -> F + Send + Sync + 'static,
) -> f64 {
    let (work, start) = (Arc::new(work), Instant::now());
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let work = Arc::clone(&work);
            tokio::spawn(async move {
                let mut done = 0_u32;
                while start.elapsed() < LASTS {
                    work(task, done as usize).await;
                    done += 1;
                }
                done
            })
        })
        .collect();
    let mut done = 0.0;
    for task in tasks {
        done += f64::from(task.await.expect("no task fails"));
    }
    done / start.elapsed().as_secs_f64()
}

/// Records of 16 writers on so many runs.
async fn records(store: &Arc<dyn Store>, runs: usize) -> f64 {
    let (store, name) = (Arc::clone(store), tool_runtime::CallId::generate());
    rate(16, move |task, number| {
        let (store, run) = (Arc::clone(&store), format!("{name} {}", task % runs));
        async move { store.append(record(&run, &format!("{task}-{number}"))).await.expect("it keeps records") }
    })
    .await
}

/// Calls with effects through the whole gate, over so many runs at a time.
async fn calls(store: &Arc<dyn Store>, runs: usize) -> f64 {
    let catalog = ToolCatalog::builder().tool::<count>().build().expect("a catalog");
    let policy = ToolPolicy::from_toml(
        "allowed_tools = [\"bench__count\"]\n[budgets.run]\ncalls = 10000000\n[loop_guard]\nenabled = false\n",
    )
    .unwrap_or_else(|_| ToolPolicy::allow(["bench__count"]));
    let runner = ToolRunner::builder(catalog, policy).store(Arc::clone(store)).build().expect("a runner");
    let runner = Arc::new(runner);
    rate(runs, move |_, _| {
        let runner = Arc::clone(&runner);
        async move {
            // A run's budget of calls is small; a new one costs little.
            let run = runner.run(RunOptions::new().principal("ada"));
            for number in 0..4 {
                let arguments = format!("{{\"number\":{number}}}");
                let result =
                    run.exec(ToolCall::text(format!("call_{number}").as_str(), "bench__count", &arguments)).await;
                assert!(result.is_ok(), "{}", result.to_model());
            }
        }
    })
    .await
        * 4.0
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let server = Postgres::start();
    let folder = tempfile::tempdir().expect("a folder");
    let options = SqlOptions::new().connections(32);
    let postgres = SqlStore::postgres(&server.url("bench"), options.clone()).await.expect("PostgreSQL");
    let sqlite = SqlStore::sqlite(folder.path().join("bench.db"), options).await.expect("SQLite");
    let stores: [(&str, Arc<dyn Store>); 3] =
        [("memory", Arc::new(MemoryStore::new())), ("SQLite", Arc::new(sqlite)), ("PostgreSQL", Arc::new(postgres))];
    println!("| store | 16 writers, 1 run: records/s | 16 runs | ratio |\n| --- | ---: | ---: | ---: |");
    for (name, store) in &stores {
        let (one, many) = (records(store, 1).await, records(store, 16).await);
        println!("| {name} | {one:.0} | {many:.0} | {:.1} |", many / one);
    }
    println!("\n| store | gate, 1 run: calls/s | 10 runs | 100 runs |\n| --- | ---: | ---: | ---: |");
    for (name, store) in &stores {
        let rates = [calls(store, 1).await, calls(store, 10).await, calls(store, 100).await];
        println!("| {name} | {:.0} | {:.0} | {:.0} |", rates[0], rates[1], rates[2]);
    }
}
