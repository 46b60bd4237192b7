//! Workers, which execute queued writes in transactions and repeat a failed transaction.
//!
//! A worker repeats a transaction if the database ended it without a commit, or if the connection broke. If a commit
//! was not acknowledged, the worker first looks up the rows of the transaction, so that nothing is written twice.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use tool_runtime::store::{Clock, StoreError};
use tool_runtime::tool::Hash;

use crate::store::apply::{Failed, Work, WrittenRows, apply};
use crate::store::connection::Connection;
use crate::store::failure::{failed, is_transient};
#[cfg(feature = "postgres")]
use crate::store::group;
use crate::store::migrate::VERSION;
use crate::store::notices::Notices;
use crate::store::queue::Job;
use crate::store::shared::Shared;

/// The time to wait before a retry.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// Starts another worker if enough writes wait.
pub(super) fn hire(shared: &Arc<Shared>) {
    if shared.queue.hire(shared.database.writers()) {
        shared.handle.spawn(Worker::new(Arc::clone(shared)).work());
    }
}

/// A task that executes queued writes. It ends when no waiting write can run, or when its runtime ends.
struct Worker {
    shared: Arc<Shared>,
    is_dismissed: bool,
}

impl Worker {
    /// Creates a worker that the queue has already counted.
    const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, is_dismissed: false }
    }

    async fn work(mut self) {
        let (most, is_sqlite) = (self.shared.database.batch(), self.shared.database.is_sqlite());
        #[cfg(feature = "postgres")]
        let mut kept = None;
        while let Some(mut batch) = self.shared.queue.take(most, !is_sqlite) {
            #[cfg(feature = "postgres")]
            if !is_sqlite {
                group::write(&self.shared, batch, &mut kept).await;
                hire(&self.shared);
                continue;
            }
            let results = write(&self.shared, &mut batch.jobs).await;
            batch.end(results);
            // The released locks may allow other writes to run.
            hire(&self.shared);
        }
        self.is_dismissed = true;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.is_dismissed {
            self.shared.queue.abandoned();
        }
    }
}

/// Executes the writes in one transaction. If the transaction fails, executes each write in a transaction of its own,
/// so that one failure does not fail the other writes.
async fn write(shared: &Arc<Shared>, jobs: &mut [Job]) -> Vec<Result<(), StoreError>> {
    if jobs.len() > 1
        && let Some(results) = together(shared, jobs).await
    {
        return results;
    }
    let mut results = Vec::with_capacity(jobs.len());
    for job in jobs {
        results.push(alone(shared, &mut job.work, Instant::now() + shared.patience, None).await);
    }
    results
}

/// Executes the writes in one transaction. `None` if nothing was written, so that the caller may repeat each write.
async fn together(shared: &Arc<Shared>, jobs: &mut [Job]) -> Option<Vec<Result<(), StoreError>>> {
    let (mut results, mut unsure) = (Vec::with_capacity(jobs.len()), None);
    let mut connection = shared.database.connection().await.ok()?;
    if in_one(shared, &mut connection, jobs, &mut results, &mut unsure).await.is_ok() {
        return Some(results);
    }
    connection.discard();
    // The commit was not acknowledged. It wrote all rows or none, so one lookup decides. If the lookup fails, a
    // repetition could write the rows twice.
    let unsure = unsure?;
    match kept(shared, &unsure).await {
        Ok(true) => {
            // Only SQLite executes several writes in one transaction here, and it notifies no other process.
            if unsure.wakes {
                shared.wake();
            }
            Some(results)
        }
        Ok(false) => None,
        Err(error) => {
            let text = error.detail();
            let lost = || StoreError::Unavailable(text.clone().into());
            Some(results.into_iter().map(|result| result.and_then(|()| Err(lost()))).collect())
        }
    }
}

async fn in_one(
    shared: &Arc<Shared>,
    connection: &mut Connection,
    jobs: &mut [Job],
    results: &mut Vec<Result<(), StoreError>>,
    unsure: &mut Option<WrittenRows>,
) -> Result<(), Failed> {
    let mut all = WrittenRows::default();
    // Only SQLite comes here, and it takes no lock by name.
    let (now, _) = begin(shared, connection, Locks::Each(&BTreeSet::new())).await?;
    for job in jobs {
        connection.run("SAVEPOINT one").await?;
        results.push(match apply(connection, &mut job.work, now).await {
            Ok(written) => {
                all.then(written);
                connection.run("RELEASE one").await?;
                Ok(())
            }
            Err(Failed::Refused(error)) => {
                connection.run("ROLLBACK TO one; RELEASE one").await?;
                Err(error)
            }
            Err(failed) => return Err(failed),
        });
    }
    let wakes = all.wakes;
    // The outcome of the commit is unknown until the database acknowledges it.
    *unsure = Some(all).filter(|all| !all.is_nothing());
    Ok(commit(shared, connection, wakes).await?)
}

