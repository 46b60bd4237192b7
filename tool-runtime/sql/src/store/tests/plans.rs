//! SQLite's query plans: each query uses the right index, and none scans a table.

use jiff::Timestamp;
use tool_runtime::call::CallId;
use tool_runtime::store::{DocumentKind, Key, Query, RecordFilter};

use crate::store::connection::Value;
use crate::store::tests::new;
use crate::store::{SqlStore, statement};

/// Returns SQLite's query plan.
async fn plan(store: &SqlStore, (sql, arguments): (String, Vec<Value>)) -> Vec<String> {
    let mut connection = store.0.database.connection().await.unwrap();
    let sql = format!("EXPLAIN QUERY PLAN {sql}");
    let rows = connection.rows::<(i64, i64, i64, String)>(sql, arguments).await.unwrap();
    rows.into_iter().map(|(_, _, _, detail)| detail).collect()
}

#[tokio::test]
async fn no_query_walks_through_a_table() {
    let (_folder, store) = new().await;
    let (run, time) = (Some("run".into()), Some(Timestamp::UNIX_EPOCH));
    let keys = [Key::run("run"), Key::post("run", "a"), Key::last_anchor()];
    let all = || Query::new(DocumentKind::Post);
    let by_key = "USING INDEX sqlite_autoindex_tool_runtime_documents_1 (space=? AND scope=? AND id=?)";
    let of_scope = "USING INDEX sqlite_autoindex_tool_runtime_documents_1 (space=? AND scope=?)";
    let cases = [
        (statement::select(&keys[..1]), by_key),
        (statement::select(&keys), by_key),
        (statement::select(&keys[..1]), "USING INDEX sqlite_autoindex_tool_runtime_parts_1 (scope=?)"),
        (
            statement::pieces(&["+a", "+b"].map(|name| ["run", name].map(str::to_owned))),
            "USING INDEX sqlite_autoindex_tool_runtime_parts_1 (scope=? AND hash=?)",
        ),
        (
            statement::listing(&Query { due: time, ..Query::new(DocumentKind::Run) }),
            "USING INDEX tool_runtime_documents_due (space=? AND due<?)",
        ),
        (
            statement::listing(&Query { due: time, ..Query::new(DocumentKind::Run) }),
            "USING INDEX sqlite_autoindex_tool_runtime_parts_1 (scope=?)",
        ),
        (statement::listing(&all()), "USING INDEX tool_runtime_documents_number (space=? AND number>?)"),
        (statement::listing(&Query { scope: run.clone(), ..all() }), of_scope),
        (statement::listing(&Query { scope: run.clone(), due: time, ..all() }), of_scope),
        (
            statement::listing(&Query { due: time, ..all() }),
            "USING INDEX tool_runtime_documents_due (space=? AND due<?)",
        ),
        (
            statement::due_runs(Timestamp::UNIX_EPOCH, None, 16),
            "USING INDEX tool_runtime_documents_due (space=? AND due<?)",
        ),
        (
            statement::due_runs(Timestamp::UNIX_EPOCH, Some("lane"), 16),
            "USING INDEX tool_runtime_documents_lane (space=? AND lane=? AND due<?)",
        ),
        (statement::lanes("lane", 16), "USING COVERING INDEX tool_runtime_documents_lane (space=? AND lane>?)"),
        (statement::lanes("lane", 16), "INDEX tool_runtime_documents_lane (space=? AND lane=?"),
        (statement::lanes("lane", 16), "USING INTEGER PRIMARY KEY (rowid=?)"),
        (
            statement::depth(Timestamp::UNIX_EPOCH, None),
            "USING COVERING INDEX tool_runtime_documents_lane (space=? AND lane>?)",
        ),
        (
            statement::depth(Timestamp::UNIX_EPOCH, Some("tenant")),
            "USING COVERING INDEX tool_runtime_documents_lane (space=? AND lane>? AND lane<?)",
        ),
        (statement::recorded(&RecordFilter::run("run"), false), "(run_id=?)"),
        (statement::recorded(&RecordFilter::call("run", CallId::new("a")), false), "(call_id=? AND rowid>?)"),
        (statement::recorded(&RecordFilter::default(), false), "USING INTEGER PRIMARY KEY (rowid>?)"),
        (
            statement::recorded(&RecordFilter { since: time, ..RecordFilter::default() }, true),
            "USING COVERING INDEX tool_runtime_records_at (at>?)",
        ),
        (
            statement::count_by_time(&RecordFilter { since: time, until: time, ..RecordFilter::default() }).unwrap(),
            "USING COVERING INDEX tool_runtime_records_at (at>? AND at<?)",
        ),
    ];
    for (statement, index) in cases {
        let sql = statement.0.clone();
        let plan = plan(&store, statement).await;
        assert!(plan.iter().any(|step| step.contains(index)), "{sql}\n{plan:#?}");
        assert!(
            !plan.iter().any(|step| step.starts_with("SCAN tool_runtime_parts")
                || step.starts_with("SCAN tool_runtime_documents")
                || step.starts_with("SCAN tool_runtime_records")),
            "{sql}"
        );
    }
}
