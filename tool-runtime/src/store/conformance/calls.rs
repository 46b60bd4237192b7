//! Suspended calls, and documents with texts of every kind.

use std::sync::Arc;

use crate::call::{CallId, ToolInvocationRecord};
use crate::store::conformance::{listed, read, record, run, text, update, waiting};
use crate::store::{AuditRecord, Chain, Document, DocumentKind, Key, Query, RecordFilter, Store, Transaction};

pub(super) async fn calls_that_wait_are_found(store: Arc<dyn Store>) {
    let store = &*store;
    // A list in the order of the keys would differ, because keys contain digests of the call ids.
    for (run, call, expires) in [("one", "a", 10), ("one", "b", 20), ("two", "c", 30)] {
        let waiting = waiting(run, call, expires);
        let key = Key::of_waiting(&waiting.call);
        let named = key.clone();
        let write =
            move |transaction: &mut Transaction| transaction.set(&named, Document::Waiting(Box::new(waiting.clone())));
        update(store, &[key], write).await.expect("it writes");
    }
    let cases = [
        (RecordFilter::default(), vec!["a", "b", "c"]),
        (RecordFilter { run_id: Some("one".into()), ..RecordFilter::default() }, vec!["a", "b"]),
        (RecordFilter { call_id: Some(CallId::new("c")), ..RecordFilter::default() }, vec!["c"]),
        (RecordFilter { principal: Some("nobody".into()), ..RecordFilter::default() }, vec![]),
        (RecordFilter { decisions: Some(true), ..RecordFilter::default() }, vec![]),
    ];
    for (filter, expected) in cases {
        let found = store.pending_calls(&filter).await.expect("it lists");
        let ids: Vec<_> = found.iter().flatten().map(|call| call.call_id.as_str()).collect();
        assert_eq!(ids, expected, "{filter:?}");
    }
    let found = store
        .pending(&Key::waiting("one", None, Some("ada"), &CallId::new("a")))
        .await
        .expect("it reads")
        .expect("it waits");
    assert_eq!(found.arguments.as_str(), r#"{"pin":"1234"}"#, "frozen arguments are kept as they are");
    for (run, tenant, principal, what) in
        [("two", None, Some("ada"), "run"), ("one", Some(""), Some("ada"), "tenant"), ("one", None, None, "principal")]
    {
        let key = Key::waiting(run, tenant, principal, &CallId::new("a"));
        assert!(store.pending(&key).await.expect("it reads").is_none(), "of another {what}");
    }
    let open = store.open_records(&RecordFilter::run("one")).await.expect("it lists");
    assert_eq!(open.iter().map(|record| record.tool_call_id.as_str()).collect::<Vec<_>>(), ["a", "b"], "open records");
}

pub(super) async fn documents_read_as_they_were_written(store: Arc<dyn Store>) {
    let store = &*store;
    let id = "a'b\"c\\d\u{0}e%f_\u{1f980}";
    let document = "\u{0}\u{feff}'; --\u{1f980}";
    let key = Key::waiting(id, None, Some("ada"), &CallId::new(id));
    let pair = [Key::run(id), key];
    let named = pair.clone();
    let write = move |transaction: &mut Transaction| {
        transaction.set(&named[0], run(id, document))?;
        transaction.set(&named[1], Document::Waiting(Box::new(waiting(id, id, 1))))?;
        transaction.append(record(id, id))
    };
    update(store, &pair, write).await.expect("it writes");
    assert_eq!(text(read(store, &pair[0]).await.as_ref()), Some(document), "any text");
    let listed = listed(store, Query { scope: Some(id.into()), ..Query::new(DocumentKind::Waiting) }).await;
    assert_eq!(listed.first().map(|listed| &listed.key), Some(&pair[1]), "any id");
    let records = store.records(&RecordFilter::call(id, CallId::new(id))).await.expect("it reads");
    assert_eq!(Chain::verify(&records), Ok(()), "a record reads as it was sealed");
    let json = |record: &ToolInvocationRecord| serde_json::to_string(record).expect("JSON");
    let first = records.first().and_then(|sealed| AuditRecord::as_call(&sealed.record)).expect("a call's record");
    let unsealed = ToolInvocationRecord { seal: None, ..first.clone() };
    assert_eq!(json(&unsealed), json(&record(id, id)), "digit for digit");
}
