//! Reads documents and records. A read is repeated after a transient failure, for example a broken connection.

use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use tool_runtime::store::{
    Clock, DocumentKind, DueRun, Finding, Key, Query, QueueDepth, RecordFilter, SealedRecord, StoreError,
    StoredDocument,
};

use crate::store::apply::{MOST_KEYS, filed};
use crate::store::connection::{Row, Value};
use crate::store::failure::{failed, is_transient};
use crate::store::parts::{Found, SPACE, Stored};
use crate::store::shared::Shared;
use crate::store::statement;
use crate::store::text::{key, micros};
use crate::store::write::PAUSE;

/// The maximum number of bytes in a page of records, apart from its last record.
const PAGE_BYTES: usize = 8 << 20;

async fn rows<T: Row>(shared: &Shared, sql: String, arguments: Vec<Value>) -> Result<Vec<T>, StoreError> {
    page(shared, sql, arguments, (usize::MAX, |_| 0)).await
}

/// Reads a page. Repeats the read after a transient failure, for up to the store's patience.
async fn page<T: Row>(
    shared: &Shared,
    sql: String,
    arguments: Vec<Value>,
    (most, bytes): (usize, fn(&T) -> usize),
) -> Result<Vec<T>, StoreError> {
    let end = Instant::now() + shared.patience;
    loop {
        let tried = match shared.database.connection().await {
            Ok(mut connection) => match connection.page(sql.clone(), arguments.clone(), (most, bytes)).await {
                Ok((rows, false)) => return Ok(rows),
                Ok((rows, true)) => {
                    // Otherwise the server would continue to send the remaining rows.
                    connection.discard();
                    return Ok(rows);
                }
                Err(error) => {
                    connection.discard();
                    error
                }
            },
            Err(error) => error,
        };
        if !is_transient(&tried) || Instant::now() >= end {
            return Err(failed(tried));
        }
        sleep(PAUSE).await;
    }
}

pub(super) async fn documents(shared: &Shared, keys: &[Key]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
    let mut found = Found::default();
    for keys in keys.chunks(MOST_KEYS) {
        let (sql, arguments) = statement::select(keys);
        found.extend(rows(shared, sql, arguments).await?);
    }
    keys.iter().map(|key| found.document(key)).collect()
}

type Text = Option<String>;

/// A row: number, scope, id, name, body and parts. The row of a part has the number 0, and its id is its hash.
type Item = (i64, String, String, Text, String, Text);

pub(super) async fn list(shared: &Shared, query: &Query) -> Result<Vec<StoredDocument>, StoreError> {
    let (sql, arguments) = statement::listing(query);
    let (parts, mut listed): (Vec<Item>, Vec<Item>) =
        rows::<Item>(shared, sql, arguments).await?.into_iter().partition(|item| item.0 == 0);
    let mut found = Found::default();
    found.extend(parts.into_iter().map(|(_, scope, hash, _, body, _)| (SPACE.to_owned(), scope, hash, body, None)));
    listed.sort_by_key(|item| item.0);
    let read = |(number, scope, id, name, body, parts): Item| {
        let position = u64::try_from(number).map_err(|error| StoreError::Corrupt(Box::new(error)))?;
        let Ok(key) = key(query.kind, &scope, &id, name.as_deref()) else {
            let columns = Key::from_parts(query.kind, scope, id);
            return Err(Finding::unreadable_document(&columns, Some(position)).into());
        };
        match found.whole(key.clone(), &Stored { body, parts }, &scope) {
            Ok(document) => Ok(document.at(position)),
            // The error has the position, so that a search can continue after the document.
            Err(StoreError::Corrupt(_) | StoreError::Newer { .. }) => {
                Err(Finding::unreadable_document(&key, Some(position)).into())
            }
            Err(error) => Err(error),
        }
    };
    listed.into_iter().map(read).collect()
}

/// A row of a due run: scope, id, name, lane and the time from which it is due.
type Due = (String, String, Text, Text, i64);

fn due_run((scope, id, name, lane, due): Due) -> Result<DueRun, StoreError> {
    let key = key(DocumentKind::Run, &scope, &id, name.as_deref())?;
    // A document that could not be read when the database was migrated has no lane.
    let (run_id, lane) = (key.scope().clone(), lane.unwrap_or_default().into());
    Ok(DueRun { run_id, lane, due: moment(due)? })
}

pub(super) async fn due_runs(
    shared: &Shared,
    now: Timestamp,
    lane: Option<&str>,
    limit: usize,
) -> Result<Vec<DueRun>, StoreError> {
    let (sql, arguments) = statement::due_runs(now, lane, limit);
    rows::<Due>(shared, sql, arguments).await?.into_iter().map(due_run).collect()
}

