//! Reading, and reading again when a connection broke.

use tokio::time::{Instant, sleep};

use crate::store::chain::{Broken, ChainError};
use crate::store::sql::Shared;
use crate::store::sql::apply::{Bodies, Body, MOST_KEYS, bodies, by_place, filed, parse, select};
use crate::store::sql::connection::{Row, Value};
use crate::store::sql::failure::is_transient;
use crate::store::sql::text::{clipped, escaped, key, micros};
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
        let (sql, arguments) = select(keys);
        found.extend(rows::<Body>(shared, sql, arguments).await?.into_iter().map(by_place));
    }
    bodies(keys, &found).into_iter().map(|body| body.map(parse).transpose()).collect()
}

type Found = (i64, String, String, Option<String>, String);

pub(super) async fn list(shared: &Shared, query: &Query) -> Result<Vec<Listed>, StoreError> {
    let mut sql = Select::new("SELECT number, scope, id, name, body FROM documents WHERE space =", query.space.code());
    sql.and("number >", i64::try_from(query.after).unwrap_or(i64::MAX));
    if let Some(scope) = &query.scope {
        sql.and("scope =", clipped(scope));
    }
    if let Some(due) = query.due {
        sql.and("due <=", micros(due));
    }
    let (sql, arguments) = sql.page("number", query.limit);
    let read = |(number, scope, id, name, body): Found| {
        let position = u64::try_from(number).map_err(|error| StoreError::Corrupt(Box::new(error)))?;
        let key = key(query.space, &scope, &id, name.as_deref())?;
        Ok(Listed { position, key, document: parse(&body)? })
    };
    rows(shared, sql, arguments).await?.into_iter().map(read).collect()
}

const SELECTED: &str = "SELECT number, sequence, previous, hash, run_id, call_id, kind, tool, outcome, principal, tenant, \
                        decider, at, body FROM records WHERE number >";

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
    let after = i64::try_from(filter.after).unwrap_or(i64::MAX);
    let mut sql = Select::new(SELECTED, after);
    let texts = [
        ("run_id =", filter.run_id.as_deref().map(clipped)),
        ("call_id =", filter.call_id.as_ref().map(|id| clipped(id.as_str()))),
        ("kind =", filter.kind.map(|kind| kind.code().to_owned())),
        ("tool =", filter.tool.as_deref().map(escaped)),
        ("outcome =", filter.code.as_deref().map(escaped)),
        ("principal =", filter.principal.as_deref().map(escaped)),
        ("tenant =", filter.tenant.as_deref().map(escaped)),
        ("decider =", filter.decider.as_deref().map(escaped)),
    ];
    for (condition, value) in texts {
        if let Some(value) = value {
            sql.and(condition, value);
        }
    }
    for (condition, time) in [("at >=", filter.since), ("at <", filter.until)] {
        if let Some(time) = time {
            sql.and(condition, micros(time));
        }
    }
    // A run's own order is that of its chain; its index finds the page.
    let order = if filter.run_id.is_some() { "sequence" } else { "number" };
    let (sql, arguments) = sql.page(order, filter.limit.unwrap_or(usize::MAX));
    rows(shared, sql, arguments).await?.into_iter().map(sealed).collect()
}

/// A statement whose conditions are added one by one.
struct Select(String, Vec<Value>);

impl Select {
    fn new(start: &str, first: impl Into<Value>) -> Self {
        Self(format!("{start} $1"), vec![first.into()])
    }

    fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.1.push(value.into());
        for part in [" AND ", condition, " $", &self.1.len().to_string()] {
            self.0.push_str(part);
        }
    }

    fn page(mut self, order: &str, limit: usize) -> (String, Vec<Value>) {
        self.1.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        (format!("{} ORDER BY {order} LIMIT ${}", self.0, self.1.len()), self.1)
    }
}
