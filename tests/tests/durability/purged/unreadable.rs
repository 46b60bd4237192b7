//! An erasure in a database with a document that cannot be read: it erases all other data, reports the document, and
//! can be repeated.

use std::path::Path;

use rusqlite::Connection;
use tests::world::{Processes, World};
use tool_runtime::call::CallId;
use tool_runtime::{Outcome, Reconciled, Run};
use tool_runtime_sql::{SqlOptions, SqlStore};

use super::*;

/// Pays a bill.
#[tool(name = "purged__pay", effect = external_side_effect, redact = ["$"])]
async fn pay(
    world: &dyn World,
    /// Which.
    bill: String,
) -> Result<String, ToolError> {
    world.happen();
    if bill == "stuck" {
        world.door().pass().await;
    }
    Ok(bill)
}

/// Pays a bill that a person has to approve.
#[tool(name = "purged__ask", effect = external_side_effect, redact = ["$"])]
fn ask(
    /// Which.
    bill: String,
) -> Result<String, ToolError> {
    Ok(bill)
}

const POLICY: &str = "allowed_tools = ['purged__pay', 'purged__ask']\nrequire_approval_for_tools = ['purged__ask']\n";

/// A database in which the run "hurt" has a call that has not ended.
struct Rig {
    processes: Processes,
    runner: ToolRunner,
    store: Arc<dyn Store>,
}

impl Rig {
    async fn new(path: &Path) -> Self {
        let processes = Processes::at("2026-01-01T00:00:00Z", 0);
        let store: Arc<dyn Store> = Arc::new(SqlStore::sqlite(path, SqlOptions::new()).await.expect("a store"));
        let catalog = ToolCatalog::builder().tool::<pay>().tool::<ask>().build().expect("a catalog");
        let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
        let runner = ToolRunner::builder(catalog, policy).capabilities(processes.capabilities()).approvals(true);
        let runner = runner.store(Arc::clone(&store)).build().expect("a runner");
        Self { processes, runner, store }
    }

    fn run(&self, id: &str, principal: &str) -> Run {
        self.runner.run(RunOptions::new().run_id(id).principal(principal))
    }

    /// Calls tools in several runs. The last call of the run "hurt" is open, waits, or has an unknown outcome.
    async fn history(&self, kind: &str) -> Run {
        for (run, principal) in [("first", "ada"), ("hurt", "ada"), ("last", "ada"), ("other", "bob")] {
            let call = ToolCall::text("c1", "purged__pay", r#"{"bill":"CANARY"}"#);
            assert_eq!(self.run(run, principal).exec(call).await.outcome(), Outcome::Ok);
        }
        let run = self.run("hurt", "ada");
        if kind == "waiting" {
            let call = ToolCall::text("c2", "purged__ask", r#"{"bill":"CANARY"}"#);
            assert_eq!(run.exec(call).await.outcome(), Outcome::ApprovalRequired);
            return run;
        }
        let stuck = run.clone();
        let call = ToolCall::text("c2", "purged__pay", r#"{"bill":"stuck"}"#);
        let stuck = self.processes.stuck(async move { stuck.exec(call).await }).await;
        if kind == "effect" {
            run.cancel();
            stuck.await.expect("it ends");
        }
        run
    }

    async fn erase(&self) -> RetentionReport {
        Retention::new(&*self.store, Decider::new("grace"))
            .erase("ada", None)
            .await
            .expect("it erases what it can read")
    }

    /// Ends the call of the run "hurt" for good.
    async fn end(&self, kind: &str, run: &Run) {
        if kind == "waiting" {
            run.abandon("c2").await.expect("it waits");
            return;
        }
        run.cancel();
        let call = CallId::new("c2");
        let settled = async {
            let again = self.run("hurt", "ada");
            while again.settle(&call, Reconciled::Prevented, &Decider::new("grace")).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_hours(1), settled).await.expect("it has ended");
    }
}

/// The runs whose records have values of the principal.
async fn left(store: &dyn Store) -> Vec<String> {
    let records = store.records(&RecordFilter::default()).await.expect("records");
    let values =
        records.iter().filter(|sealed| sealed.record.principal().is_some_and(|principal| **principal == *"ada"));
    values.map(|sealed| sealed.record.run_id().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_call_stops_no_other_erasure() {
    for (kind, why) in [("waiting", "in_progress"), ("call", "in_progress"), ("effect", "unsettled")] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let rig = Rig::new(&path).await;
        let run = rig.history(kind).await;
        assert_eq!(rig.erase().await.kept, [("hurt".into(), why)], "{kind}: nothing is erased before it is decided");

        let file = Connection::open(&path).expect("a database");
        let which = "space = ?1 AND (space <> 'effect' OR body LIKE '%\"unknown\"%') AND due IS NOT NULL";
        let (number, scope, body): (i64, String, String) = file
            .query_row(
                &format!("SELECT number, scope, body FROM tool_runtime_documents WHERE {which}"),
                [kind],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .expect("one document");
        let write = |body: &str| {
            let sql = "UPDATE tool_runtime_documents SET body = ?1 WHERE number = ?2";
            assert_eq!(file.execute(sql, rusqlite::params![body, number]).expect("it is written"), 1);
        };
        write("{");
        let report = rig.erase().await;
        let kept: Vec<_> = report.kept.iter().map(|(run, why)| (&**run, *why)).collect();
        // Each unknown outcome may be an unsettled one of the document.
        let expected =
            if kind == "effect" { vec![(&*scope, "broken"), ("hurt", "broken")] } else { vec![("hurt", "broken")] };
        assert_eq!(kept, expected, "{kind}");
        assert_eq!((report.runs, report.records), (2, 2), "{kind}");
        assert!(left(&*rig.store).await.iter().all(|run| run == "hurt"), "{kind}");
        let again = rig.erase().await;
        assert_eq!((again.records, &again.kept), (0, &report.kept), "{kind}: it can be repeated");

        write(&body);
        assert_eq!(rig.erase().await.kept, [("hurt".into(), why)], "{kind}");
        rig.end(kind, &run).await;
        let report = rig.erase().await;
        assert_eq!((report.runs, report.kept_runs), (1, 0), "{kind}: the request is done");
        assert_eq!(left(&*rig.store).await, [""; 0], "{kind}");
        let verified = Verification::of_store(&*rig.store, &[], |_| {}).await.expect("it is read");
        assert_eq!(verified.findings, [], "{kind}");
    }
}
