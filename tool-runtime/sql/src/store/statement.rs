//! The statements that read. Each is written for a certain index.
//!
//! SQLite plans without statistics, and prefers scanning a table in the requested order to sorting the few rows that
//! another index finds. In both databases, `+ 0` prevents a condition or an order from using the index of its column.

use std::fmt::Write as _;

use jiff::Timestamp;
use tool_runtime::store::{DocumentKind, Key, Query, RecordFilter};

#[cfg(feature = "postgres")]
use crate::store::connection::Array;
use crate::store::connection::Value;
use crate::store::parts::SPACE;
use crate::store::text::{clipped, columns, escaped, micros};

/// The maximum number of records of a time range that are sorted for each page. Larger ranges are read in the order of
/// the table.
pub(super) const FEW: i64 = 20_000;

type Statement = (String, Vec<Value>);

/// Reads documents by their keys, and the parts of their long texts.
pub(super) fn select(keys: &[Key]) -> Statement {
    let place = |number| {
        let [space, scope, id] = [1, 2, 3].map(|column| 3 * number + column);
        format!("(space = ${space} AND scope = ${scope} AND id = ${id})")
    };
    let places: Vec<_> = (0..keys.len()).map(place).collect();
    let mut sql =
        format!("SELECT space, scope, id, body, parts FROM tool_runtime_documents WHERE {}", places.join(" OR "));
    let runs = keys.iter().enumerate().filter(|(_, key)| key.needs_text());
    let scopes: Vec<_> = runs.map(|(number, _)| format!("${}", 3 * number + 2)).collect();
    if !scopes.is_empty() {
        let scopes = scopes.join(", ");
        let _infallible = write!(
            sql,
            " UNION ALL SELECT '{SPACE}', scope, hash, body, NULL FROM tool_runtime_parts WHERE scope IN ({scopes})"
        );
    }
    let arguments = keys.iter().flat_map(|key| {
        let (scope, id, _) = columns(key);
        [Value::from(key.kind().code()), scope.into(), id.into()]
    });
    (sql, arguments.collect())
}

/// Reads parts by their scopes and names.
pub(super) fn pieces(places: &[[String; 2]]) -> Statement {
    let place = |number| format!("(scope = ${} AND hash = ${})", 2 * number + 1, 2 * number + 2);
    let all: Vec<_> = (0..places.len()).map(place).collect();
    let sql = format!("SELECT scope, body FROM tool_runtime_parts WHERE {}", all.join(" OR "));
    (sql, places.iter().flatten().map(|text| Value::from(text.as_str())).collect())
}

/// Reads any number of parts. Like [`SEEN`], it finds each row by its whole key.
#[cfg(feature = "postgres")]
pub(super) const PIECES: &str = "\
    SELECT found.scope, found.body FROM unnest($1::text[], $2::text[]) AS named (scope, hash) CROSS JOIN LATERAL (\
    SELECT scope, body FROM tool_runtime_parts AS own \
    WHERE own.scope = named.scope AND own.hash >= named.hash AND own.hash <= named.hash \
    ORDER BY own.hash LIMIT 1) AS found";

/// Reads the end of a run's chain, and the mark of a run that was purged or erased. A mark has no lane, but a run has
/// one, so the condition on the lane skips the long conversation of a run.
pub(super) const END: &str = "SELECT sequence, hash FROM (SELECT sequence, hash FROM tool_runtime_records \
                              WHERE run_id = $1 ORDER BY sequence DESC LIMIT 1) AS last UNION ALL \
                              SELECT NULL, body FROM tool_runtime_documents \
                              WHERE space = 'run' AND scope = $1 AND id = '' AND lane IS NULL";

/// The value of the column `space` for the end of a chain, in the rows of [`SEEN`].
#[cfg(feature = "postgres")]
pub(super) const CHAIN: &str = "chain";

/// The value of the column `space` for the mark of a run, in the rows of [`SEEN`].
#[cfg(feature = "postgres")]
pub(super) const MARK: &str = "mark";

