//! Purges and erasures that are cut off at every operation of the store: the remaining records pass verification, and
//! the next purge or erasure continues.

mod unreadable;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tests::world::{HookAction, HookedStore};
use tool_runtime::call::Decider;
use tool_runtime::store::{
    DocumentKind, Key, MemoryStore, Query, RecordFilter, Retention, RetentionReport, Store, StoreError, Verification,
};
use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolInvocationRecord, ToolPolicy, ToolRunner, tool};

const RUNS: u64 = 3;

async fn history() -> Arc<dyn Store> {
    let store = MemoryStore::new();
    for run in 0..RUNS {
        for call in ["a", "b"] {
            store.append(ToolInvocationRecord::example(&format!("run-{run}"), call).into()).await.expect("it keeps");
        }
    }
    let store: Arc<dyn Store> = Arc::new(store);
    store.anchor(|_| {}).await.expect("it anchors");
    store
}

async fn remove(store: &dyn Store, erases: bool) -> Result<RetentionReport, StoreError> {
    let retention = Retention::new(store, Decider::new("grace"));
    if erases { retention.erase("ada", None).await } else { retention.purge(Duration::from_mins(1)).await }
}

#[tokio::test]
async fn a_removal_is_cut_off_anywhere() {
    for erases in [false, true] {
        for kept in [false, true] {
            let mut at = 0;
            loop {
                let (store, calls) = (history().await, Arc::new(AtomicU32::new(0)));
                let count = Arc::clone(&calls);
                let cut = HookedStore::new(Arc::clone(&store), move |_| {
                    let lost = || StoreError::Unavailable("the disk is gone".into());
                    match count.fetch_add(1, Ordering::AcqRel) {
                        now if now < at => HookAction::Pass,
                        now if now == at && kept => HookAction::Lost(lost()),
                        _ => HookAction::Fail(lost()),
                    }
                });
                let what = format!("erases: {erases}, operation {at} fails, kept: {kept}");
                let ended = remove(&cut, erases).await;
                let verified = Verification::of_store(&*store, &[], |_| {}).await.expect("it is read");
                assert_eq!(verified.findings, [], "{what}");
                let again = remove(&*store, erases).await.expect("it continues");
                assert_eq!(again.kept_runs, 0, "{what}");
                let verified = Verification::of_store(&*store, &[], |_| {}).await.expect("it is read");
                let removed = if erases { verified.erased } else { verified.purged };
                assert_eq!((verified.findings, removed), (vec![], 2 * RUNS), "{what}");
                if ended.is_ok() {
                    break;
                }
                at += 1;
                assert!(at < 200, "it ends");
            }
            assert!(at > 3, "it was cut off");
        }
    }
}

/// An erasure while the store is verified: a record that was read with its values is read again.
#[tokio::test]
async fn records_that_are_erased_during_a_verification_are_no_finding() {
    let (store, reads) = (history().await, AtomicU32::new(0));
    let inner = Arc::clone(&store);
    let watched = HookedStore::new(Arc::clone(&store), move |method| {
        // All records were read. The next page has the records of the erasure.
        if method == "records" && reads.fetch_add(1, Ordering::AcqRel) == 1 {
            let store = Arc::clone(&inner);
            return HookAction::After(Box::pin(async move {
                assert_eq!(remove(&*store, true).await.expect("it erases").records, 2 * RUNS);
            }));
        }
        HookAction::Pass
    });
    let verified = Verification::of_store(&watched, &[], |_| {}).await.expect("it is read");
    assert_eq!((verified.findings, verified.erased), (vec![], 0));
    let verified = Verification::of_store(&*store, &[], |_| {}).await.expect("it is read");
    assert_eq!((verified.findings, verified.erased), (vec![], 2 * RUNS));
}

/// Notes something, once for each caller.
#[tool(name = "purged__note", effect = state_change, redact = ["$"], once = "note:{text}", once_scope = principal)]
fn note(
    /// What.
    text: String,
) -> Result<String, ToolError> {
    if text == "fail" { Err(ToolError::code(format!("declined-for-{NAME}"))) } else { Ok(text) }
}

