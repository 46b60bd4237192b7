//! [`Bank`]: payments whose unknown outcome a tool looks up, or a person states.

use std::future::pending;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Semaphore;
use tool_runtime::{Reconciled, capability};

/// A bank statement, on which a payment may be.
#[capability(effect = external_side_effect)]
pub trait Statement {
    /// The answer of the bank now.
    fn answer(&self) -> BankAnswer;

    /// A tool begins (`true`) or ends to wait for a bank that does not answer.
    fn waits(&self, begins: bool);
}

/// The answer of a [`Bank`] to the question whether a bill was paid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BankAnswer {
    /// The bank does not know.
    #[default]
    Unknown,
    /// It was paid.
    Paid,
    /// It was not, and will not be.
    NotPaid,
    /// Its client panics.
    Panics,
    /// It does not answer.
    Hangs,
}

/// A bank that knows no payment until [`set`](Self::set) is called.
#[derive(Debug)]
pub struct Bank {
    answer: Mutex<BankAnswer>,
    /// A permit for each tool that began to wait for an answer.
    pub waiting: Semaphore,
    /// A permit for each tool that stopped waiting, because its call was dropped.
    pub dropped: Semaphore,
}

impl Default for Bank {
    fn default() -> Self {
        Self { answer: Mutex::default(), waiting: Semaphore::new(0), dropped: Semaphore::new(0) }
    }
}

impl Bank {
    /// Sets the answer.
    pub fn set(&self, answer: BankAnswer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }
}

impl Statement for Bank {
    fn answer(&self) -> BankAnswer {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waits(&self, begins: bool) {
        if begins { &self.waiting } else { &self.dropped }.add_permits(1);
    }
}

/// A tool that waits for an answer.
struct Waits<'a>(&'a dyn Statement);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waits(false);
    }
}

/// Reconciles a payment with the statement. `receipt` returns the result of one that was made.
///
/// # Panics
/// The bank's client does.
pub async fn reconciled<T>(statement: &dyn Statement, receipt: impl FnOnce() -> T) -> Reconciled<T> {
    match statement.answer() {
        BankAnswer::Unknown => Reconciled::Unknown,
        BankAnswer::NotPaid => Reconciled::Prevented,
        BankAnswer::Paid => Reconciled::TookEffect(receipt()),
        BankAnswer::Panics => panic!("CANARY"),
        BankAnswer::Hangs => {
            let _waits = Waits(statement);
            statement.waits(true);
            pending().await
        }
    }
}

/// Returns a person's statement about an outcome with an owned result.
#[must_use]
pub fn owned(outcome: Reconciled<&str>) -> Reconciled<String> {
    match outcome {
        Reconciled::TookEffect(result) => Reconciled::TookEffect(result.to_owned()),
        Reconciled::Prevented => Reconciled::Prevented,
        Reconciled::Unknown => Reconciled::Unknown,
    }
}