/// Reads documents by their keys, the parts of their long texts, the ends of chains, and the marks of runs, in one
/// statement for any number of them. Each row is found by its whole key, even if the plan was made while the table was
/// small: `LIMIT` and `OFFSET` prevent a join with the whole table, and `ORDER BY` an index on a part of the key.
#[cfg(feature = "postgres")]
pub(super) const SEEN: &str = "\
    SELECT found.space, found.scope, found.id, found.body, found.parts, NULL::bigint \
    FROM unnest($1::text[], $2::text[], $3::text[]) AS named (space, scope, id) CROSS JOIN LATERAL (\
    SELECT space, scope, id, body, parts FROM tool_runtime_documents AS own \
    WHERE own.space = named.space AND own.scope = named.scope AND own.id >= named.id AND own.id <= named.id \
    ORDER BY own.id LIMIT 1) AS found \
    UNION ALL SELECT 'part', found.scope, found.hash, found.body, NULL, NULL \
    FROM unnest($4::text[]) AS named (scope) CROSS JOIN LATERAL (\
    SELECT scope, hash, body FROM tool_runtime_parts AS own WHERE own.scope = named.scope OFFSET 0) AS found \
    UNION ALL SELECT 'chain', named.run_id, last.hash, '', NULL, last.sequence \
    FROM unnest($5::text[]) AS named (run_id) CROSS JOIN LATERAL (\
    SELECT sequence, hash FROM tool_runtime_records AS own WHERE own.run_id = named.run_id \
    ORDER BY sequence DESC LIMIT 1) AS last \
    UNION ALL SELECT 'mark', named.scope, '', mark.body, NULL, NULL \
    FROM unnest($6::text[]) AS named (scope) CROSS JOIN LATERAL (\
    SELECT body FROM tool_runtime_documents AS own \
    WHERE own.space = 'run' AND own.scope = named.scope AND own.id >= '' AND own.id <= '' AND own.lane IS NULL \
    ORDER BY own.id LIMIT 1) AS mark";

/// Returns the first four arguments of [`SEEN`].
#[cfg(feature = "postgres")]
pub(super) fn select_arrays(keys: &[Key]) -> [Array; 4] {
    let mut arrays = [const { Vec::new() }; 4];
    for key in keys {
        let (scope, id, _) = columns(key);
        if key.needs_text() {
            arrays[3].push(scope.clone());
        }
        for (array, value) in arrays.iter_mut().zip([key.kind().code().to_owned(), scope, id]) {
            array.push(value);
        }
    }
    arrays.map(Array::texts)
}

/// Lists documents, and the parts of runs. The rows of parts have the number 0 and come in any order.
pub(super) fn listing(query: &Query) -> Statement {
    let mut sql = Select::new("SELECT number, scope, id, name, body, parts FROM tool_runtime_documents");
    sql.and("space =", query.kind.code());
    if let Some(scope) = &query.scope {
        sql.and("scope =", clipped(scope));
    }
    if let Some(due) = query.due {
        sql.and(if query.scope.is_some() { "due + 0 <=" } else { "due <=" }, micros(due));
    }
    let number = if query.scope.is_some() || query.due.is_some() { "number + 0" } else { "number" };
    sql.and(&format!("{number} >"), position(query.after));
    let (sql, arguments) = sql.page(number, query.limit);
    if !query.kind.has_long_text() {
        return (sql, arguments);
    }
    let sql = format!(
        "WITH page AS ({sql}) SELECT number, scope, id, name, body, parts FROM page UNION ALL \
         SELECT 0, scope, hash, NULL, body, NULL FROM tool_runtime_parts \
         WHERE scope IN (SELECT scope FROM page WHERE parts IS NOT NULL)"
    );
    (sql, arguments)
}

/// Lists due runs, of all lanes or of one.
pub(super) fn due_runs(now: Timestamp, lane: Option<&str>, limit: usize) -> Statement {
    let mut sql = Select::new("SELECT scope, id, name, lane, due FROM tool_runtime_documents");
    sql.and("space =", DocumentKind::Run.code());
    if let Some(lane) = lane {
        sql.and("lane =", lane);
    }
    sql.and("due <=", micros(now));
    sql.page("due", limit)
}

/// Lists the first run of each lane. One index lookup finds the next lane, even after a lane with many runs.
pub(super) fn lanes(after: &str, limit: usize) -> Statement {
    let sql = "WITH RECURSIVE lanes (lane, place) AS (\
               SELECT (SELECT lane FROM tool_runtime_documents \
               WHERE space = 'run' AND lane > $1 AND due IS NOT NULL ORDER BY lane LIMIT 1), 1 \
               UNION ALL SELECT (SELECT later.lane FROM tool_runtime_documents AS later \
               WHERE later.space = 'run' AND later.lane > lanes.lane AND later.due IS NOT NULL \
               ORDER BY later.lane LIMIT 1), lanes.place + 1 FROM lanes WHERE lanes.lane IS NOT NULL AND lanes.place < $2) \
               SELECT run.scope, run.id, run.name, run.lane, run.due FROM (SELECT (SELECT number \
               FROM tool_runtime_documents AS own WHERE own.space = 'run' AND own.lane = lanes.lane \
               AND own.due IS NOT NULL ORDER BY own.due LIMIT 1) AS number FROM lanes WHERE lanes.lane IS NOT NULL) AS first \
               CROSS JOIN tool_runtime_documents AS run WHERE run.number = first.number ORDER BY run.lane";
    (sql.to_owned(), vec![after.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()])
}

