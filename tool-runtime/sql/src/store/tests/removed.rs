//! Purges and erasures in a store with damaged rows, and records of a closed run.

use std::time::Duration;

use tool_runtime::ToolInvocationRecord;
use tool_runtime::call::Decider;
use tool_runtime::store::{Key, RecordFilter, Retention, Store, StoredDocument, Transaction};

use crate::store::SqlStore;
use crate::store::tests::{edit, new};

fn retention(store: &SqlStore) -> Retention<'_> {
    Retention::new(store, Decider::new("grace"))
}

async fn append(store: &SqlStore, run: &str) -> Result<(), &'static str> {
    store.append(ToolInvocationRecord::example(run, "a").into()).await.map_err(|error| error.code())
}

/// The column of the damaged row still names the principal, so the request is not done.
#[tokio::test]
async fn an_unreadable_record_keeps_its_run() {
    let (_folder, store) = new().await;
    append(&store, "one").await.unwrap();
    edit(&store, "UPDATE tool_runtime_records SET body = '{}'").await;
    let report = retention(&store).erase("ada", None).await.unwrap();
    assert_eq!((report.records, report.kept), (0, vec![("one".into(), "broken")]));
}

/// One document that cannot be read keeps its own run, and stops no other removal.
#[tokio::test]
async fn an_unreadable_document_stops_no_other_run() {
    for erases in [true, false] {
        let (_folder, store) = new().await;
        for number in 0..5 {
            let id = format!("run-{number}");
            append(&store, &id).await.unwrap();
            let document = StoredDocument::example(&id, "a talk", None);
            let write = move |transaction: &mut Transaction| transaction.put(document.clone());
            store.update(vec![Key::run(id)], Box::new(write)).await.unwrap();
        }
        // A version before retention wrote no time to the run, so only records and marks are old.
        edit(&store, "DELETE FROM tool_runtime_documents WHERE scope NOT IN ('run-1', 'run-3')").await;
        edit(&store, "UPDATE tool_runtime_documents SET body = '{\"run\":{}}' WHERE scope = 'run-1'").await;
        let of_ada =
            "UPDATE tool_runtime_documents SET body = replace(body, '\"principal\":null', '\"principal\":\"ada\"')";
        edit(&store, of_ada).await;
        let report = if erases {
            retention(&store).erase("ada", None).await.unwrap()
        } else {
            retention(&store).purge(Duration::ZERO).await.unwrap()
        };
        assert_eq!(report.kept, [("run-1".into(), "broken")], "erases: {erases}");
        // The purge gives the conversation of run 3 its time.
        assert_eq!(report.runs, if erases { 4 } else { 3 }, "erases: {erases}");
    }
}

/// The mark and the end of the chain are read in one statement, without the conversation of the run.
#[tokio::test]
async fn a_record_alone_is_refused_by_a_mark() {
    let (_folder, store) = new().await;
    for (run, text) in [("talk", "a talk".to_owned()), ("engine", String::new())] {
        let document = StoredDocument::example(run, &text, None);
        let write = move |transaction: &mut Transaction| transaction.put(document.clone());
        store.update(vec![Key::run(run)], Box::new(write)).await.unwrap();
        for _ in 0..2 {
            append(&store, run).await.unwrap();
        }
    }
    append(&store, "closed").await.unwrap();
    retention(&store).run("closed").purge(Duration::ZERO).await.unwrap();
    assert_eq!(append(&store, "closed").await, Err("run_purged"));
    edit(&store, "UPDATE tool_runtime_documents SET body = '{' WHERE scope = 'closed'").await;
    assert_eq!(append(&store, "closed").await, Err("store_corrupt"), "a damaged mark opens no run");
    edit(&store, "UPDATE tool_runtime_documents SET body = '{' WHERE scope = 'talk'").await;
    assert_eq!(append(&store, "talk").await, Ok(()), "a conversation is not read");
    assert_eq!(store.records(&RecordFilter::run("talk")).await.unwrap().len(), 3);
}
