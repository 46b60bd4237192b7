//! Creates and migrates the tables. A database stores the version of its tables. A version newer than this library is
//! refused.

use tool_runtime::store::{DocumentKind, StoreError, StoredDocument};

use crate::store::apply::queued;
use crate::store::connection::{Connection, Database};
use crate::store::failure::failed;
use crate::store::problem::{misconfigured, unlike};
use crate::store::text::key;
use crate::store::write::number;

/// The version that this library reads and writes. Version 5 added legal holds, marks of purged runs and records in two
/// parts. Version 6 stores lists of the parts of long texts in pieces. A library that knows only version 4 would
/// misread both, so it has to refuse them.
pub(super) const VERSION: i64 = 6;

/// The first version whose tables can have another prefix.
const PREFIXED: i64 = 3;

/// The first version whose runs have lanes.
const LANED: i64 = 4;

/// The statements that create the tables of a new database: for SQLite, and for PostgreSQL.
const TABLES: [&str; 2] =
    [include_str!("migrations/tables.sqlite.sql"), include_str!("migrations/tables.postgres.sql")];

/// The migration from versions 1 and 2, whose tables have no prefix, to version 3. No release wrote versions 1 and 2. A
/// released migration never changes.
const RENAMED: [&str; 2] =
    [include_str!("migrations/renamed.sqlite.sql"), include_str!("migrations/renamed.postgres.sql")];

/// The migration from version 3 to version 4, which adds the lanes of runs.
const LANES: [&str; 2] = [include_str!("migrations/lanes.sqlite.sql"), include_str!("migrations/lanes.postgres.sql")];

/// How many runs the migration reads at a time.
const PAGE: i64 = 256;

/// The comments on the tables in PostgreSQL.
const COMMENTS: &str = include_str!("migrations/comments.postgres.sql");

/// The expected tables. They are checked each time a store is opened, in case the database has other tables of the same
/// names.
const SHAPE: [(&str, &str); 3] = [
    ("tool_runtime_documents", "number, space, scope, id, name, due, body, parts, lane, leased_until"),
    ("tool_runtime_parts", "scope, hash, body"),
    (
        "tool_runtime_records",
        "number, run_id, sequence, call_id, kind, tool, outcome, principal, tenant, decider, at, previous, hash, body",
    ),
];

/// Migrates a database to this library's version. Refuses a database that needs it if `may` is `false`.
pub(super) async fn migrate(database: &Database, may: bool) -> Result<(), StoreError> {
    let mut connection = database.connection().await.map_err(failed)?;
    let migrated = match version(database, &mut connection).await {
        // A current database may be read-only, so no lock is taken on it.
        Ok(Some(VERSION)) => Ok(()),
        Ok(_) if may => under_lock(database, &mut connection).await,
        Ok(found) => Err(StoreError::Older { found: found.unwrap_or(0), known: VERSION }),
        Err(error) => Err(error),
    };
    let checked = match migrated {
        Ok(()) => shape(&mut connection).await,
        Err(error) => Err(error),
    };
    if checked.is_err() {
        connection.discard();
    }
    checked
}

/// Returns the version of a database. `None` if it has no tables.
async fn version(database: &Database, connection: &mut Connection) -> Result<Option<i64>, StoreError> {
    // A statement on a missing table would abort the transaction.
    let exists = if database.is_sqlite() {
        "SELECT COUNT(*) FROM sqlite_master WHERE name = 'tool_runtime_schema'"
    } else {
        "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('tool_runtime_schema')"
    };
    if connection.last::<(i64,)>(exists).await.map_err(failed)?.0 == 0 {
        return Ok(None);
    }
    let table = database.prefix.name("tool_runtime_schema");
    let sql = "SELECT version FROM tool_runtime_schema ORDER BY version DESC LIMIT 2";
    let rows = connection.rows::<(i64,)>(sql, []).await.map_err(unlike)?;
    // A version newer than this library is reported even if there are other rows. Otherwise there must be exactly one
    // row.
    let oldest = if database.prefix.is_default() { 1 } else { PREFIXED };
    match rows.as_slice() {
        [(found,), ..] if *found > VERSION => Err(StoreError::Newer { found: *found, known: VERSION }),
        [(found,)] if *found >= oldest => Ok(Some(*found)),
        _ => Err(misconfigured(format!(
            "the table `{table}` does not hold one row with a version of this library: restore the database as a whole, \
             or choose another prefix (`SqlOptions::table_prefix`) if the table is another application's"
        ))),
    }
}

