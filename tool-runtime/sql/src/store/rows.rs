//! [`Rows`]: the rows that a transaction writes and removes, and the statements for them.
//!
//! PostgreSQL makes all changes in one statement. Each argument is the array of a column, so the statement's text
//! depends only on the tables that change. SQLite has no arrays and no round trips, so each table has its statements.

use std::collections::{BTreeMap, BTreeSet};
#[cfg(feature = "postgres")]
use std::fmt::Write as _;

#[cfg(feature = "postgres")]
use crate::store::connection::Array;
use crate::store::connection::{Connection, Value};
use crate::store::parts::{Change as TextChange, Stored};
use crate::store::statement;

/// The rows to write and to remove, by their keys. If a document is written several times, the last write replaces the
/// others.
#[derive(Default)]
pub(super) struct Rows {
    documents: BTreeMap<[String; 3], Option<[Value; 6]>>,
    /// The changes of long texts, by their scopes. `write` compares them with the old texts to find the parts to write.
    texts: BTreeMap<String, TextChange>,
    /// The scopes whose long text is removed.
    textless: BTreeSet<String>,
    records: Vec<[Value; 13]>,
}

/// The maximum number of rows in one statement of SQLite, because SQLite limits the number of arguments.
const MOST_ROWS: usize = 100;

/// Rows to insert or to remove, of one table.
struct Change {
    table: &'static str,
    /// The columns of the rows; for rows to remove, only the columns of the key.
    columns: &'static str,
    /// The indices of the columns with numbers.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "the types of arrays"))]
    numbers: &'static [usize],
    /// The end of the `INSERT` statement; `None` for rows to remove.
    insert: Option<&'static str>,
}

const DOCUMENTS: Change = Change {
    table: "tool_runtime_documents",
    columns: "space, scope, id, name, due, body, parts, lane, leased_until",
    numbers: &[4, 8],
    insert: Some(
        " ON CONFLICT (space, scope, id) DO UPDATE SET due = excluded.due, body = excluded.body, \
         parts = excluded.parts, lane = excluded.lane, leased_until = excluded.leased_until",
    ),
};

const REMOVED: Change =
    Change { table: "tool_runtime_documents", columns: "space, scope, id", numbers: &[], insert: None };

const PARTS: Change = Change {
    table: "tool_runtime_parts",
    columns: "scope, hash, body",
    numbers: &[],
    insert: Some(" ON CONFLICT (scope, hash) DO NOTHING"),
};

const DROPPED: Change = Change { table: "tool_runtime_parts", columns: "scope, hash", numbers: &[], insert: None };

/// Removes all parts of a scope, so that no part stays if the list of parts is damaged.
const TEXTLESS: Change = Change { table: "tool_runtime_parts", columns: "scope", numbers: &[], insert: None };

const RECORDS: Change = Change {
    table: "tool_runtime_records",
    columns: "run_id, call_id, kind, tool, outcome, principal, tenant, decider, sequence, at, previous, hash, body",
    numbers: &[8, 9],
    insert: Some(""),
};

impl Rows {
    /// Writes a document's row. `place` has the columns of its key, `others` the other columns; `None` removes the row.
    pub(super) fn document(&mut self, place: [String; 3], others: Option<[Value; 6]>) {
        self.documents.insert(place, others);
    }

    /// Replaces the parts of a long text by those of the new text. Returns the list of the new parts.
    pub(super) fn text(&mut self, scope: &str, old: Option<&Stored>, text: Option<&str>) -> Option<String> {
        let old = old.and_then(|old| old.parts.as_deref());
        let Some(text) = text else {
            if old.is_some() {
                self.textless.insert(scope.to_owned());
            }
            return None;
        };
        let (change, list) = TextChange::new(old, text);
        self.texts.insert(scope.to_owned(), change);
        Some(list)
    }

    /// Adds a row of a record.
    pub(super) fn record(&mut self, columns: [Value; 13]) {
        self.records.push(columns);
    }

