//! Approvers in three processes race for the same paused calls: each is decided once, and its effect happens once.
//!
//! The default run is small. `RACING_CALLS=10000 cargo test -p tests --release --test racing` is the long one, and with
//! `--features postgres` it runs on a PostgreSQL server too.

#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tests::Shown as _;

use tokio::task::JoinSet;
use tool_runtime::call::{Decider, DecisionError};
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::{Chain, RecordFilter, Store};
use tool_runtime::{
    Capabilities, Outcome, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolError, ToolPolicy, ToolRunner,
    capability, tool,
};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// A file outside of every store.
#[capability(effect = external_side_effect)]
pub trait Outside {
    /// Writes a line and waits until it is on the disk.
    ///
    /// # Errors
    /// The disk failed.
    fn write(&self, line: &str) -> std::io::Result<()>;
}

struct Appended(PathBuf);

impl Outside for Appended {
    fn write(&self, line: &str) -> std::io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }
}

/// Writes its number where everybody can see it.
#[tool(name = "racing__write", effect = external_side_effect, redact = ["$"])]
fn write(
    context: &ToolContext,
    file: &dyn Outside,
    /// What to write.
    number: u32,
) -> Result<u32, ToolError> {
    file.write(&format!("{}/{number}", context.run_id()))?;
    Ok(number)
}

const PROCESSES: usize = 3;
const RUNS: usize = 20;

fn calls() -> usize {
    std::env::var("RACING_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(120)
}

async fn open(address: &str) -> SqlStore {
    #[cfg(feature = "postgres")]
    if address.starts_with("postgres://") {
        return SqlStore::postgres(address, SqlOptions::new()).await.expect("a server");
    }
    SqlStore::sqlite(address, SqlOptions::new()).await.expect("a file")
}

fn runner(store: &SqlStore, effects: &Path) -> ToolRunner {
    let policy = "
        allowed_tools = ['racing__write']
        require_approval_for_tools = ['racing__write']
    ";
    ToolRunner::builder(
        ToolCatalog::collect().expect("a catalog"),
        ToolPolicy::from_toml(policy).unwrap_or_else(|error| panic!("{error}")),
    )
    .capabilities(Capabilities::new().with(Arc::new(Appended(effects.to_owned())) as Arc<dyn Outside>))
    .approvals(true)
    .store(store.clone())
    .build()
    .unwrap_or_else(|error| panic!("{error}"))
}

fn ada(run: impl Into<Arc<str>>) -> RunOptions {
    RunOptions::new().run_id(run).principal("ada")
}

/// The part of one of the processes, which is this test's own program, started by [`race`].
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approving_process() {
    let (Ok(address), Ok(effects)) = (std::env::var("RACING_STORE"), std::env::var("RACING_EFFECTS")) else { return };
    let store = open(&address).await;
    let runner = Arc::new(runner(&store, Path::new(&effects)));
    let decider = Decider::new(format!("approver-{}", std::process::id()));
    let waiting = tests::pending_calls(&store, &RecordFilter::default()).await;
    let mut decisions = JoinSet::new();
    let mut ran = 0;
    for call in waiting {
        let (runner, decider) = (Arc::clone(&runner), decider.clone());
        decisions.spawn(async move {
            let run = runner.run(ada(Arc::clone(&call.run_id)));
            match run.resume_shown(call.call_id.as_str(), ApprovalDecision::Approve, &decider).await {
                Ok(result) => {
                    assert_eq!(result.outcome(), Outcome::Ok, "{:?}", result.detail());
                    1
                }
                Err(ResumeError::NotWaiting(_)) => 0,
                Err(error) => panic!("{}: {error}", error.code()),
            }
        });
        if decisions.len() >= 16 {
            ran += decisions.join_next().await.expect("one").expect("no approver fails");
        }
    }
    for done in decisions.join_all().await {
        ran += done;
    }
    println!("RAN {ran}");
}

/// Suspends calls, lets the processes race, and checks the result.
async fn race(address: &str, folder: &Path) {
    let (effects, calls) = (folder.join("effects"), calls());
    let store = open(address).await;
    let runner = runner(&store, &effects);
    for number in 0..calls {
        let run = runner.run(ada(format!("run-{}", number % RUNS)));
        let arguments = format!(r#"{{"number":{number}}}"#);
        let result = run.exec(ToolCall::text(format!("c{number}"), "racing__write", arguments)).await;
        assert_eq!(result.outcome(), Outcome::ApprovalRequired);
    }
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().expect("this program"))
                .args(["an_approving_process", "--exact", "--nocapture", "--test-threads=1"])
                .envs([("RACING_STORE", address), ("RACING_EFFECTS", effects.to_str().expect("a path"))])
                .stdout(Stdio::piped())
                .spawn()
                .expect("it starts")
        })
        .collect();
    let mut ran = Vec::new();
    for child in children {
        let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.expect("a task").expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        let line = text.lines().find_map(|line| line.split("RAN ").nth(1)).expect("it says how many it ran");
        ran.push(line.trim().parse::<usize>().expect("a number"));
    }
    assert_eq!(ran.iter().sum::<usize>(), calls, "{ran:?}");
    let mut happened = BTreeMap::new();
    for line in std::fs::read_to_string(&effects).expect("the effects").lines() {
        *happened.entry(line.to_owned()).or_insert(0) += 1;
    }
    assert_eq!((happened.len(), happened.values().max()), (calls, Some(&1)), "each effect once");
    assert!(tests::pending_calls(&store, &RecordFilter::default()).await.is_empty());
    let records = store.records(&RecordFilter::default()).await.expect("records");
    assert_eq!(Chain::verify(&records), Ok(()));
    let ok = records.iter().filter_map(|sealed| sealed.record.as_call()).filter(|record| record.outcome == Outcome::Ok);
    assert_eq!(ok.count(), calls, "one record a call");
    let decided = records.iter().filter_map(|sealed| sealed.record.as_decision());
    let (late, counted): (Vec<_>, Vec<_>) = decided.partition(|decision| decision.refused().is_some());
    assert_eq!(counted.len(), calls, "one decision a call");
    assert!(late.iter().all(|one| one.mismatch() == Some(DecisionError::NotPending)), "the others came too late");
    assert_eq!(records.len(), 2 * calls + late.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_is_decided_once_on_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    race(folder.path().join("store.db").to_str().expect("a path"), folder.path()).await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_is_decided_once_on_one_server() {
    let server = tests::postgres::Postgres::start();
    let folder = tempfile::tempdir().expect("a folder");
    race(&server.url("racing"), folder.path()).await;
}