pub(super) async fn lanes(shared: &Shared, after: &str, limit: usize) -> Result<Vec<DueRun>, StoreError> {
    let (sql, arguments) = statement::lanes(after, limit);
    rows::<Due>(shared, sql, arguments).await?.into_iter().map(due_run).collect()
}

pub(super) async fn depth(shared: &Shared, now: Timestamp, tenant: Option<&str>) -> Result<QueueDepth, StoreError> {
    let (sql, arguments) = statement::depth(now, tenant);
    let counted = rows::<(i64, Option<i64>, i64, i64)>(shared, sql, arguments).await?;
    let Some(&(due, first, leased, all)) = counted.first() else { return Ok(QueueDepth::default()) };
    let first = first.map(moment).transpose()?.filter(|first| *first <= now);
    let count = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(QueueDepth {
        due: count(due),
        oldest: first.map(|first| now.duration_since(first).unsigned_abs()),
        leased: count(leased),
        waiting: count(all - due - leased),
    })
}

fn moment(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros).map_err(|error| StoreError::Corrupt(Box::new(error)))
}

type RecordRow = (i64, i64, String, String, String, String, String, String, String, Text, Text, Text, i64, String);

/// The row of a record. An unreadable row becomes an error in its place, so that it does not fail its whole page.
enum Record {
    Whole(Box<RecordRow>),
    Unreadable { number: i64, sequence: Option<i64>, run: Option<String> },
}

impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for Record
where
    RecordRow: sqlx::FromRow<'r, R>,
    usize: sqlx::ColumnIndex<R>,
    i64: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
    String: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        RecordRow::from_row(row).map(|kept| Self::Whole(Box::new(kept))).or_else(|_| {
            Ok(Self::Unreadable { number: row.try_get(0)?, sequence: row.try_get(1).ok(), run: row.try_get(4).ok() })
        })
    }
}

/// Reads a record. Compares it with the columns of its row, which filters use, and refuses unknown members in its text,
/// which the hash chain would not cover.
fn sealed(record: Record) -> Result<SealedRecord, StoreError> {
    let kept = match record {
        Record::Whole(kept) => kept,
        Record::Unreadable { number, sequence, run } => {
            let run = run.unwrap_or_else(|| format!("(of row {number})"));
            let place = sequence.and_then(|place| u64::try_from(place).ok()).unwrap_or_default();
            return Err(Finding::unreadable(&run, place, u64::try_from(number).ok()).into());
        }
    };
    let (number, sequence, previous, hash, run, call, kind, tool, code, principal, tenant, decider, at, body) = *kept;
    let (Ok(place), Ok(position)) = (u64::try_from(sequence), u64::try_from(number)) else {
        let place = u64::try_from(sequence).unwrap_or_default();
        return Err(Finding::unreadable(&run, place, u64::try_from(number).ok()).into());
    };
    let read = SealedRecord::from_json(&run, (place, position), (&previous, &hash), &body)?;
    let texts = [Some(run), Some(call), Some(kind), Some(tool), Some(code), principal, tenant, decider];
    if filed(&read.record) != texts || micros(read.record.at()) != at {
        let run = texts[0].as_deref().unwrap_or_default();
        return Err(Finding::misfiled(run, place, Some(position)).into());
    }
    Ok(read)
}

pub(super) async fn records(shared: &Shared, filter: &RecordFilter) -> Result<Vec<SealedRecord>, StoreError> {
    let are_few = match statement::count_by_time(filter) {
        Some((sql, arguments)) => {
            let counted = rows::<(i64,)>(shared, sql, arguments).await?;
            counted.first().is_some_and(|(count,)| *count <= statement::FEW)
        }
        None => false,
    };
    let (sql, arguments) = statement::recorded(filter, are_few);
    // With a limit, the caller requests the next page; without one, this call must return all records.
    let most = if filter.limit.is_some() { PAGE_BYTES } else { usize::MAX };
    let bytes = |record: &Record| match record {
        Record::Whole(kept) => kept.13.len(),
        Record::Unreadable { .. } => 0,
    };
    page::<Record>(shared, sql, arguments, (most, bytes)).await?.into_iter().map(sealed).collect()
}

/// Returns the time that transactions use: the server's, or the machine's for a file.
pub(super) async fn now(shared: &Shared) -> Result<Timestamp, StoreError> {
    if shared.database.is_sqlite() {
        return Ok(shared.clock.at_least(<dyn Clock>::system().now()));
    }
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint".to_owned();
    let micros = rows::<(i64,)>(shared, sql, Vec::new()).await?.first().map_or(0, |(micros,)| *micros);
    Ok(shared.clock.at_least(moment(micros)?))
}
