//! [`Seen`]: the rows that the writes of a transaction read before they run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tool_runtime::store::{Chain, Key, StoreError, StoredDocument};

use crate::store::apply::{Failed, MOST_KEYS, Work};
#[cfg(feature = "postgres")]
use crate::store::connection::Array;
use crate::store::connection::Connection;
use crate::store::parts::Found;
use crate::store::statement;
use crate::store::text::clipped;

/// The rows that the writes of a transaction need.
#[derive(Default)]
pub(super) struct Needs {
    documents: Vec<Key>,
    /// The runs that only get a new record.
    appended: BTreeSet<String>,
}

impl Needs {
    /// Adds documents.
    pub(super) fn documents(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.documents.extend(keys);
    }

    /// Adds the rows that a write needs.
    pub(super) fn add(&mut self, work: &Work) {
        match work {
            Work::Append(record) => drop(self.appended.insert(clipped(record.run_id()))),
            Work::Update(keys, _) => self.documents(keys.iter().cloned()),
        }
    }
}

/// The documents that the writes need, and the ends of the hash chains of their runs.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) found: Found,
    /// The ends of chains, by run. Any other chain has to be read.
    pub(super) chains: BTreeMap<String, Chain>,
    /// The marks of runs that were purged or erased, as JSON.
    marks: BTreeMap<String, String>,
}

impl Seen {
    /// Reads the rows that writes need; in PostgreSQL, in one round trip.
    pub(super) async fn read(connection: &mut Connection, needs: Needs) -> Result<Self, Failed> {
        let mut seen = Self::default();
        seen.chains.extend(needs.appended.iter().map(|run| (run.clone(), Chain::new())));
        #[cfg(feature = "postgres")]
        if !connection.is_sqlite() {
            return seen.read_at_once(connection, needs).await;
        }
        for run in needs.appended {
            let rows = connection.rows::<(Option<i64>, String)>(statement::END, [run.as_str().into()]).await?;
            for (sequence, text) in rows {
                seen.end(run.clone(), sequence, &text)?;
            }
        }
        for keys in needs.documents.chunks(MOST_KEYS) {
            let (sql, arguments) = statement::select(keys);
            seen.found.extend(connection.rows(sql, arguments).await?);
        }
        Ok(seen)
    }

    #[cfg(feature = "postgres")]
    async fn read_at_once(mut self, connection: &mut Connection, needs: Needs) -> Result<Self, Failed> {
        type Row = (String, String, String, String, Option<String>, Option<i64>);
        // A change can append records to the runs that it locks, and most changes do.
        let is_of_run = |key: &&Key| key.lock() == Key::run(Arc::clone(key.scope())).lock();
        let runs = needs.documents.iter().filter(is_of_run).map(|key| clipped(key.scope()));
        self.chains.extend(runs.map(|run| (run, Chain::new())));
        let arrays = statement::select_arrays(&needs.documents).into_iter();
        let arrays = arrays.chain([Array::texts(self.chains.keys().cloned()), Array::texts(needs.appended)]);
        for (space, scope, id, body, parts, sequence) in connection.arrays::<Row>(statement::SEEN, arrays).await? {
            match space.as_str() {
                statement::CHAIN => self.end(scope, sequence, &id)?,
                statement::MARK => self.end(scope, None, &body)?,
                _ => self.found.extend([(space, scope, id, body, parts)]),
            }
        }
        Ok(self)
    }

    /// Adds the last record of a run's chain. Without a `sequence`, `text` is the run's mark; with one, it is the hash.
    fn end(&mut self, run: String, sequence: Option<i64>, text: &str) -> Result<(), Failed> {
        match sequence {
            Some(sequence) => drop(self.chains.insert(run, after(sequence, text)?)),
            None => drop(self.marks.insert(run, text.to_owned())),
        }
        Ok(())
    }

    /// Returns the mark of a run.
    pub(super) fn mark(&self, run_id: &Arc<str>) -> Result<(Key, Option<StoredDocument>), StoreError> {
        let key = Key::run(Arc::clone(run_id));
        let mark = self.marks.get(&clipped(run_id));
        let mark = mark.map(|text| StoredDocument::from_json(key.clone(), text)).transpose()?;
        Ok((key, mark))
    }
}

/// Returns the chain after its last record.
pub(super) fn after(sequence: i64, hash: &str) -> Result<Chain, Failed> {
    let corrupt = |error| Failed::Refused(StoreError::Corrupt(error));
    let sequence = u64::try_from(sequence).map_err(|error| corrupt(Box::new(error)))?;
    Ok(Chain::after(sequence, hash.parse().map_err(|error| corrupt(Box::new(error)))?))
}
