//! [`Spending`]: the amounts that a run has spent, and the amounts that its open calls reserve.
//!
//! A call reserves its maximum before it begins, so calls that run at the same time cannot exceed a limit together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::call::usage::Usage;
use crate::policy::allowance::Allowance;
use crate::policy::exceeded::{BudgetExceeded, Holder};

/// An amount of every resource that has a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Spend {
    /// The number of calls.
    pub calls: u64,
    /// The number of turns of the model.
    pub turns: u64,
    /// The time of calls; counted only in a run with a time budget.
    pub time: Duration,
    /// Bytes of results.
    pub bytes: u64,
    /// Tokens, read and written.
    pub tokens: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens written as reasoning.
    pub reasoning_tokens: u64,
    /// Cost. A negative value or NaN is treated as 0 when it is added.
    pub cost: f64,
}

impl Spend {
    /// Returns the maximum of one call: `time`, or all remaining time if `None`, and a result of `bytes`.
    #[must_use]
    pub(crate) fn call(time: Option<Duration>, bytes: usize) -> Self {
        Self { calls: 1, time: time.unwrap_or(Duration::MAX), bytes: bytes as u64, ..Self::default() }
    }

    /// Returns the amounts of one turn of the model.
    #[must_use]
    pub(crate) fn turn(usage: Usage, cost: f64) -> Self {
        Self {
            turns: 1,
            tokens: usage.total(),
            input_tokens: usage.total_input(),
            output_tokens: usage.total_output(),
            reasoning_tokens: usage.reasoning_tokens,
            cost,
            ..Self::default()
        }
    }

    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            turns: self.turns.saturating_add(other.turns),
            time: self.time.saturating_add(other.time),
            bytes: self.bytes.saturating_add(other.bytes),
            tokens: self.tokens.saturating_add(other.tokens),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            // A snapshot stores the cost in JSON, which has no infinity.
            cost: (self.cost + other.cost.max(0.0)).min(f64::MAX),
        }
    }

    #[must_use]
    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            turns: self.turns.saturating_sub(other.turns),
            time: self.time.saturating_sub(other.time),
            bytes: self.bytes.saturating_sub(other.bytes),
            tokens: self.tokens.saturating_sub(other.tokens),
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(other.reasoning_tokens),
            cost: (self.cost - other.cost.max(0.0)).max(0.0),
        }
    }
}

/// The spent and reserved amounts of a run, shared by all clones. No method waits.
#[derive(Debug, Clone)]
pub(crate) struct Spending(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The budgets. All of them apply.
    budgets: Vec<(Holder, Allowance)>,
    /// The number of calls that may run at the same time. Calls without their own time limit share the run's time.
    places: u32,
    books: Mutex<Totals>,
}

#[derive(Debug, Default)]
struct Totals {
    spent: Spend,
    held: Spend,
    /// The number of open calls that reserve time.
    timed: u32,
}

impl Spending {
    /// Creates a spending without any amounts, for a run with up to `parallel` calls at a time.
    #[must_use]
    pub(crate) fn new(budgets: impl IntoIterator<Item = (Holder, Allowance)>, parallel: usize) -> Self {
        // A budget without limits is dropped here, so that no call has to check it.
        let budgets = budgets.into_iter().filter(|(_, allowance)| !allowance.is_empty()).collect();
        let places = u32::try_from(parallel).unwrap_or(u32::MAX);
        Self(Arc::new(Shared { budgets, places, books: Mutex::default() }))
    }

    /// Reserves the amounts that a call may use, before the call is dispatched. Time is cut to the run's remaining
    /// time, or to a share of it if the call has no time limit of its own; see [`Reservation::time`]. All other amounts
    /// are reserved in full or refused.
    ///
    /// `None` if there are no budgets. Calls are then counted only when they end.
    pub(crate) fn reserve(&self, wanted: Spend) -> Result<Option<Reservation>, BudgetExceeded> {
        if self.0.budgets.is_empty() {
            return Ok(None);
        }
        let mut books = self.0.books();
        let taken = books.spent.plus(books.held);
        let share = (wanted.time == Duration::MAX).then(|| self.0.share(taken, books.timed)).flatten();
        let wanted = Spend { time: share.unwrap_or(wanted.time), ..wanted };
        let held = self.0.grant(Allowance::for_call, taken, wanted)?;
        books.held = books.held.plus(held);
        // The clock is read only for a time budget.
        let timed = self.0.budgets.iter().any(|(_, budget)| budget.time_ms.is_some());
        books.timed = books.timed.saturating_add(u32::from(timed));
        drop(books);
        let started = timed.then(Instant::now);
        Ok(Some(self.reservation(held, started)))
    }