    #[cfg(feature = "postgres")]
    pub(super) fn is_empty(&self) -> bool {
        let has_texts = !(self.texts.is_empty() && self.textless.is_empty());
        self.documents.is_empty() && !has_texts && self.records.is_empty()
    }

    /// Adds the rows of a later write.
    #[cfg(feature = "postgres")]
    pub(super) fn then(&mut self, later: Self) {
        self.documents.extend(later.documents);
        self.texts.extend(later.texts);
        self.textless.extend(later.textless);
        self.records.extend(later.records);
    }

    /// Writes and removes the rows.
    pub(super) async fn write(mut self, connection: &mut Connection) -> Result<(), sqlx::Error> {
        let parts = compare(connection, std::mem::take(&mut self.texts)).await?;
        let changes = self.changes(parts);
        #[cfg(feature = "postgres")]
        if !connection.is_sqlite() {
            return at_once(connection, changes).await;
        }
        for (change, rows) in changes {
            for rows in rows.chunks(MOST_ROWS) {
                connection.execute(change.of(rows.len()), rows.iter().flatten().cloned()).await?;
            }
        }
        Ok(())
    }

    /// Returns the changes that have rows, with the values of the rows.
    fn changes(self, parts_of_texts: Parts) -> Vec<(Change, Vec<Vec<Value>>)> {
        let (mut documents, mut removed, mut parts, mut dropped) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (place, others) in self.documents {
            let place = place.map(Value::from).into_iter();
            match others {
                Some(others) => documents.push(place.chain(others).collect()),
                None => removed.push(place.collect()),
            }
        }
        for (place, part) in parts_of_texts {
            let place = place.map(Value::from).into_iter();
            match part {
                Some(part) => parts.push(place.chain([part.into()]).collect()),
                None => dropped.push(place.collect()),
            }
        }
        let textless = self.textless.into_iter().map(|scope| vec![scope.into()]).collect();
        let records = self.records.into_iter().map(Vec::from).collect();
        let all = [
            (DOCUMENTS, documents),
            (REMOVED, removed),
            (PARTS, parts),
            (DROPPED, dropped),
            (TEXTLESS, textless),
            (RECORDS, records),
        ];
        all.into_iter().filter(|(_, rows): &(Change, Vec<Vec<Value>>)| !rows.is_empty()).collect()
    }
}

/// Parts by their scopes and names; `None` removes one.
type Parts = Vec<([String; 2], Option<String>)>;

/// Compares long texts with the old ones, level by level.
async fn compare(connection: &mut Connection, mut texts: BTreeMap<String, TextChange>) -> Result<Parts, sqlx::Error> {
    loop {
        let mut unread = Vec::new();
        for (scope, change) in &mut texts {
            unread.extend(change.unread().into_iter().map(|name| [scope.clone(), name]));
        }
        if unread.is_empty() {
            break;
        }
        for (scope, list) in pieces(connection, &unread).await? {
            if let Some(change) = texts.get_mut(&scope) {
                change.read(&list);
            }
        }
    }
    let rows =
        |(scope, change): (String, TextChange)| change.rows().map(move |(name, part)| ([scope.clone(), name], part));
    Ok(texts.into_iter().flat_map(rows).collect())
}

/// Reads pieces of the lists of parts, by their scopes and names.
async fn pieces(connection: &mut Connection, places: &[[String; 2]]) -> Result<Vec<(String, String)>, sqlx::Error> {
    #[cfg(feature = "postgres")]
    if !connection.is_sqlite() {
        let columns = [0, 1].map(|column| Array::texts(places.iter().map(|place| place[column].clone())));
        return connection.arrays(statement::PIECES, columns).await;
    }
    let mut rows = Vec::new();
    for places in places.chunks(MOST_ROWS) {
        let (sql, arguments) = statement::pieces(places);
        rows.extend(connection.rows(sql, arguments).await?);
    }
    Ok(rows)
}