/// Looks up whether a write is in the database. Repeats the lookup after a transient failure, for example a broken
/// connection, for up to the store's patience.
pub(super) async fn kept(shared: &Shared, written: &WrittenRows) -> Result<bool, StoreError> {
    let end = Instant::now() + shared.patience;
    loop {
        match look(shared, written).await {
            Ok(kept) => return Ok(kept),
            Err(error) if is_transient(&error) && Instant::now() < end => sleep(PAUSE).await,
            Err(error) => return Err(failed(error)),
        }
    }
}

async fn look(shared: &Shared, written: &WrittenRows) -> Result<bool, sqlx::Error> {
    #[cfg(all(test, feature = "sqlite"))]
    shared.faults.before_look()?;
    let mut connection = shared.database.connection().await?;
    let kept = written.is_kept(&mut connection).await;
    if kept.is_err() {
        connection.discard();
    }
    kept
}

/// Executes a write in its own transaction. Repeats it after a transient failure, for example a broken connection,
/// until `end`. `unsure` has the rows of an earlier attempt whose commit was not acknowledged.
pub(super) async fn alone(
    shared: &Arc<Shared>,
    work: &mut Work,
    end: Instant,
    mut unsure: Option<WrittenRows>,
) -> Result<(), StoreError> {
    loop {
        match once(shared, work, &mut unsure).await {
            Ok(()) => return Ok(()),
            Err(Failed::Refused(error)) => return Err(error),
            // Unreachable: `apply` passes its connection to `change`, which returns `Apart` only without a connection.
            Err(Failed::Apart) => return Err(StoreError::Lost),
            Err(Failed::Database(error)) if is_transient(&error) && Instant::now() < end => sleep(PAUSE).await,
            Err(Failed::Database(error)) => return Err(failed(error)),
        }
    }
}

/// Attempts a write. `unsure` has the rows of an earlier attempt whose commit was not acknowledged.
async fn once(shared: &Arc<Shared>, work: &mut Work, unsure: &mut Option<WrittenRows>) -> Result<(), Failed> {
    let mut connection = shared.database.connection().await?;
    let tried = attempt(shared, &mut connection, work, unsure).await;
    match &tried {
        Ok(()) => {}
        Err(Failed::Refused(_)) if connection.run("ROLLBACK").await.is_ok() => {}
        Err(_) => connection.discard(),
    }
    tried
}

async fn attempt(
    shared: &Arc<Shared>,
    connection: &mut Connection,
    work: &mut Work,
    unsure: &mut Option<WrittenRows>,
) -> Result<(), Failed> {
    let (now, _) = begin(shared, connection, Locks::Each(&work.locks())).await?;
    if let Some(written) = unsure
        && written.is_kept(connection).await?
    {
        connection.run("ROLLBACK").await?;
        announce(shared, connection, written.wakes).await;
        return Ok(());
    }
    let written = apply(connection, work, now).await?;
    if written.is_nothing() {
        return Ok(connection.run("ROLLBACK").await?);
    }
    let wakes = written.wakes;
    // The outcome of the commit is unknown until the database acknowledges it.
    *unsure = Some(written);
    Ok(commit(shared, connection, wakes).await?)
}

