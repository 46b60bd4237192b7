//! [`Bank`]: payments whose unknown outcome a tool looks up, or a person states.

use std::sync::{Mutex, PoisonError};

use tool_runtime::{Reconciled, capability};

/// A bank statement, on which a payment may be.
#[capability(effect = external_side_effect)]
pub trait Statement {
    /// Whether the bill was paid. `None` if the bank does not know.
    fn paid(&self) -> Option<bool>;
}

/// A bank that knows no payment until [`learn`](Self::learn) is called.
#[derive(Debug, Default)]
pub struct Bank(Mutex<Option<bool>>);

impl Bank {
    /// Lets the bank know whether the bill was paid.
    pub fn learn(&self, paid: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(paid);
    }
}

impl Statement for Bank {
    fn paid(&self) -> Option<bool> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reconciles a payment with the statement. `receipt` returns the result of one that was made.
pub fn reconciled<T>(statement: &dyn Statement, receipt: impl FnOnce() -> T) -> Reconciled<T> {
    match statement.paid() {
        None => Reconciled::Unknown,
        Some(false) => Reconciled::Prevented,
        Some(true) => Reconciled::TookEffect(receipt()),
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
