//! Long conversations in a file of SQLite.

use std::sync::Arc;

use tests::long_runs;
use tool_runtime_sql::{SqlOptions, SqlStore};

const COUNTED: &str = "CREATE TABLE written (bytes INTEGER); \
    CREATE TRIGGER a AFTER INSERT ON tool_runtime_parts BEGIN INSERT INTO written VALUES (length(NEW.body)); END; \
    CREATE TRIGGER b AFTER INSERT ON tool_runtime_documents BEGIN \
        INSERT INTO written VALUES (length(NEW.body) + coalesce(length(NEW.parts), 0)); END; \
    CREATE TRIGGER c AFTER UPDATE ON tool_runtime_documents BEGIN \
        INSERT INTO written VALUES (length(NEW.body) + coalesce(length(NEW.parts), 0)); END";

#[tokio::test]
async fn a_step_reads_and_writes_no_text_that_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("it opens"));
    let database = rusqlite::Connection::open(&path).expect("it opens");
    let aside = |is_away| {
        database
            .execute_batch(if is_away {
                "CREATE TABLE aside AS SELECT * FROM tool_runtime_parts WHERE hash NOT LIKE '+%'; \
                 DELETE FROM tool_runtime_parts WHERE hash NOT LIKE '+%'"
            } else {
                "INSERT OR IGNORE INTO tool_runtime_parts SELECT * FROM aside"
            })
            .expect("it runs");
    };
    long_runs::continues_without_its_text(Arc::clone(&store) as _, aside).await;

    database.execute_batch(COUNTED).expect("it counts");
    let counts = || {
        let bytes = database.query_row("SELECT sum(bytes) FROM written", [], |row| row.get(0)).expect("a sum");
        database.execute_batch("DELETE FROM written").expect("it counts again");
        bytes
    };
    long_runs::steps_write_what_is_new(store, counts).await;
}
