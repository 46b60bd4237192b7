//! Group commit in PostgreSQL. The waiting writes share a transaction of four round trips. A change of a long text
//! whose list of parts is cut into pieces costs one more round trip for each level of lists that it reads.
//!
//! The transaction takes locks without waiting, so that a lock of another process delays no other write. All changes
//! run before any row is written, so that a refused change leaves no trace. A write that cannot share the transaction,
//! or whose shared transaction failed, gets a transaction of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::{Instant, timeout};
use tool_runtime::store::StoreError;

use crate::store::apply::{Failed, WrittenRows, change};
use crate::store::connection::Connection;
use crate::store::failure::{failed, is_transient};
use crate::store::queue::{Batch, Job};
use crate::store::rows::Rows;
use crate::store::seen::{Needs, Seen};
use crate::store::shared::Shared;
use crate::store::write::{Locks, PAUSE, alone, begin, commit, hire, numbers};

/// The state of a write after its group.
enum Fate {
    Ended(Result<(), StoreError>),
    /// The write has rows in the shared transaction, and ends with it.
    Wrote(WrittenRows),
    /// The write needs a transaction of its own.
    Apart,
}

/// Executes writes, no two of which need the same lock. `kept` is the connection of the worker's previous transaction.
/// Keeping it saves a round trip, which each return to the pool costs.
pub(super) async fn write(shared: &Arc<Shared>, mut batch: Batch, kept: &mut Option<Connection>) {
    let end = Instant::now() + shared.patience;
    let mut fates: Vec<_> = batch.jobs.iter().map(|_| Fate::Apart).collect();
    let mut is_unsure = false;
    if let Err(error) = in_one(shared, &mut batch.jobs, &mut fates, &mut is_unsure, kept).await
        && fates.len() == 1
        && !is_unsure
        && !is_transient(&error)
    {
        fates = vec![Fate::Ended(Err(failed(error)))];
    }
    for (batch, fate) in batch.divided().into_iter().zip(fates) {
        match fate {
            Fate::Ended(result) => batch.end([result]),
            Fate::Wrote(written) => apart(shared, batch, end, Some(written).filter(|_| is_unsure)),
            Fate::Apart => apart(shared, batch, end, None),
        }
    }
}

/// Executes one write in its own task and transaction, because it might wait for a lock or for the server.
fn apart(shared: &Arc<Shared>, mut batch: Batch, end: Instant, mut unsure: Option<WrittenRows>) {
    let shared = Arc::clone(shared);
    shared.handle.clone().spawn(async move {
        let mut results = Vec::new();
        for job in &mut batch.jobs {
            results.push(alone(&shared, &mut job.work, end, unsure.take()).await);
        }
        batch.end(results);
        // The released locks can allow other writes to run.
        hire(&shared);
    });
}

/// Executes writes in one transaction. After an error, `is_unsure` is `true` if the transaction might be committed.
async fn in_one(
    shared: &Arc<Shared>,
    jobs: &mut [Job],
    fates: &mut [Fate],
    is_unsure: &mut bool,
    kept: &mut Option<Connection>,
) -> Result<(), sqlx::Error> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        // If no connection is free, each write waits for one in a task of its own.
        None => timeout(PAUSE, shared.database.connection()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))?,
    };
    let tried = attempt(shared, &mut connection, jobs, fates, is_unsure).await;
    if tried.is_err() {
        connection.discard();
    } else if shared.database.has_spare() {
        *kept = Some(connection);
    }
    tried
}

async fn attempt(
    shared: &Arc<Shared>,
    connection: &mut Connection,
    jobs: &mut [Job],
    fates: &mut [Fate],
    is_unsure: &mut bool,
) -> Result<(), sqlx::Error> {
    let locks: Vec<_> = jobs.iter().map(|job| numbers(&job.locks)).collect();
    let all: BTreeSet<_> = locks.iter().flatten().copied().collect();
    let (now, held) = match begin(shared, connection, Locks::Free(&all)).await {
        Ok(begun) => begun,
        Err(Failed::Database(error)) => return Err(error),
        // Each write then finds the same problem in its own transaction, and returns it.
        Err(_) => return connection.run("ROLLBACK").await,
    };
    let (mut taken, mut taken_fates, mut needs) = (Vec::new(), Vec::new(), Needs::default());
    for ((job, fate), locks) in jobs.iter_mut().zip(&mut *fates).zip(&locks) {
        if locks.is_disjoint(&held) {
            needs.add(&job.work);
            taken.push(&mut job.work);
            taken_fates.push(fate);
        }
    }
    let (mut rows, mut wakes) = (Rows::default(), false);
    if !taken.is_empty() {
        let seen = match Seen::read(connection, needs).await {
            Ok(seen) => seen,
            Err(Failed::Database(error)) => return Err(error),
            // One of the writes cannot be read. In its own transaction, it fails alone.
            Err(_) => return connection.run("ROLLBACK").await,
        };
        for (work, fate) in taken.into_iter().zip(&mut taken_fates) {
            let mut own = Rows::default();
            **fate = match change(None, work, &seen, now, &mut own).await {
                Ok(written) if written.is_nothing() => Fate::Ended(Ok(())),
                Ok(written) => {
                    wakes |= written.wakes;
                    rows.then(own);
                    Fate::Wrote(written)
                }
                Err(Failed::Refused(error)) => Fate::Ended(Err(error)),
                Err(Failed::Apart) => Fate::Apart,
                Err(Failed::Database(error)) => return Err(error),
            };
        }
    }
    if rows.is_empty() {
        return connection.run("ROLLBACK").await;
    }
    rows.write(connection).await?;
    // The outcome of the commit is unknown until the database acknowledges it.
    *is_unsure = true;
    commit(shared, connection, wakes).await?;
    for fate in taken_fates {
        if matches!(fate, Fate::Wrote(_)) {
            *fate = Fate::Ended(Ok(()));
        }
    }
    Ok(())
}
