//! Records: chained by run, filtered and read in pages.

use crate::call::CallId;
use crate::store::conformance::record;
use crate::store::{Chain, RecordFilter, Sealed, Store};

pub(super) fn calls(records: &[Sealed]) -> Vec<&str> {
    records.iter().map(|sealed| sealed.record.call_id().as_str()).collect()
}

pub(super) async fn records_are_chained_by_run(store: &dyn Store) {
    for (run, call) in [("one", "a"), ("two", "b"), ("one", "c")] {
        store.append(record(run, call).into()).await.expect("it keeps records");
    }
    store.flush().await.expect("it flushes");
    let all = store.records(&RecordFilter::default()).await.expect("it reads records");
    assert_eq!(calls(&all), ["a", "b", "c"], "records are read in the order in which they were appended");
    assert_eq!(Chain::verify(&all), Ok(()), "every run has a chain");
    assert_eq!(all.iter().map(|sealed| sealed.sequence).collect::<Vec<_>>(), [0, 0, 1], "each from 0");
    assert_eq!([all[0].previous, all[1].previous], [Chain::new().head(); 2], "each from zeros");
    store.append(record("two", "d").into()).await.expect("it keeps records");
    let more = store.records(&RecordFilter::default()).await.expect("it reads records");
    assert_eq!(more[2].hash, all[2].hash, "a sealed record is never changed");
    assert_eq!(Chain::verify(&more), Ok(()), "a chain continues");
    assert_eq!(calls(&store.records(&RecordFilter::run("one")).await.expect("it reads")), ["a", "c"], "of one run");
    let call = RecordFilter::call("two", CallId::new("b"));
    assert_eq!(calls(&store.records(&call).await.expect("it reads")), ["b"], "of one call");
    let page = RecordFilter { skip: 1, limit: Some(2), ..RecordFilter::default() };
    assert_eq!(calls(&store.records(&page).await.expect("it reads")), ["b", "c"], "a page");
}

pub(super) async fn records_are_filtered(store: &dyn Store) {
    for (run, call) in [("one", "a"), ("two", "a"), ("one", "b"), ("one", "a"), ("two", "c"), ("one", "c")] {
        store.append(record(run, call).into()).await.expect("it keeps records");
    }
    let (one, a) = (Some("one".into()), Some(CallId::new("a")));
    let cases = [
        (RecordFilter { call_id: a.clone(), ..RecordFilter::default() }, vec!["a", "a", "a"]),
        (RecordFilter { run_id: one.clone(), call_id: a.clone(), ..RecordFilter::default() }, vec!["a", "a"]),
        (RecordFilter { run_id: one.clone(), skip: 1, limit: Some(2), ..RecordFilter::default() }, vec!["b", "a"]),
        (RecordFilter { run_id: one, skip: 3, ..RecordFilter::default() }, vec!["c"]),
        (RecordFilter { call_id: a, skip: 2, limit: Some(9), ..RecordFilter::default() }, vec!["a"]),
        (RecordFilter { skip: 6, ..RecordFilter::default() }, vec![]),
        (RecordFilter { limit: Some(0), ..RecordFilter::default() }, vec![]),
        (RecordFilter::run("three"), vec![]),
    ];
    for (filter, expected) in cases {
        assert_eq!(calls(&store.records(&filter).await.expect("it reads")), expected, "{filter:?}");
    }
}

pub(super) async fn records_of_a_run_keep_their_order(store: &dyn Store) {
    let ids: Vec<_> = (0..100).map(|number| format!("{number:03}")).collect();
    for id in &ids {
        // Nobody waits for a record of a call that was dropped.
        drop(store.append(record("run", id).into()));
    }
    store.flush().await.expect("it flushes");
    let records = store.records(&RecordFilter::run("run")).await.expect("it reads");
    assert_eq!((calls(&records), Chain::verify(&records)), (ids.iter().map(String::as_str).collect(), Ok(())));
}