const NAME: &str = "quilla";

/// All documents with their keys, and all records, as JSON.
async fn everything(store: &dyn Store) -> Vec<String> {
    use DocumentKind::{Account, Anchor, Call, Decided, Effect, Grant, Hold, Notice, Post, Run, Slots, Waiting};
    let mut all = Vec::new();
    for kind in [Account, Anchor, Call, Decided, Effect, Grant, Hold, Notice, Post, Run, Slots, Waiting] {
        let listed = store.list(&Query::new(kind)).await.expect("documents");
        all.extend(listed.iter().map(|listed| format!("{:?} {}", listed.key, listed.to_json().expect("JSON"))));
    }
    let records = store.records(&RecordFilter::default()).await.expect("records");
    all.extend(records.iter().map(|sealed| serde_json::to_string(sealed).expect("JSON")));
    all
}

/// The rule of a call that a table of the policy admits or denies names the caller of that table.
#[tokio::test]
async fn no_table_of_the_policy_names_who_was_erased() {
    let tables =
        ["principals.quilla", "roles.nurse", "attributes.ward.oncology", "tenants.acme", "tenants.acme.roles.nurse"];
    for (table, allows) in tables.into_iter().flat_map(|table| [(table, true), (table, false)]) {
        let (all, key) = if allows { ("", "allowed_tools") } else { ("'purged__note'", "denied_tools") };
        let policy = format!("allowed_tools = [{all}]\n[{table}]\n{key} = ['purged__note']");
        let policy = ToolPolicy::from_toml(&policy).expect("a policy");
        let catalog = ToolCatalog::builder().tool::<note>().build().expect("a catalog");
        let store = Arc::new(MemoryStore::new());
        let runner =
            ToolRunner::builder(catalog, policy).store(Arc::<MemoryStore>::clone(&store)).build().expect("a runner");
        let of = RunOptions::new().run_id("run-1").principal(NAME).tenant("acme").role("nurse");
        let run = runner.run(of.attribute("ward", "oncology"));
        for (id, text) in [("c1", "for quilla"), ("c2", "fail")] {
            let ended = run.exec(ToolCall::text(id, "purged__note", format!("{{\"text\":\"{text}\"}}"))).await;
            assert_eq!(ended.executed(), allows, "{table}: {}", ended.to_model());
        }
        let rules = async || {
            let records = store.records(&RecordFilter::run("run-1")).await.expect("records");
            let calls = records.iter().filter_map(|sealed| sealed.record.as_call()?.decision.clone());
            calls.map(|decision| decision.rule.into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(rules().await, vec![format!("{table}.{key}"); 2]);
        let report = Retention::new(&*store, Decider::new("grace")).erase(NAME, Some("acme")).await.expect("it erases");
        assert_eq!((report.records, report.kept_runs), (2, 0), "{table}");
        let word = table.split('.').next().expect("a word");
        let records = store.records(&RecordFilter::run("run-1")).await.expect("records");
        let kept = format!("\"rule\":\"{word}\"");
        let all = records.iter().map(|sealed| serde_json::to_string(sealed).expect("JSON"));
        assert_eq!(all.filter(|text| text.contains(&kept)).count(), 2, "{table}");
        for text in everything(&*store).await {
            for canary in [NAME, "nurse", "ward", "oncology"] {
                assert!(!text.contains(canary), "{table}: {canary} in {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_purge_of_a_run_that_does_not_exist_leaves_no_mark() {
    let store = history().await;
    for dry_run in [true, false] {
        let mut retention = Retention::new(&*store, Decider::new("grace")).run("typo");
        if dry_run {
            retention = retention.dry_run(true);
        }
        let report = retention.purge(Duration::ZERO).await.expect("it is read");
        assert_eq!((report.runs, report.records, report.kept_runs), (0, 0, 0), "dry run: {dry_run}");
    }
    assert!(matches!(*store.read(&[Key::run("typo")]).await.expect("it is read"), [None]));
    let mut records = RecordFilter::run("typo");
    assert!(records.next_page(&*store).await.expect("it is read").is_none_or(|page| page.is_empty()));
}
