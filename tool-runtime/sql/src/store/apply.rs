//! Applies one write inside an open transaction: runs the change on the documents that it read, and collects the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use tool_runtime::call::Decider;
use tool_runtime::store::{AuditRecord, Chain, ChangeFn, Key, SealedRecord, StoreError, StoredDocument, Transaction};

use crate::store::connection::{Connection, Value};
use crate::store::parts::Stored;
use crate::store::rows::Rows;
use crate::store::seen::{Needs, Seen, after};
use crate::store::text::{clipped, columns, escaped, micros, micros_from};

/// The write to execute.
pub(super) enum Work {
    /// Appends a record.
    Append(Box<AuditRecord>),
    /// Runs a change on these documents.
    Update(Vec<Key>, ChangeFn),
}

impl Work {
    /// Returns the names of the locks to take.
    pub(super) fn locks(&self) -> BTreeSet<String> {
        match self {
            Self::Append(record) => BTreeSet::from([Key::run(Arc::clone(record.run_id())).lock()]),
            Self::Update(keys, _) => keys.iter().map(Key::lock).collect(),
        }
    }
}

/// Why a write was not executed.
pub(super) enum Failed {
    /// The change returned an error, and the transaction can continue without it.
    Refused(StoreError),
    /// The change closes runs, erases records, or appends to a chain whose end was not read, and needs a transaction of
    /// its own. A shared transaction can continue without it.
    Apart,
    /// The database failed, and the transaction is void.
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// The rows that a write put into the database. If the commit is not acknowledged, they show whether it happened.
#[derive(Default)]
pub(super) struct WrittenRows {
    /// Whether the write made a document due.
    pub(super) wakes: bool,
    documents: Vec<(Key, Option<Stored>)>,
    /// Whether the write removed or erased existing records.
    changes: bool,
    /// The last record: its run, its sequence number and its hash.
    record: Option<(String, i64, String)>,
}

impl WrittenRows {
    /// Adds a later write of the same transaction.
    pub(super) fn then(&mut self, later: Self) {
        self.wakes |= later.wakes;
        self.changes |= later.changes;
        self.documents.retain(|(key, _)| later.documents.iter().all(|(again, _)| again != key));
        self.documents.extend(later.documents);
        self.record = later.record.or_else(|| self.record.take());
    }

    /// Whether the write changed no row.
    pub(super) const fn is_nothing(&self) -> bool {
        self.documents.is_empty() && self.record.is_none() && !self.changes
    }

