//! How many records a second the stores keep, and how many calls with effects the gate finishes over them.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a benchmark prints and says what it expects"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tests::postgres::Postgres;
use tests::stored::record;
use tool_runtime::agent::{Agent, DisplayFn, Input, ModelClient, ModelError, ModelRequest, RunQueue, Worker};
use tool_runtime::store::{Key, MemoryStore, Store, StoredDocument, Transaction};
use tool_runtime::wire::history::{CallMessage, Part};
use tool_runtime::wire::{Decoded, FinishReason, Message};
use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
use tool_runtime_sql::{SqlOptions, SqlStore};

const LASTS: Duration = Duration::from_secs(2);

/// Counts.
#[tool(name = "bench__count", effect = state_change, redact = ["$"])]
fn count(
    /// A number.
    number: u64,
) -> Result<u64, ToolError> {
    Ok(number + 1)
}

/// Lets this many tasks work for a while, and returns how often they finished in a second.
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

/// Records of 16 writers on this many runs.
async fn records(store: &Arc<dyn Store>, runs: usize) -> f64 {
    let (store, name) = (Arc::clone(store), tool_runtime::call::CallId::generate());
    rate(16, move |task, number| {
        let (store, run) = (Arc::clone(&store), format!("{name} {}", task % runs));
        async move { store.append(record(&run, &format!("{task}-{number}"))).await.expect("it keeps records") }
    })
    .await
}

/// Documents that are due, as the runs that wait for a worker: each of 16 writers writes one of its own. With
/// PostgreSQL each of these writes wakes other processes.
async fn due(store: &Arc<dyn Store>) -> f64 {
    let (store, name) = (Arc::clone(store), tool_runtime::call::CallId::generate());
    rate(16, move |task, number| {
        let (store, run) = (Arc::clone(&store), format!("{name} {task}"));
        async move {
            let key = Key::run(run.as_str());
            let change = move |transaction: &mut Transaction| {
                transaction.put(StoredDocument::example(&run, &number.to_string(), Some(transaction.now())))
            };
            store.update(vec![key], Box::new(change)).await.expect("it keeps documents");
        }
    })
    .await
}

/// Calls with effects through the whole gate, over this many runs at a time.
async fn calls(store: &Arc<dyn Store>, runs: usize) -> f64 {
    let catalog = ToolCatalog::builder().tool::<count>().build().expect("a catalog");
    let policy = ToolPolicy::from_toml(
        "allowed_tools = [\"bench__count\"]\n[budgets.run]\ncalls = 10000000\n[loop_guard]\nenabled = false\n",
    )
    .unwrap_or_else(|_| ToolPolicy::allow(["bench__count"]));
    let runner = ToolRunner::builder(catalog, policy).store(Arc::clone(store)).build().expect("a runner");
    let runner = Arc::new(runner);
    rate(runs, move |task, at| {
        let runner = Arc::clone(&runner);
        async move {
            // A run's budget of calls is small; a new one costs little.
            let run = runner.run(RunOptions::new().principal("ada"));
            for number in 0..4 {
                // Calls of one principal with equal arguments exclude each other.
                let arguments = format!("{{\"number\":{}}}", (at * 4 + number) * runs + task);
                let result =
                    run.exec(ToolCall::text(format!("call_{number}").as_str(), "bench__count", &arguments)).await;
                assert!(result.is_ok(), "{}", result.to_model());
            }
        }
    })
    .await
        * 4.0
}

/// Commits of one small row each by this many tasks, without this library.
async fn bare(pool: &PgPool, tasks: usize) -> f64 {
    let pool = pool.clone();
    rate(tasks, move |task, _| {
        let (pool, task) = (pool.clone(), i64::try_from(task).expect("few tasks"));
        async move {
            let written = sqlx::query("INSERT INTO bare (task) VALUES ($1)").bind(task).execute(&pool).await;
            assert_eq!(written.expect("it commits").rows_affected(), 1);
        }
    })
    .await
}

/// A model that asks for two calls with effects, and then answers.
struct Asks;

#[async_trait]
impl ModelClient for Asks {
    fn name(&self) -> &'static str {
        "asks"
    }

    async fn complete(&self, request: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let said = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        if said == 2 {
            return Ok(Decoded::new(&[Part::text("Done.")], FinishReason::Stop));
        }
        let call = CallMessage::new(format!("call_{said}"), "bench__count", &format!("{{\"number\":{said}}}"));
        Ok(Decoded::new(&[Part::Call(call)], FinishReason::ToolCalls))
    }
}

