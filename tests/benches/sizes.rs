//! How large a PostgreSQL store becomes, and how long its queries take then. `RECORDS` sets the number of calls.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a benchmark prints and says what it expects"
)]

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tests::postgres::Postgres;
use tests::stored::{document, json_of};
use tool_runtime::call::CallId;
use tool_runtime::store::{AuditRecord, DocumentKind, Key, Query, RecordFilter, Store, Transaction, Verification};
use tool_runtime::tool::Hash;
use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// How many calls each run has.
const RUN: usize = 200;

/// How many times a query is repeated.
const ROUNDS: usize = 50;

/// Refunds a payment.
#[tool(name = "bench__refund", effect = external_side_effect, redact = ["$"])]
fn refund(
    /// The payment.
    payment: String,
    /// Cents.
    amount: u64,
) -> Result<String, ToolError> {
    Ok(format!("{payment}: {amount} cents are refunded"))
}

/// One call with an effect, through the gate.
async fn call(runner: &ToolRunner, run: &str) {
    let run = runner.run(RunOptions::new().run_id(run).principal("ada@example.com").tenant("north"));
    let arguments = format!(r#"{{"payment":"pay-{}","amount":1250}}"#, CallId::generate());
    let result = run.exec(ToolCall::text("call_1", "bench__refund", &arguments)).await;
    assert!(result.is_ok(), "{}", result.to_model());
}

/// The same record for another run and call.
fn record(template: &Value, run: &str, call: &str) -> AuditRecord {
    let mut record = template.clone();
    record["call"]["run_id"] = run.into();
    record["call"]["tool_call_id"] = call.into();
    serde_json::from_value(record).expect("a record")
}

/// Writes copies of a call, its record and its entry in the ledger, for `runs` runs. The chains are those of the store.
async fn fill(store: &Arc<dyn Store>, runs: usize) {
    let template = &store.records(&RecordFilter::run("first")).await.expect("a record")[0].record;
    let template = serde_json::to_value(template).expect("JSON");
    let entry = &store.list(&Query::new(DocumentKind::Call)).await.expect("an entry")[0];
    let entry = json_of(entry);
    for number in 0..runs {
        let run = CallId::generate().to_string();
        let calls: Vec<_> = (0..RUN)
            .map(|call| {
                let key = Key::call(run.as_str(), Hash::sha256(format!("{number} {call}")));
                (record(&template, &run, CallId::generate().as_ref()), document(key, &entry))
            })
            .collect();
        let change = move |transaction: &mut Transaction| {
            calls.iter().try_for_each(|(record, document)| {
                transaction.put(document.clone())?;
                transaction.append(record.clone())
            })
        };
        let keys = (0..RUN).map(|call| Key::call(run.as_str(), Hash::sha256(format!("{number} {call}")))).collect();
        store.update(keys, Box::new(change)).await.expect("written");
    }
}

/// Returns the median time of some work, in milliseconds.
async fn median<F: Future<Output = ()>>(rounds: usize, work: impl Fn() -> F) -> f64 {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        work().await;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The times of the queries that a process makes.
async fn times(store: &Arc<dyn Store>, runner: &ToolRunner) -> Vec<(&'static str, f64)> {
    let some = store.records(&RecordFilter { limit: Some(1), ..RecordFilter::run("first") }).await.expect("a record");
    let some = some[0].record.clone();
    let run = RecordFilter::run("first");
    let page = RecordFilter { limit: Some(500), ..RecordFilter::default() };
    let since = RecordFilter { since: Some(some.at()), ..page.clone() };
    let due = Query { due: Some(some.at()), ..Query::new(DocumentKind::Run) };
    let read = async |filter: &RecordFilter| assert!(!store.records(filter).await.expect("records").is_empty());
    vec![
        ("a call with an effect through the gate", median(ROUNDS, || call_anew(runner)).await),
        ("the records of a run", median(ROUNDS, || read(&run)).await),
        ("500 records, from the first on", median(ROUNDS, || read(&page)).await),
        ("500 records, from a time on", median(ROUNDS, || read(&since)).await),
        (
            "runs that are due",
            median(ROUNDS, async || {
                store.list(&due).await.expect("runs");
            })
            .await,
        ),
    ]
}

async fn call_anew(runner: &ToolRunner) {
    call(runner, CallId::generate().as_ref()).await;
}

/// The size of each table and index, in bytes.
fn sizes(server: &Postgres) -> Vec<(String, f64)> {
    let listed = server.sql(
        "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relname LIKE 'tool\\_runtime\\_%' \
         AND relkind IN ('r', 'i') AND pg_relation_size(oid) > 100000 ORDER BY relkind DESC, 2 DESC",
    );
    let row = |line: &str| {
        let (name, size) = line.split_once('|')?;
        Some((name.to_owned(), size.parse().ok()?))
    };
    listed.lines().filter_map(row).collect()
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let calls: usize = std::env::var("RECORDS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(1_000_000);
    let server = Postgres::start();
    let options = SqlOptions::new().connections(8);
    let store = SqlStore::postgres(&server.url("sizes"), options).await.expect("PostgreSQL");
    let store: Arc<dyn Store> = Arc::new(store);
    let catalog = ToolCatalog::builder().tool::<refund>().build().expect("a catalog");
    let policy = ToolPolicy::allow(["bench__refund"]);
    let runner = ToolRunner::builder(catalog, policy).store(Arc::clone(&store)).build().expect("a runner");
    call(&runner, "first").await;
    let before = times(&store, &runner).await;

    let start = Instant::now();
    fill(&store, calls / RUN).await;
    println!("{calls} calls are written, {:.0} a second", calls as f64 / start.elapsed().as_secs_f64());
    server.sql("VACUUM ANALYZE");
    let after = times(&store, &runner).await;

    println!("\n| table or index | MB at {calls} calls | GB at 10^8, calculated | bytes a call |");
    println!("| --- | ---: | ---: | ---: |");
    let mut sum = 0.0;
    for (name, size) in sizes(&server) {
        sum += size;
        row(&name, size, calls as f64);
    }
    row("together", sum, calls as f64);

    println!("\n| query | ms in an empty store | ms at {calls} calls |");
    println!("| --- | ---: | ---: |");
    for ((query, before), (_, after)) in before.iter().zip(&after) {
        println!("| {query} | {before:.2} | {after:.2} |");
    }
    let start = Instant::now();
    let made = store.anchor(|_| ()).await.expect("anchored");
    println!("\n{made} anchors for all runs: {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let verified = Verification::of_store(&*store, &[], |_| ()).await.expect("verified");
    assert_eq!(verified.findings, []);
    let taken = start.elapsed().as_secs_f64();
    println!(
        "{} records are verified in {taken:.1} s, {:.0} a second",
        verified.records,
        verified.records as f64 / taken
    );
}

fn row(name: &str, size: f64, calls: f64) {
    println!("| `{name}` | {:.0} | {:.0} | {:.0} |", size / 1e6, size / calls * 1e8 / 1e9, size / calls);
}
