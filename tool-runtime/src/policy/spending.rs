//! [`Spending`]: what a run has spent and what its calls hold.
//!
//! What is spent and what is held together never pass a limit: calls that run at the same time each hold their share.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::call::usage::Usage;
use crate::policy::budget::RunBudget;

/// An amount of everything that a run has a budget of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spend {
    /// Calls.
    pub calls: u64,
    /// Time of calls; kept only when the run has a budget of it.
    pub time: Duration,
    /// Tokens, read and written.
    pub tokens: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens written to reason.
    pub reasoning_tokens: u64,
    /// Cost. What is negative or no number counts as 0.
    pub cost: f64,
}

impl Spend {
    /// One call that may take up to `time`, or as long as the budget lasts.
    #[must_use]
    pub(crate) fn call(time: Option<Duration>) -> Self {
        Self { calls: 1, time: time.unwrap_or(Duration::MAX), ..Self::default() }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            time: self.time.saturating_add(other.time),
            tokens: self.tokens.saturating_add(other.tokens),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            // Kept a number that JSON can write: a snapshot holds it.
            cost: (self.cost + other.cost.max(0.0)).min(f64::MAX),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            time: self.time.saturating_sub(other.time),
            tokens: self.tokens.saturating_sub(other.tokens),
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(other.reasoning_tokens),
            cost: (self.cost - other.cost).max(0.0),
        }
    }
}

/// A budget of a run is used up, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetExceeded {
    /// `budgets.run.calls`
    Calls,
    /// `budgets.run.time_ms`
    Time,
    /// `budgets.run.tokens`
    Tokens,
    /// `budgets.run.input_tokens`
    InputTokens,
    /// `budgets.run.output_tokens`
    OutputTokens,
    /// `budgets.run.reasoning_tokens`
    ReasoningTokens,
    /// `budgets.run.cost`
    Cost,
}

impl BudgetExceeded {
    /// The key of the budget in the policy.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Calls => "budgets.run.calls",
            Self::Time => "budgets.run.time_ms",
            Self::Tokens => "budgets.run.tokens",
            Self::InputTokens => "budgets.run.input_tokens",
            Self::OutputTokens => "budgets.run.output_tokens",
            Self::ReasoningTokens => "budgets.run.reasoning_tokens",
            Self::Cost => "budgets.run.cost",
        }
    }

    /// The stable code, whichever budget it is.
    #[must_use]
    pub const fn code(self) -> &'static str {
        "budget_exceeded"
    }
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calls => "the run may make no more calls; answer with what you have",
            Self::Time => "the run has used up the time for its calls; answer with what you have",
            Self::Tokens => "the run has used up its tokens; answer with what you have",
            Self::InputTokens => "the run may read no more tokens; answer with what you have",
            Self::OutputTokens => "the run may write no more tokens; answer with what you have",
            Self::ReasoningTokens => "the run has used up its tokens for reasoning; answer with what you have",
            Self::Cost => "the run has used up what it may cost; answer with what you have",
        })
    }
}

impl std::error::Error for BudgetExceeded {}

/// What a run has spent and holds. Clones share it; it never waits.
#[derive(Debug, Clone)]
pub(crate) struct Spending(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    budget: RunBudget,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    spent: Spend,
    held: Spend,
}

impl Spending {
    /// Creates an account with no amount spent or held.
    #[must_use]
    pub(crate) fn new(budget: RunBudget) -> Self {
        Self(Arc::new(Shared { budget, books: Mutex::default() }))
    }

    /// Holds what a call may use, before it is dispatched. Time is cut to what is left of the run's, see
    /// [`Reservation::time`]; everything else is granted in full or refused.
    pub(crate) fn reserve(&self, wanted: Spend) -> Result<Reservation, BudgetExceeded> {
        let mut books = self.0.books();
        let held = self.0.budget.grant(books.spent.plus(books.held), wanted)?;
        books.held = books.held.plus(held);
        drop(books);
        // The clock is read only when somebody wants to know.
        let started = self.0.budget.time_ms.map(|_| Instant::now());
        Ok(Reservation { shared: Arc::clone(&self.0), held, used: None, started })
    }

