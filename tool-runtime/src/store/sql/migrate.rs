//! The tables, by version. A database says which version it has; a newer one than this library knows is refused.

use crate::store::StoreError;
use crate::store::sql::connection::{Connection, Database};
use crate::store::sql::failure::is_missing;
use crate::store::sql::write::number;

/// What makes each version out of the one before: for SQLite, and for PostgreSQL. One that was released never changes.
const MIGRATIONS: &[(&str, &str)] = &[
    (include_str!("migrations/1.sqlite.sql"), include_str!("migrations/1.postgres.sql")),
    (include_str!("migrations/2.sqlite.sql"), include_str!("migrations/2.postgres.sql")),
];

/// The version that this library reads and writes.
pub(super) const VERSION: i64 = 2;

const _: () = assert!(MIGRATIONS.len() == 2, "the version is how many migrations there are");

/// Brings a database to this library's version.
pub(super) async fn migrate(database: &Database) -> Result<(), StoreError> {
    let mut connection = database.connection().await?;
    // A database that needs nothing may be one that nobody can write to.
    let found = match version(&mut connection).await {
        Ok(found) => found,
        Err(error) if is_missing(&error) => 0,
        Err(error) => return Err(error.into()),
    };
    if found == VERSION {
        return Ok(());
    }
    let migrated = under_lock(&mut connection, database.is_sqlite()).await;
    if migrated.is_err() {
        connection.discard();
    }
    migrated
}

async fn version(connection: &mut Connection) -> Result<i64, sqlx::Error> {
    let rows = connection.rows::<(i64,)>("SELECT version FROM tool_runtime_schema", []).await?;
    Ok(rows.first().map_or(0, |(version,)| *version))
}

/// Of several processes that open a new database, one makes the tables.
async fn under_lock(connection: &mut Connection, is_sqlite: bool) -> Result<(), StoreError> {
    if is_sqlite {
        connection.run("BEGIN IMMEDIATE").await?;
    } else {
        connection.run(format!("BEGIN; SELECT pg_advisory_xact_lock({})", number("schema"))).await?;
    }
    connection.run("CREATE TABLE IF NOT EXISTS tool_runtime_schema (version BIGINT NOT NULL)").await?;
    let found = version(connection).await?;
    let known = usize::try_from(found).ok().filter(|found| *found <= MIGRATIONS.len());
    let Some(done) = known else { return Err(StoreError::Newer { found, known: VERSION }) };
    for (sqlite, postgres) in MIGRATIONS.iter().skip(done) {
        connection.run(if is_sqlite { *sqlite } else { *postgres }).await?;
    }
    connection.run("DELETE FROM tool_runtime_schema").await?;
    connection.execute("INSERT INTO tool_runtime_schema (version) VALUES ($1)", [VERSION.into()]).await?;
    connection.run("COMMIT").await?;
    Ok(())
}