    /// Whether the database has the write. A single write checks this under its locks; `write::kept` checks it without
    /// them. A record proves that the database has the write; without a record, equal documents show that no second
    /// write is needed.
    pub(super) async fn is_kept(&self, connection: &mut Connection) -> Result<bool, sqlx::Error> {
        if let Some((run, sequence, hash)) = &self.record {
            let sql = "SELECT sequence FROM tool_runtime_records WHERE run_id = $1 AND sequence = $2 AND hash = $3";
            let arguments = [run.as_str().into(), (*sequence).into(), hash.as_str().into()];
            return Ok(!connection.rows::<(i64,)>(sql, arguments).await?.is_empty());
        }
        if self.changes {
            // Without a record, the database does not show whether the change was committed. The change can run again,
            // because it checks its own condition.
            return Ok(false);
        }
        let mut needs = Needs::default();
        needs.documents(self.documents.iter().map(|(key, _)| key.clone()));
        let seen = match Seen::read(connection, needs).await {
            Ok(seen) => seen,
            Err(Failed::Database(error)) => return Err(error),
            Err(_) => return Ok(false),
        };
        Ok(self.documents.iter().all(|(key, written)| seen.found.stored(key) == written.as_ref()))
    }
}

/// Executes a write in a transaction that holds its locks.
pub(super) async fn apply(connection: &mut Connection, work: &mut Work, now: Timestamp) -> Result<WrittenRows, Failed> {
    let (mut needs, mut rows) = (Needs::default(), Rows::default());
    needs.add(work);
    let seen = Seen::read(connection, needs).await?;
    let written = change(Some(&mut *connection), work, &seen, now, &mut rows).await?;
    rows.write(connection).await?;
    Ok(written)
}

/// Runs a write on the rows that its transaction read, and adds the rows to write. Group commit passes no connection; a
/// change that needs further statements then fails with [`Failed::Apart`].
pub(super) async fn change(
    connection: Option<&mut Connection>,
    work: &mut Work,
    seen: &Seen,
    now: Timestamp,
    rows: &mut Rows,
) -> Result<WrittenRows, Failed> {
    let mut written = WrittenRows::default();
    let (keys, change) = match work {
        Work::Append(record) => {
            let mark = seen.mark(record.run_id()).map_err(Failed::Refused)?;
            let mut transaction = Transaction::new(now, [mark]);
            transaction.append((**record).clone()).map_err(Failed::Refused)?;
            append(connection, &seen.chains, BTreeMap::new(), transaction.into_writes().3, &mut written, rows).await?;
            return Ok(written);
        }
        Work::Update(keys, change) => (keys, change),
    };
    let documents: Result<Vec<_>, _> = keys.iter().map(|key| seen.found.document(key)).collect();
    let documents = documents.map_err(Failed::Refused)?;
    let transaction = Transaction::new(now, keys.iter().cloned().zip(documents));
    let transaction = transaction.run(change).map_err(Failed::Refused)?;
    written.wakes = transaction.wakes();
    let (documents, closed, erased, records) = transaction.into_writes();
    for (key, document) in documents {
        let stored = set(&key, document.as_ref(), seen.found.stored(&key), rows)?;
        // Compare only the documents of the locked keys later. Another process could change any other document before
        // the comparison.
        if keys.contains(&key) {
            written.documents.push((key, stored));
        }
    }
    let mut chains = BTreeMap::new();
    written.changes = closed.iter().any(|(_, end)| end.is_some()) || !erased.is_empty();
    let mut connection = connection;
    if !(closed.is_empty() && erased.is_empty()) {
        let connection = connection.as_deref_mut().ok_or(Failed::Apart)?;
        std::mem::take(rows).write(connection).await?;
        for (run_id, end) in closed {
            let run = clipped(&run_id);
            close(connection, &run, end).await?;
            if let Some(end) = end {
                chains.insert(run, end);
            }
        }
        for sealed in &erased {
            erase(connection, sealed).await?;
        }
    }
    append(connection, &seen.chains, chains, records, &mut written, rows).await?;
    Ok(written)
}

/// The kinds of the documents of a run that are removed when the run is closed.
const OF_RUN: &str = "('call', 'waiting', 'decided', 'post', 'notice')";

/// Closes a run: removes its documents of the kinds [`OF_RUN`]. With `end`, also removes its records. Refuses this if a
/// call of the run is open, or if the chain of its records does not end at `end`.
async fn close(connection: &mut Connection, run: &str, end: Option<Chain>) -> Result<(), Failed> {
    let open = "SELECT number FROM tool_runtime_documents \
                WHERE space IN ('call', 'waiting') AND scope = $1 AND due IS NOT NULL LIMIT 1";
    if !connection.rows::<(i64,)>(open, [run.into()]).await?.is_empty() {
        return Err(Failed::Refused(StoreError::Fenced));
    }
    let sql = format!("DELETE FROM tool_runtime_documents WHERE space IN {OF_RUN} AND scope = $1");
    connection.execute(sql, [run.into()]).await?;
    let Some(end) = end else { return Ok(()) };
    if head(connection, run).await? != end {
        return Err(Failed::Refused(StoreError::Fenced));
    }
    connection.execute("DELETE FROM tool_runtime_records WHERE run_id = $1", [run.into()]).await?;
    Ok(())
}

/// Replaces the contents of a record. Refuses this if the record does not exist.
async fn erase(connection: &mut Connection, sealed: &SealedRecord) -> Result<(), Failed> {
    let record = &sealed.record;
    let sequence =
        i64::try_from(sealed.sequence).map_err(|error| Failed::Refused(StoreError::Corrupt(Box::new(error))))?;
    let place = [clipped(record.run_id()).into(), sequence.into(), sealed.hash.to_string().into()];
    let there = "SELECT number FROM tool_runtime_records WHERE run_id = $1 AND sequence = $2 AND hash = $3";
    if connection.rows::<(i64,)>(there, place.clone()).await?.is_empty() {
        return Err(Failed::Refused(StoreError::Fenced));
    }
    let sql = "UPDATE tool_runtime_records SET call_id = $4, kind = $5, tool = $6, outcome = $7, principal = $8, \
               tenant = $9, decider = $10, at = $11, body = $12 WHERE run_id = $1 AND sequence = $2 AND hash = $3";
    let columns = filed(record).map(Value::Text).into_iter().skip(1);
    let others = [micros(record.at()).into(), text(record)?.into()];
    connection.execute(sql, place.into_iter().chain(columns).chain(others)).await?;
    Ok(())
}

/// The maximum number of documents that one statement reads, because databases limit the number of arguments.
pub(super) const MOST_KEYS: usize = 100;

fn text<T: serde::Serialize>(value: &T) -> Result<String, Failed> {
    serde_json::to_string(value).map_err(|error| Failed::Refused(StoreError::Corrupt(Box::new(error))))
}

/// Writes or removes a document. Returns its new row; `None` if it was removed. `old` is the previous row.
fn set(
    key: &Key,
    document: Option<&StoredDocument>,
    old: Option<&Stored>,
    rows: &mut Rows,
) -> Result<Option<Stored>, Failed> {
    let (scope, id, name) = columns(key);
    let kind = key.kind().code();
    let split = document.map(StoredDocument::split).transpose().map_err(Failed::Refused)?;
    let parts = if document.is_some_and(StoredDocument::keeps_text) {
        let missing = || Failed::Refused(StoreError::Corrupt("the text that a change keeps is missing".into()));
        Some(old.and_then(|old| old.parts.clone()).ok_or_else(missing)?)
    } else {
        rows.text(&scope, old, split.as_ref().and_then(|(_, text)| text.as_deref()))
    };
    let place = [kind.to_owned(), scope, id];
    let (Some(document), Some((json, _))) = (document, &split) else {
        rows.document(place, None);
        return Ok(None);
    };
    let due = Value::Int(document.due().map(micros_from));
    let [lane, leased_until] = queued(document);
    let stored = Stored { body: json.clone(), parts };
    let (body, parts) = (stored.body.as_str().into(), Value::Text(stored.parts.clone()));
    rows.document(place, Some([Value::Text(name), due, body, parts, lane, leased_until]));
    Ok(Some(stored))
}

/// Returns the columns that workers use to find and count runs: the lane, and the end of the lease.
pub(super) fn queued(document: &StoredDocument) -> [Value; 2] {
    let lane = document.lane().map(|lane| lane.to_string());
    [Value::Text(lane), Value::Int(document.leased_until().map(micros_from))]
}

/// Appends records, each to the chain of its run. `seen` has the ends of the chains that were read, and `chains` the
/// ends of the chains whose records were removed.
async fn append(
    mut connection: Option<&mut Connection>,
    seen: &BTreeMap<String, Chain>,
    mut chains: BTreeMap<String, Chain>,
    records: Vec<AuditRecord>,
    written: &mut WrittenRows,
    rows: &mut Rows,
) -> Result<(), Failed> {
    for record in records {
        let run = clipped(record.run_id());
        let mut chain = match (chains.get(&run).or_else(|| seen.get(&run)), &mut connection) {
            (Some(chain), _) => *chain,
            (None, Some(connection)) => head(connection, &run).await?,
            (None, None) => return Err(Failed::Apart),
        };
        let sealed = chain.seal(record).map_err(Failed::Refused)?;
        let sequence = insert(&sealed, rows)?;
        written.record = Some((run.clone(), sequence, sealed.hash.to_string()));
        chains.insert(run, chain);
    }
    Ok(())
}

/// Reads the end of a run's chain.
async fn head(connection: &mut Connection, run: &str) -> Result<Chain, Failed> {
    let sql = "SELECT sequence, hash FROM tool_runtime_records WHERE run_id = $1 ORDER BY sequence DESC LIMIT 1";
    let last = connection.rows::<(i64, String)>(sql, [run.into()]).await?;
    last.first().map_or(Ok(Chain::new()), |(sequence, hash)| after(*sequence, hash))
}

/// Returns the columns by which filters find a record: run, call, kind, tool, outcome or decision, principal, tenant,
/// decider.
pub(super) fn filed(record: &AuditRecord) -> [Option<String>; 8] {
    let decider = record.as_decision().and_then(|decision| decision.decider.as_ref()).map(Decider::principal);
    [
        Some(clipped(record.run_id())),
        Some(clipped(record.call_id().as_str())),
        Some(record.kind().to_owned()),
        Some(escaped(record.tool())),
        Some(record.code().to_owned()),
        record.principal().map(|principal| escaped(principal)),
        record.tenant().map(|tenant| escaped(tenant)),
        decider.map(escaped),
    ]
}

fn insert(sealed: &SealedRecord, rows: &mut Rows) -> Result<i64, Failed> {
    let sequence =
        i64::try_from(sealed.sequence).map_err(|error| Failed::Refused(StoreError::Corrupt(Box::new(error))))?;
    let [run, call, kind, tool, outcome, principal, tenant, decider] = filed(&sealed.record).map(Value::Text);
    let (at, body) = (micros(sealed.record.at()).into(), text(&sealed.record)?.into());
    let (previous, hash) = (sealed.previous.to_string().into(), sealed.hash.to_string().into());
    rows.record([
        run,
        call,
        kind,
        tool,
        outcome,
        principal,
        tenant,
        decider,
        sequence.into(),
        at,
        previous,
        hash,
        body,
    ]);
    Ok(sequence)
}