/// Conversations of three turns and two calls with effects that two workers finish in a second.
async fn conversations(store: &Arc<dyn Store>) -> f64 {
    const MANY: usize = 200;
    let catalog = ToolCatalog::builder().tool::<count>().build().expect("a catalog");
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["bench__count"]));
    let runner = runner.store(Arc::clone(store)).build().expect("a runner");
    let (queue, name) = (RunQueue::new(&runner), tool_runtime::call::CallId::generate());
    for number in 0..MANY {
        let mut conversation =
            Agent::new(Asks).converse(runner.run(RunOptions::new().run_id(format!("{name} {number}"))));
        conversation.accept(Input::from("Go.")).await.expect("a message");
        queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    }
    let (start, (stop, stopped)) = (Instant::now(), tokio::sync::watch::channel(false));
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let mut stopped = stopped.clone();
            let worker = Worker::new(Agent::new(Asks), runner.clone());
            tokio::spawn(worker.run(async move { drop(stopped.wait_for(|stop| *stop).await) }))
        })
        .collect();
    for number in 0..MANY {
        while &*queue.find(&format!("{name} {number}"), None).await.expect("it is there").0.state != "answered" {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let taken = start.elapsed().as_secs_f64();
    stop.send_replace(true);
    for worker in workers {
        worker.await.expect("no panic").expect("the store is there");
    }
    MANY as f64 / taken
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Measures one chain, and one chain for each run, in turn, with the time of a commit for each pair.
async fn chains(server: &Postgres, store: &Arc<dyn Store>, name: &str) {
    let [mut ones, mut manies, mut dues, mut ratios, mut commits] = [const { Vec::new() }; 5];
    for _ in 0..rounds() {
        commits.push(tokio::task::block_in_place(|| server.commit_ms()));
        let (one, many) = (records(store, 1).await, records(store, 16).await);
        ones.push(one);
        manies.push(many);
        dues.push(due(store).await);
        ratios.push(many / one);
    }
    let all: Vec<_> = ratios.iter().map(|ratio| format!("{ratio:.1}")).collect();
    let [one, many, due, ratio, commit] = [ones, manies, dues, ratios, commits].map(median);
    println!("| {name} | {commit:.2} | {one:.0} | {many:.0} | {ratio:.1} | {} | {due:.0} |", all.join(" "));
}

fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(5)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let server = Postgres::start();
    let folder = tempfile::tempdir().expect("a folder");
    let options = SqlOptions::new().connections(32);
    let pool = PgPoolOptions::new().max_connections(32).connect(&server.url("bare")).await.expect("PostgreSQL");
    sqlx::query("CREATE TABLE bare (id bigserial PRIMARY KEY, task bigint NOT NULL)")
        .execute(&pool)
        .await
        .expect("a table");
    let postgres = SqlStore::postgres(&server.url("bench"), options.clone()).await.expect("PostgreSQL");
    let sqlite = SqlStore::sqlite(folder.path().join("bench.db"), options).await.expect("SQLite");
    let stores: [(&str, Arc<dyn Store>); 3] =
        [("memory", Arc::new(MemoryStore::new())), ("SQLite", Arc::new(sqlite)), ("PostgreSQL", Arc::new(postgres))];
    println!("16 writers; medians of {} rounds\n", rounds());
    println!("| store | a commit, ms | 1 run: records/s | 16 runs | ratio | ratio of each round | due documents/s |");
    println!("| --- | ---: | ---: | ---: | ---: | --- | ---: |");
    for (name, store) in &stores {
        chains(&server, store, name).await;
    }
    // Simulates a disk that takes this long: a commit waits, and includes the transactions that arrive meanwhile.
    for delay in ["1000", "4000"] {
        server.set("commit_siblings", "0");
        server.set("commit_delay", delay);
        chains(&server, &stores[2].1, &format!("PostgreSQL, `commit_delay = {delay}`")).await;
    }
    server.set("commit_delay", "0");
    println!("\n| store | gate, 1 run: calls/s | 10 runs | 100 runs | workers: conversations/s |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let mut figures = [const { [const { Vec::new() }; 4] }; 3];
    let mut commits = [const { Vec::new() }; 2];
    for _ in 0..rounds() {
        for (kept, tasks) in commits.iter_mut().zip([10, 100]) {
            kept.push(bare(&pool, tasks).await);
        }
        for (figures, (_, store)) in figures.iter_mut().zip(&stores) {
            let round =
                [calls(store, 1).await, calls(store, 10).await, calls(store, 100).await, conversations(store).await];
            for (kept, figure) in figures.iter_mut().zip(round) {
                kept.push(figure);
            }
        }
    }
    for (figures, (name, _)) in figures.into_iter().zip(&stores) {
        let [one, ten, hundred, workers] = figures.map(median);
        println!("| {name} | {one:.0} | {ten:.0} | {hundred:.0} | {workers:.0} |");
    }
    let [ten, hundred] = commits.map(median);
    println!("\nBare commits of sqlx in the same rounds: {ten:.0}/s by 10 tasks, {hundred:.0}/s by 100 tasks");
}
