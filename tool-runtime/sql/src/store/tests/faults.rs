//! Injected faults: commits without an acknowledgement.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::store::connection::Connection;

/// The fate of a commit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Fault {
    /// It succeeds.
    None,
    /// It fails, and the connection breaks.
    Failed,
    /// It succeeds, and the connection breaks before the acknowledgement.
    Unanswered,
}

/// The fates of the next commits, in order.
#[derive(Default)]
pub(in crate::store) struct Faults {
    next: Mutex<VecDeque<Fault>>,
    commits: Mutex<u32>,
    is_blind: AtomicBool,
}

impl Faults {
    pub(super) fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = faults.into_iter().collect();
        *self.commits.lock().unwrap_or_else(PoisonError::into_inner) = 0;
    }

    /// Makes every later lookup of a commit fail.
    pub(super) fn blind(&self) {
        self.is_blind.store(true, Ordering::Release);
    }

    pub(in crate::store) fn before_look(&self) -> Result<(), sqlx::Error> {
        // A failure that is not transient, so that it is not retried.
        if self.is_blind.load(Ordering::Acquire) { Err(sqlx::Error::RowNotFound) } else { Ok(()) }
    }

    /// Returns how many commits were attempted since the faults were set.
    pub(super) fn commits(&self) -> u32 {
        *self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::store) async fn before_commit(&self, connection: &mut Connection) -> Result<(), sqlx::Error> {
        *self.commits.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        if self.take(Fault::Failed) {
            connection.run("ROLLBACK").await?;
            return Err(broken());
        }
        Ok(())
    }

    pub(in crate::store) fn after_commit(&self) -> Result<(), sqlx::Error> {
        let is_lost = self.take(Fault::Unanswered);
        if !is_lost {
            self.take(Fault::None);
        }
        if is_lost { Err(broken()) } else { Ok(()) }
    }

    fn take(&self, fault: Fault) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let is_next = next.front() == Some(&fault);
        if is_next {
            next.pop_front();
        }
        is_next
    }
}

fn broken() -> sqlx::Error {
    sqlx::Error::Io(io::ErrorKind::ConnectionReset.into())
}