    fn reservation(&self, held: Spend, started: Option<Instant>) -> Reservation {
        Reservation { shared: Arc::clone(&self.0), held, started, bytes: 0, is_used: true }
    }

    /// Reserves the amounts that a call inside a graph may use. Its time is part of the time that the call of the graph
    /// reserves.
    pub(crate) fn carve(&self, bytes: usize) -> Result<Option<Reservation>, BudgetExceeded> {
        if self.0.budgets.is_empty() {
            return Ok(None);
        }
        let mut books = self.0.books();
        let untimed = |budget: Allowance| Allowance { time_ms: None, ..budget.for_call() };
        let held = self.0.grant(untimed, books.spent.plus(books.held), Spend::call(Some(Duration::ZERO), bytes))?;
        books.held = books.held.plus(held);
        drop(books);
        Ok(Some(self.reservation(held, None)))
    }

    /// Whether there are no budgets, so that calls reserve nothing.
    #[must_use]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.0.budgets.is_empty()
    }

    /// Whether a budget satisfies the condition.
    pub(crate) fn any(&self, is: fn(&Allowance) -> bool) -> bool {
        self.0.budgets.iter().any(|(_, budget)| is(budget))
    }

    /// Books usage that was not reserved, such as a model's turn.
    pub(crate) fn charge(&self, used: Spend) {
        let mut books = self.0.books();
        books.spent = books.spent.plus(used);
    }

    /// Books the amounts that a run spent in an earlier process.
    pub(crate) fn restore(&self, spent: Spend) {
        let mut books = self.0.books();
        books.spent = books.spent.plus(spent);
    }

    /// Returns the budget that allows no further turn of the model: turns, tokens or cost. A run without calls left may
    /// still answer.
    #[must_use]
    pub(crate) fn exhausted_for_model(&self) -> Option<BudgetExceeded> {
        self.0.grant(Allowance::for_model, self.0.books().spent, Spend::default()).err()
    }

    /// Returns the spent amounts.
    #[must_use]
    pub(crate) fn spent(&self) -> Spend {
        self.0.books().spent
    }
}

impl Shared {
    /// Returns the remaining time, divided by the number of calls that may still begin. `None` without a time budget.
    fn share(&self, taken: Spend, timed: u32) -> Option<Duration> {
        let left = self.budgets.iter().filter_map(|(_, budget)| budget.time_left(taken)).min()?;
        left.checked_div(self.places.saturating_sub(timed).max(1))
    }

    /// Returns the amounts that may be reserved in addition to `taken`, with time cut to the remaining time. `part`
    /// selects the limits that apply.
    fn grant(&self, part: fn(Allowance) -> Allowance, taken: Spend, wanted: Spend) -> Result<Spend, BudgetExceeded> {
        let budgets = || self.budgets.iter().map(|(holder, budget)| (*holder, part(*budget)));
        let left = budgets().filter_map(|(_, budget)| budget.time_left(taken)).min();
        let cut = Spend { time: left.map_or(Duration::ZERO, |left| wanted.time.min(left)), ..wanted };
        let refused = |(holder, budget): (Holder, Allowance)| {
            budget.refuses(taken, cut).map(|amount| BudgetExceeded::new(holder, amount, None))
        };
        match budgets().find_map(refused) {
            None => Ok(Spend { cost: wanted.cost.max(0.0), ..cut }),
            Some(exceeded) => Err(exceeded),
        }
    }

    fn books(&self) -> MutexGuard<'_, Totals> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The amounts that one call reserves. Dropping the reservation books the call, the elapsed time and the size of the
/// result, even if the call's future is dropped before its result. With `is_used = false`, it only releases the
/// amounts.
#[derive(Debug)]
#[must_use = "a reservation that is dropped immediately is booked as used"]
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    held: Spend,
    /// When the call began; `None` without a time budget.
    started: Option<Instant>,
    bytes: u64,
    /// Whether the drop books the call. If `false`, it only releases the amounts.
    pub(crate) is_used: bool,
}

impl Reservation {
    /// Returns the time that the call may take. `None` without a time budget.
    #[must_use]
    pub(crate) fn time(&self) -> Option<Duration> {
        self.started.map(|_| self.held.time)
    }

    /// Sets the size of the result, which the drop books in place of the reserved bytes.
    pub(crate) const fn settle(&mut self, bytes: u64) {
        self.bytes = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let time = self.started.map(|started| started.elapsed()).unwrap_or_default();
        let used = Spend { time, bytes: self.bytes, ..self.held };
        let mut books = self.shared.books();
        books.held = books.held.minus(self.held);
        books.timed = books.timed.saturating_sub(u32::from(self.started.is_some()));
        if self.is_used {
            books.spent = books.spent.plus(used);
        }
    }
}

#[cfg(test)]
mod tests;