/// The advisory locks of PostgreSQL that a transaction takes. SQLite has a single lock, which every transaction takes
/// at its beginning.
pub(super) enum Locks<'l> {
    /// Waits for each lock. All processes take locks in the order of their numbers, which prevents deadlocks.
    Each(&'l BTreeSet<String>),
    /// Takes the locks that no transaction holds, and waits for none, so that it cannot be part of a deadlock.
    #[cfg(feature = "postgres")]
    Free(&'l BTreeSet<i64>),
}

/// Begins a transaction and takes locks. Returns the transaction's time, and the locks that it did not get. It also
/// checks the version of the tables, so that no write happens during or after a migration by another process.
pub(super) async fn begin(
    shared: &Shared,
    connection: &mut Connection,
    locks: Locks<'_>,
) -> Result<(Timestamp, BTreeSet<i64>), Failed> {
    const SCHEMA: &str = "SELECT max(version) FROM tool_runtime_schema";
    if shared.database.is_sqlite() {
        let (found,) = connection.last::<(i64,)>(format!("BEGIN IMMEDIATE; {SCHEMA}")).await?;
        is_known(found)?;
        return Ok((shared.clock.at_least(<dyn Clock>::system().now()), BTreeSet::new()));
    }
    let patience = shared.patience.as_millis();
    // Longer than the lock timeout, so that a statement that waits for a lock fails with the lock's own error.
    let longest = 2 * patience;
    let list = |numbers: &BTreeSet<i64>| {
        let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
        numbers.join(",")
    };
    let (wait, held, plans) = match locks {
        Locks::Each(locks) => {
            let wait = format!(
                "SELECT count(pg_advisory_xact_lock(number)) FROM unnest('{{{}}}'::bigint[]) AS number; ",
                list(&numbers(locks))
            );
            (wait, "NULL".to_owned(), "auto")
        }
        #[cfg(feature = "postgres")]
        Locks::Free(numbers) => {
            let held = format!(
                "(SELECT string_agg(number::text, ' ') FROM unnest('{{{}}}'::bigint[]) AS number \
                 WHERE NOT pg_try_advisory_xact_lock(number))",
                list(numbers)
            );
            // The transaction has few statements, and each finds rows by their keys. One generic plan therefore suits
            // all uses of a statement.
            (String::new(), held, "force_generic_plan")
        }
    };
    // - `synchronous_commit`: `remote_apply` is stricter than `on`, so it is kept.
    // - The timeouts make the server end the transaction of a stopped worker, so that other transactions do not wait
    //   for its locks.
    // - `enable_seqscan`: for a small table, PostgreSQL plans a scan of the whole table. It keeps this plan after the
    //   table has grown, so scans are off from the start.
    let sql = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; \
         SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') \
             WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), \
             set_config('lock_timeout', '{patience}', true), \
             set_config('statement_timeout', '{longest}', true), \
             set_config('idle_in_transaction_session_timeout', '{patience}', true), \
             set_config('plan_cache_mode', '{plans}', true), \
             set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true); \
         {wait}SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, ({SCHEMA}), {held}"
    );
    let (micros, found, held) = connection.last::<(i64, i64, Option<String>)>(sql).await?;
    is_known(found)?;
    let now = Timestamp::from_microsecond(micros).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    let held = held.unwrap_or_default().split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect();
    Ok((shared.clock.at_least(now), held))
}

/// Refuses to write to a database whose version has changed since it was opened, by a migration or by the restore of a
/// backup.
fn is_known(found: i64) -> Result<(), Failed> {
    match found.cmp(&VERSION) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Failed::Refused(StoreError::Newer { found, known: VERSION })),
        Ordering::Less => Err(Failed::Refused(StoreError::Older { found, known: VERSION })),
    }
}

pub(super) async fn commit(shared: &Arc<Shared>, connection: &mut Connection, wakes: bool) -> Result<(), sqlx::Error> {
    #[cfg(all(test, feature = "sqlite"))]
    shared.faults.before_commit(connection).await?;
    connection.run("COMMIT").await?;
    #[cfg(all(test, feature = "sqlite"))]
    shared.faults.after_commit()?;
    announce(shared, connection, wakes).await;
    Ok(())
}

/// Wakes the tasks that wait for due documents, in this process and in others. Call it after the commit, so that a
/// failure here does not fail the write.
async fn announce(shared: &Arc<Shared>, connection: &mut Connection, wakes: bool) {
    if wakes {
        shared.wake();
        if !shared.database.is_sqlite() {
            Notices::announce(shared, connection).await;
        }
    }
}

/// Returns the numbers of a write's locks.
pub(super) fn numbers(locks: &BTreeSet<String>) -> BTreeSet<i64> {
    locks.iter().map(|lock| number(lock)).collect()
}

/// Returns the number of an advisory lock.
pub(super) fn number(lock: &str) -> i64 {
    let hash = Hash::sha256(format!("tool-runtime/{lock}"));
    hash.as_ref().first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}