    /// Holds one call of a graph. Its time is part of the time that the call of the graph holds.
    pub(crate) fn carve(&self) -> Result<Reservation, BudgetExceeded> {
        let mut books = self.0.books();
        let budget = RunBudget { time_ms: None, ..self.0.budget };
        let held = budget.grant(books.spent.plus(books.held), Spend { calls: 1, ..Spend::default() })?;
        books.held = books.held.plus(held);
        drop(books);
        Ok(Reservation { shared: Arc::clone(&self.0), held, used: None, started: None })
    }

    /// Books what was used without a reservation, as a model's turn.
    pub(crate) fn charge(&self, usage: Usage, cost: f64) {
        let mut books = self.0.books();
        books.spent = books.spent.plus(Spend {
            tokens: usage.total(),
            input_tokens: usage.total_input(),
            output_tokens: usage.total_output(),
            reasoning_tokens: usage.reasoning_tokens,
            cost,
            ..Spend::default()
        });
    }

    /// Books what a run spent in an earlier process.
    pub(crate) fn restore(&self, spent: Spend) {
        let mut books = self.0.books();
        books.spent = books.spent.plus(spent);
    }

    /// The budget that a model's turn would overdraw: tokens of a kind, or cost. A run without calls left may still answer.
    #[must_use]
    pub(crate) fn exhausted_for_model(&self) -> Option<BudgetExceeded> {
        let budget = RunBudget { calls: None, time_ms: None, ..self.0.budget };
        budget.grant(self.0.books().spent, Spend::default()).err()
    }

    /// Returns what was spent.
    #[must_use]
    pub(crate) fn spent(&self) -> Spend {
        self.0.books().spent
    }
}

impl RunBudget {
    /// What may be held on top of what is taken.
    fn grant(&self, taken: Spend, wanted: Spend) -> Result<Spend, BudgetExceeded> {
        let whole = |limit: Option<u64>, taken: u64, wanted: u64| {
            limit.is_none_or(|limit| taken < limit && wanted <= limit - taken)
        };
        if !whole(self.calls, taken.calls, wanted.calls) {
            return Err(BudgetExceeded::Calls);
        }
        let tokens = [
            (self.tokens, taken.tokens, wanted.tokens, BudgetExceeded::Tokens),
            (self.input_tokens, taken.input_tokens, wanted.input_tokens, BudgetExceeded::InputTokens),
            (self.output_tokens, taken.output_tokens, wanted.output_tokens, BudgetExceeded::OutputTokens),
            (self.reasoning_tokens, taken.reasoning_tokens, wanted.reasoning_tokens, BudgetExceeded::ReasoningTokens),
        ];
        if let Some((.., kind)) = tokens.into_iter().find(|(limit, taken, wanted, _)| !whole(*limit, *taken, *wanted)) {
            return Err(kind);
        }
        // Written so that NaN is refused.
        if self.cost.is_some_and(|limit| !(taken.cost < limit && wanted.cost <= limit - taken.cost)) {
            return Err(BudgetExceeded::Cost);
        }
        let left = match self.time_ms {
            None => Duration::ZERO,
            Some(limit) => match Duration::from_millis(limit).saturating_sub(taken.time) {
                Duration::ZERO => return Err(BudgetExceeded::Time),
                left => left,
            },
        };
        Ok(Spend { time: wanted.time.min(left), cost: wanted.cost.max(0.0), ..wanted })
    }
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one call holds. Dropping it books what it holds, with the time that has passed; so does a dropped future.
#[derive(Debug)]
#[must_use = "dropped immediately, it is booked as used"]
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    held: Spend,
    used: Option<Spend>,
    started: Option<Instant>,
}

impl Reservation {
    /// How long the call may take; `None` when the run has no budget of time.
    #[must_use]
    pub(crate) fn time(&self) -> Option<Duration> {
        self.started.map(|_| self.held.time)
    }

    /// Books what the call used in place of what it held: its calls, the time that has passed, and these.
    pub(crate) fn settle(mut self, tokens: u64, cost: f64) {
        self.used = Some(Spend { tokens, cost, ..self.held });
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut used = self.used.unwrap_or(self.held);
        used.time = self.started.map(|started| started.elapsed()).unwrap_or_default();
        let mut books = self.shared.books();
        books.held = books.held.minus(self.held);
        books.spent = books.spent.plus(used);
    }
}

#[cfg(test)]
mod tests;