/// Creates or changes the tables under a lock, so that only one of several processes does it.
async fn under_lock(database: &Database, connection: &mut Connection) -> Result<(), StoreError> {
    let which = usize::from(!database.is_sqlite());
    if database.is_sqlite() {
        connection.run("BEGIN IMMEDIATE").await.map_err(failed)?;
    } else {
        connection.run(format!("BEGIN; SELECT pg_advisory_xact_lock({})", number("schema"))).await.map_err(failed)?;
    }
    match version(database, connection).await? {
        Some(VERSION) => return connection.run("ROLLBACK").await.map_err(failed),
        Some(found) => {
            if !database.is_sqlite() {
                // The schema of the table `tool_runtime_schema` is also that of the other tables, even if new tables
                // would be created elsewhere. A process that has read the version ends its transaction before the lock
                // is granted; one that reads it later sees the new version.
                connection
                    .run(
                        "SELECT set_config('search_path', quote_ident(nspname), true) FROM pg_class JOIN pg_namespace \
                         ON pg_namespace.oid = relnamespace WHERE pg_class.oid = to_regclass('tool_runtime_schema'); \
                         LOCK TABLE tool_runtime_schema IN ACCESS EXCLUSIVE MODE",
                    )
                    .await
                    .map_err(failed)?;
            }
            if found < PREFIXED {
                connection.run(RENAMED[which]).await.map_err(unlike)?;
            }
            if found < LANED {
                connection.run(LANES[which]).await.map_err(unlike)?;
                fill_lanes(connection).await?;
            }
        }
        None => connection.run(TABLES[which]).await.map_err(unlike)?,
    }
    connection.run(format!("UPDATE tool_runtime_schema SET version = {VERSION}")).await.map_err(unlike)?;
    if !database.is_sqlite() {
        connection.run(COMMENTS).await.map_err(failed)?;
    }
    connection.run("COMMIT").await.map_err(failed)
}

/// Writes the lanes of the runs that have a due time, in one statement for each page. The migration is not committed
/// yet, so no other process can write the documents or see the new columns. Other runs get their lane at their next
/// write.
async fn fill_lanes(connection: &mut Connection) -> Result<(), StoreError> {
    type Row = (i64, String, String, Option<String>, String);
    let sql = "SELECT number, scope, id, name, body FROM tool_runtime_documents \
               WHERE space = 'run' AND number > $1 AND due IS NOT NULL ORDER BY number LIMIT $2";
    let mut after = 0;
    loop {
        let rows = connection.rows::<Row>(sql, [after.into(), PAGE.into()]).await.map_err(failed)?;
        let Some((last, ..)) = rows.last() else { return Ok(()) };
        after = *last;
        let (mut places, mut arguments) = (Vec::new(), Vec::new());
        for (number, scope, id, name, body) in rows {
            let key = key(DocumentKind::Run, &scope, &id, name.as_deref());
            // A run that cannot be read stays unchanged. The worker that takes it reports the error.
            let Ok(run) = key.and_then(|key| StoredDocument::from_json(key, &body)) else { continue };
            // In older versions, a run of a workflow engine or a server had a due time. It is not in the queue.
            if run.due().is_none() {
                continue;
            }
            let [lane, leased_until] = queued(&run);
            let [first, second, third] = [1, 2, 3].map(|place| arguments.len() + place);
            places.push(format!("(${first}, ${second}, ${third})"));
            arguments.extend([number.into(), lane, leased_until]);
        }
        if !places.is_empty() {
            let sql = format!(
                "WITH filled (number, lane, leased_until) AS (VALUES {}) UPDATE tool_runtime_documents \
                 SET lane = filled.lane, leased_until = filled.leased_until FROM filled \
                 WHERE tool_runtime_documents.number = filled.number",
                places.join(", ")
            );
            connection.execute(sql, arguments).await.map_err(failed)?;
        }
    }
}

/// Refuses tables that have the names of this library's tables but other columns.
async fn shape(connection: &mut Connection) -> Result<(), StoreError> {
    for (table, columns) in SHAPE {
        connection.run(format!("SELECT {columns} FROM {table} LIMIT 0")).await.map_err(unlike)?;
    }
    Ok(())
}
