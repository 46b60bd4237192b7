//! Long conversations in PostgreSQL.

use std::sync::Arc;

use tests::long_runs;
use tests::postgres::Postgres;

use crate::open;

const COUNTED: &str = "SET search_path = long; CREATE TABLE written (bytes bigint); \
    CREATE FUNCTION part() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN INSERT INTO long.written VALUES (octet_length(NEW.body)); RETURN NEW; END $$; \
    CREATE FUNCTION document() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN INSERT INTO long.written VALUES (octet_length(NEW.body) + coalesce(octet_length(NEW.parts), 0)); \
        RETURN NEW; END $$; \
    CREATE TRIGGER part AFTER INSERT ON tool_runtime_parts FOR EACH ROW EXECUTE FUNCTION part(); \
    CREATE TRIGGER document AFTER INSERT OR UPDATE ON tool_runtime_documents FOR EACH ROW EXECUTE FUNCTION document()";

#[tokio::test(flavor = "multi_thread")]
async fn a_step_reads_and_writes_no_text_that_stays() {
    let server = Postgres::start();
    let store = Arc::new(open(&server.url("long")).await);
    let aside = |is_away| {
        server.sql(if is_away {
            "SET search_path = long; \
             CREATE TABLE aside AS SELECT * FROM tool_runtime_parts WHERE hash NOT LIKE '+%'; \
             DELETE FROM tool_runtime_parts WHERE hash NOT LIKE '+%'"
        } else {
            "INSERT INTO long.tool_runtime_parts SELECT * FROM long.aside ON CONFLICT DO NOTHING"
        });
    };
    long_runs::continues_without_its_text(Arc::clone(&store) as _, aside).await;

    server.sql(COUNTED);
    let counts = || {
        let sql = "WITH gone AS (DELETE FROM long.written RETURNING bytes) SELECT sum(bytes) FROM gone";
        server.sql(sql).parse().expect("a sum")
    };
    long_runs::steps_write_what_is_new(store, counts).await;

    let guide = include_str!("../../../docs/src/database.md");
    let query = guide.split("```sql").find(|query| query.contains("WITH RECURSIVE")).unwrap();
    let query = query.split("```").next().unwrap().replace("order-17", "run 5000");
    let joined = server.sql(&format!("SET search_path = long; {query}"));
    assert!(joined == long_runs::conversation(5001), "the guide's query joins the parts");
}