impl Change {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.columns.split(", ")
    }

    /// Returns the statement for this many rows, with an argument for each value.
    fn of(&self, rows: usize) -> String {
        let Self { table, columns, insert, .. } = self;
        let width = self.names().count();
        let list = |row: usize, form: &dyn Fn(usize, &str) -> String, between: &str| {
            let values: Vec<_> = self.names().enumerate().map(|(at, name)| form(row * width + at + 1, name)).collect();
            format!("({})", values.join(between))
        };
        let all = |form: &dyn Fn(usize, &str) -> String, between: &str, rows_between: &str| {
            (0..rows).map(|row| list(row, form, between)).collect::<Vec<_>>().join(rows_between)
        };
        match insert {
            Some(end) => {
                let rows = all(&|number, _| format!("${number}"), ", ", ", ");
                format!("INSERT INTO {table} ({columns}) VALUES {rows}{end}")
            }
            None => {
                let rows = all(&|number, name| format!("{name} = ${number}"), " AND ", " OR ");
                format!("DELETE FROM {table} WHERE {rows}")
            }
        }
    }

    /// Returns the statement for any number of rows, with an array for each column; `first` is the number of the first
    /// array.
    #[cfg(feature = "postgres")]
    fn of_arrays(&self, first: usize) -> String {
        let Self { table, columns, insert, .. } = self;
        let array = |at: usize| {
            let of = if self.numbers.contains(&at) { "bigint" } else { "text" };
            format!("${}::{of}[]", first + at)
        };
        let arrays: Vec<_> = self.names().enumerate().map(|(at, _)| array(at)).collect();
        let arrays = arrays.join(", ");
        match insert {
            Some(end) => format!("INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays}){end}"),
            None if self.names().count() == 1 => format!("DELETE FROM {table} WHERE {columns} = ANY ({arrays})"),
            None => {
                let last = columns.rsplit(", ").next().unwrap_or_default();
                let same = |name: &str| {
                    if name == last {
                        format!("own.{name} >= gone.{name} AND own.{name} <= gone.{name}")
                    } else {
                        format!("own.{name} = gone.{name}")
                    }
                };
                let same: Vec<_> = self.names().map(same).collect();
                // The lateral join lets the index find each row by its whole key, as in `statement::SEEN`.
                format!(
                    "DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT old.ctid FROM unnest({arrays}) \
                     AS gone ({columns}) CROSS JOIN LATERAL (SELECT own.ctid FROM {table} AS own WHERE {} \
                     ORDER BY own.{last} LIMIT 1) AS old))",
                    same.join(" AND ")
                )
            }
        }
    }
}

/// Makes all changes in one statement. No two of them touch the same row.
#[cfg(feature = "postgres")]
async fn at_once(connection: &mut Connection, mut changes: Vec<(Change, Vec<Vec<Value>>)>) -> Result<(), sqlx::Error> {
    let (mut sql, mut arrays) = (String::new(), Vec::new());
    let last = changes.pop();
    let others = changes.len();
    for (place, (change, rows)) in changes.into_iter().chain(last).enumerate() {
        let statement = change.of_arrays(arrays.len() + 1);
        let _infallible = match place {
            _ if place == others => write!(sql, " {statement}"),
            0 => write!(sql, "WITH change_0 AS ({statement})"),
            _ => write!(sql, ", change_{place} AS ({statement})"),
        };
        let start = arrays.len();
        arrays.extend(change.names().enumerate().map(|(at, _)| Array::new(change.numbers.contains(&at))));
        for row in rows {
            for (array, value) in arrays[start..].iter_mut().zip(row) {
                array.push(value);
            }
        }
    }
    if sql.is_empty() {
        return Ok(());
    }
    connection.arrays::<(i64,)>(sql.trim_start(), arrays).await.map(drop)
}
