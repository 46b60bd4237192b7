//! Reading, and reading again when a connection broke.

use tokio::time::{Instant, sleep};

use crate::store::chain::{Broken, ChainError};
use crate::store::sql::Shared;
use crate::store::sql::apply::{Bodies, Body, MOST_KEYS, bodies, by_place, filed, parse};
use crate::store::sql::connection::{Row, Value};
use crate::store::sql::failure::is_transient;
use crate::store::sql::statement;
use crate::store::sql::text::{key, micros};
use crate::store::sql::write::PAUSE;
use crate::store::{AuditRecord, Document, Key, Listed, Query, RecordFilter, Sealed, StoreError};

/// Reads, again and again while the connection breaks.
async fn rows<T: Row>(shared: &Shared, sql: String, arguments: Vec<Value>) -> Result<Vec<T>, StoreError> {
    let end = Instant::now() + shared.patience;
    loop {
        let tried = match shared.database.connection().await {
            Ok(mut connection) => match connection.rows(sql.clone(), arguments.clone()).await {
                Ok(rows) => return Ok(rows),
                Err(error) => {
                    connection.discard();
                    error
                }
            },
            Err(error) => error,
        };
        if !is_transient(&tried) || Instant::now() >= end {
            return Err(tried.into());
        }
        sleep(PAUSE).await;
    }
}

pub(super) async fn documents(shared: &Shared, keys: &[Key]) -> Result<Vec<Option<Document>>, StoreError> {
    let mut found = Bodies::new();
    for keys in keys.chunks(MOST_KEYS) {
        let (sql, arguments) = statement::select(keys);
        found.extend(rows::<Body>(shared, sql, arguments).await?.into_iter().map(by_place));
    }
    bodies(keys, &found).into_iter().map(|body| body.map(parse).transpose()).collect()
}

type Found = (i64, String, String, Option<String>, String);

pub(super) async fn list(shared: &Shared, query: &Query) -> Result<Vec<Listed>, StoreError> {
    let (sql, arguments) = statement::listing(query);
    let read = |(number, scope, id, name, body): Found| {
        let position = u64::try_from(number).map_err(|error| StoreError::Corrupt(Box::new(error)))?;
        let key = key(query.space, &scope, &id, name.as_deref())?;
        Ok(Listed { position, key, document: parse(&body)? })
    };
    rows(shared, sql, arguments).await?.into_iter().map(read).collect()
}

type Text = Option<String>;
type Kept = (i64, i64, String, String, String, String, String, String, String, Text, Text, Text, i64, String);

/// Reads a record, and checks that it is what its row says: rows are found by their columns, and the chain covers the
/// record alone.
fn sealed(kept: Kept) -> Result<Sealed, StoreError> {
    let (number, sequence, previous, hash, run, call, kind, tool, code, principal, tenant, decider, at, body) = kept;
    let place = u64::try_from(sequence).unwrap_or_default();
    let wrong = |broken| StoreError::Corrupt(Box::new(ChainError::of(&run, place, broken)));
    let record: AuditRecord = serde_json::from_str(&body).map_err(|_| wrong(Broken::Unreadable))?;
    let hash_of = |text: &str| text.parse().map_err(|_| wrong(Broken::Unreadable));
    let count = |number: i64| u64::try_from(number).map_err(|_| wrong(Broken::Unreadable));
    let texts = [Some(run.clone()), Some(call), Some(kind), Some(tool), Some(code), principal, tenant, decider];
    if filed(&record) != texts || micros(record.at()) != at {
        return Err(wrong(Broken::Misfiled));
    }
    let (sequence, position) = (count(sequence)?, count(number)?);
    Ok(Sealed { sequence, previous: hash_of(&previous)?, hash: hash_of(&hash)?, position, record })
}

pub(super) async fn records(shared: &Shared, filter: &RecordFilter) -> Result<Vec<Sealed>, StoreError> {
    let are_few = match statement::count_by_time(filter) {
        Some((sql, arguments)) => {
            let counted = rows::<(i64,)>(shared, sql, arguments).await?;
            counted.first().is_some_and(|(count,)| *count <= statement::FEW)
        }
        None => false,
    };
    let (sql, arguments) = statement::recorded(filter, are_few);
    rows(shared, sql, arguments).await?.into_iter().map(sealed).collect()
}