/// Counts the runs with a due time, of all tenants or of one. Returns the number of due runs, the earliest due time,
/// the number of leased runs, and the number of all runs.
pub(super) fn depth(now: Timestamp, tenant: Option<&str>) -> Statement {
    let mut sql = "SELECT COUNT(CASE WHEN due <= $1 THEN 1 END), MIN(due), \
                   COUNT(CASE WHEN due > $1 AND leased_until > $1 THEN 1 END), COUNT(*) FROM tool_runtime_documents \
                   WHERE space = 'run' AND lane IS NOT NULL AND due IS NOT NULL"
        .to_owned();
    let mut arguments = vec![micros(now).into()];
    if let Some(tenant) = tenant {
        // The names of a tenant's lanes begin with `tenant/`. `0` is the character after the slash.
        sql.push_str(" AND lane >= $2 AND lane < $3");
        arguments.extend([format!("{tenant}/").into(), format!("{tenant}0").into()]);
    }
    (sql, arguments)
}

/// Counts the records of a time range, up to one more than [`FEW`]. `None` if the filter has no time range. Also `None`
/// if it selects a run or a call, because the index of the run or the call is better.
pub(super) fn count_by_time(filter: &RecordFilter) -> Option<Statement> {
    if filter.run_id.is_some() || filter.call_id.is_some() || (filter.since, filter.until) == (None, None) {
        return None;
    }
    let mut sql = Select::new("SELECT COUNT(*) FROM (SELECT at FROM tool_runtime_records");
    sql.within(filter);
    let (sql, arguments) = sql.first(usize::try_from(FEW).map_or(usize::MAX, |few| few + 1));
    Some((format!("{sql}) AS of_the_time"), arguments))
}

const RECORD: &str = "SELECT number, sequence, previous, hash, run_id, call_id, kind, tool, outcome, principal, tenant, \
                      decider, at, body FROM tool_runtime_records";

/// Reads records. With `are_few`, the statement uses the index on the time.
pub(super) fn recorded(filter: &RecordFilter, are_few: bool) -> Statement {
    let mut sql = Select::new(if are_few { "SELECT number FROM tool_runtime_records" } else { RECORD });
    let texts = [
        ("run_id =", filter.run_id.as_deref().map(clipped)),
        ("call_id =", filter.call_id.as_ref().map(|id| clipped(id.as_str()))),
        ("kind =", filter.decisions.map(|only| if only { "decision" } else { "call" }.to_owned())),
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
    sql.within(filter);
    let limit = filter.limit.unwrap_or(usize::MAX);
    if are_few {
        sql.and("number + 0 >", position(filter.after));
        let (sql, arguments) = sql.page("number + 0", limit);
        return (format!("{RECORD} WHERE number IN ({sql}) ORDER BY number"), arguments);
    }
    sql.and("number >", position(filter.after));
    // The records of a run are ordered by their sequence number, which is in the index of the run.
    sql.page(if filter.run_id.is_some() { "sequence" } else { "number" }, limit)
}

fn position(after: u64) -> i64 {
    i64::try_from(after).unwrap_or(i64::MAX)
}

/// A statement that is extended condition by condition.
struct Select(String, Vec<Value>);

impl Select {
    fn new(start: &str) -> Self {
        Self(start.to_owned(), Vec::new())
    }

    fn and(&mut self, condition: &str, value: impl Into<Value>) {
        let word = if self.1.is_empty() { " WHERE " } else { " AND " };
        self.1.push(value.into());
        for part in [word, condition, " $", &self.1.len().to_string()] {
            self.0.push_str(part);
        }
    }

    /// Restricts it to the time range of a filter.
    fn within(&mut self, filter: &RecordFilter) {
        let mut and = |condition, time: Option<Timestamp>| {
            if let Some(time) = time {
                self.and(condition, micros(time));
            }
        };
        and("at >=", filter.since);
        and("at <", filter.until);
    }

    fn page(mut self, order: &str, limit: usize) -> Statement {
        self.0.push_str(" ORDER BY ");
        self.0.push_str(order);
        self.first(limit)
    }

    fn first(mut self, limit: usize) -> Statement {
        self.1.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        (format!("{} LIMIT ${}", self.0, self.1.len()), self.1)
    }
}
