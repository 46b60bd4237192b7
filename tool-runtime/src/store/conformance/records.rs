//! Records: chained by run, filtered and read in pages.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{CallId, Decider, Outcome, ToolInvocationRecord};
use crate::store::conformance::{at, record, waiting};
use crate::store::{AuditRecord, Chain, DecisionKind, DecisionRecord, RecordFilter, SealedRecord, Store};

pub(super) fn calls(records: &[SealedRecord]) -> Vec<&str> {
    records.iter().map(|sealed| sealed.record.call_id().as_str()).collect()
}

pub(super) async fn records_are_chained_by_run(store: Arc<dyn Store>) {
    let store = &*store;
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
}

pub(super) async fn records_are_read_in_pages(store: Arc<dyn Store>) {
    let store = &*store;
    for (run, call) in [("one", "a"), ("two", "b"), ("one", "c"), ("two", "d"), ("one", "e")] {
        store.append(record(run, call).into()).await.expect("it keeps records");
    }
    for (run, expected) in [(None, vec!["a", "b", "c", "d", "e"]), (Some("one"), vec!["a", "c", "e"])] {
        let paged = RecordFilter { run_id: run.map(Into::into), limit: Some(2), ..RecordFilter::default() };
        assert_eq!(calls(&all_pages(store, paged).await), expected, "every record is on one page");
    }
}

/// Returns the records of all pages. Only an empty page is the end.
async fn all_pages(store: &dyn Store, mut filter: RecordFilter) -> Vec<SealedRecord> {
    let mut all = Vec::new();
    loop {
        let page = store.records(&filter).await.expect("it reads");
        assert!(filter.limit.is_none_or(|limit| page.len() <= limit), "a page has no more records than its limit");
        let Some(last) = page.last() else { return all };
        filter.after = last.position;
        all.extend(page);
    }
}

fn mixed() -> [AuditRecord; 5] {
    let call = |run: &str, call: &str| record(run, call);
    let failed = ToolInvocationRecord {
        name: "core__divide".into(),
        outcome: Outcome::ExecutionError,
        ended_at: Some(at(2)),
        ..call("one", "b")
    };
    let decider = Decider::new("grace").because("No.");
    let denied = DecisionRecord::new(&waiting("one", "c", 9).call, DecisionKind::Denied, Some(&decider), at(3));
    let other = ToolInvocationRecord {
        principal: Some("a\0\\%_'".into()),
        tenant: Some("acme".into()),
        ended_at: Some(at(4)),
        ..call("two", "d")
    };
    let nobody = ToolInvocationRecord { principal: None, ended_at: None, started_at: at(5), ..call("two", "e") };
    [call("one", "a").into(), failed.into(), denied.into(), other.into(), nobody.into()]
}

pub(super) async fn records_are_found_by_their_members(store: Arc<dyn Store>) {
    let store = &*store;
    for record in mixed() {
        store.append(record).await.expect("it keeps records");
    }
    let all = RecordFilter::default;
    let after_a_moment = |second| at(second).saturating_add(Duration::from_nanos(1)).ok();
    let cases: Vec<(RecordFilter, &[&str])> = vec![
        (all(), &["a", "b", "c", "d", "e"]),
        (RecordFilter { decisions: Some(false), ..all() }, &["a", "b", "d", "e"]),
        (RecordFilter { decisions: Some(true), ..all() }, &["c"]),
        (RecordFilter { tool: Some("core__add".into()), ..all() }, &["a", "c", "d", "e"]),
        (RecordFilter { tool: Some("core__".into()), ..all() }, &[]),
        (RecordFilter { code: Some("execution_error".into()), ..all() }, &["b"]),
        (RecordFilter { code: Some("denied".into()), ..all() }, &["c"]),
        (RecordFilter { principal: Some("ada".into()), ..all() }, &["a", "b", "c"]),
        (RecordFilter { principal: Some("a\0\\%_'".into()), ..all() }, &["d"]),
        (RecordFilter { principal: Some("".into()), ..all() }, &[]),
        (RecordFilter { tenant: Some("acme".into()), ..all() }, &["d"]),
        (RecordFilter { decider: Some("grace".into()), ..all() }, &["c"]),
        (RecordFilter { decider: Some("ada".into()), ..all() }, &[]),
        (RecordFilter { since: Some(at(3)), ..all() }, &["c", "d", "e"]),
        (RecordFilter { since: after_a_moment(3), ..all() }, &["c", "d", "e"]),
        (RecordFilter { until: Some(at(3)), ..all() }, &["a", "b"]),
        (RecordFilter { until: after_a_moment(3), ..all() }, &["a", "b"]),
        (RecordFilter { since: Some(at(2)), until: Some(at(4)), ..all() }, &["b", "c"]),
        (
            RecordFilter { since: Some(Timestamp::MIN), until: Some(Timestamp::MAX), ..all() },
            &["a", "b", "c", "d", "e"],
        ),
        (RecordFilter { decisions: Some(false), ..RecordFilter::run("two") }, &["d", "e"]),
        (RecordFilter { decisions: Some(false), ..RecordFilter::call("one", CallId::new("c")) }, &[]),
        (RecordFilter { tool: Some("core__add".into()), limit: Some(2), ..all() }, &["a", "c", "d", "e"]),
    ];
    for (filter, expected) in cases {
        assert_eq!(calls(&all_pages(store, filter.clone()).await), expected, "{filter:?}");
    }
}

pub(super) async fn records_of_a_run_keep_their_order(store: Arc<dyn Store>) {
    let store = &*store;
    let ids: Vec<_> = (0..100).map(|number| format!("{number:03}")).collect();
    for id in &ids {
        // A dropped call drops its handle; its record must still be stored, in order.
        drop(store.append(record("run", id).into()));
    }
    store.flush().await.expect("it flushes");
    let records = store.records(&RecordFilter::run("run")).await.expect("it reads");
    assert_eq!((calls(&records), Chain::verify(&records)), (ids.iter().map(String::as_str).collect(), Ok(())));
}
