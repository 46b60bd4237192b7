//! [`BudgetExceeded`]: which budget is used up, and whose it is.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Whose budget it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Holder {
    /// One run.
    Run,
    /// All runs of a principal in a tenant.
    Principal,
    /// All runs of a tenant.
    Tenant,
}

/// What a budget is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Calls,
    Time,
    Bytes,
    Tokens,
    InputTokens,
    OutputTokens,
    ReasoningTokens,
    Cost,
}

/// A budget is used up, or would be. Its text is one that a model can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetExceeded {
    holder: Holder,
    amount: Amount,
    until: Option<Timestamp>,
}

impl BudgetExceeded {
    pub(crate) const fn new(holder: Holder, amount: Amount, until: Option<Timestamp>) -> Self {
        Self { holder, amount, until }
    }

    /// Returns the key of the budget in the policy, such as `budgets.tenant.calls`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        let (run, principal, tenant) = match self.amount {
            Amount::Calls => ("budgets.run.calls", "budgets.principal.calls", "budgets.tenant.calls"),
            Amount::Time => ("budgets.run.time_ms", "budgets.principal.time_ms", "budgets.tenant.time_ms"),
            Amount::Bytes => ("budgets.run.bytes", "budgets.principal.bytes", "budgets.tenant.bytes"),
            Amount::Tokens => ("budgets.run.tokens", "budgets.principal.tokens", "budgets.tenant.tokens"),
            Amount::InputTokens => {
                ("budgets.run.input_tokens", "budgets.principal.input_tokens", "budgets.tenant.input_tokens")
            }
            Amount::OutputTokens => {
                ("budgets.run.output_tokens", "budgets.principal.output_tokens", "budgets.tenant.output_tokens")
            }
            Amount::ReasoningTokens => (
                "budgets.run.reasoning_tokens",
                "budgets.principal.reasoning_tokens",
                "budgets.tenant.reasoning_tokens",
            ),
            Amount::Cost => ("budgets.run.cost", "budgets.principal.cost", "budgets.tenant.cost"),
        };
        match self.holder {
            Holder::Run => run,
            Holder::Principal => principal,
            Holder::Tenant => tenant,
        }
    }

    /// Returns when the budget begins again. `None` for a budget of a run, which never does.
    #[must_use]
    pub const fn until(self) -> Option<Timestamp> {
        self.until
    }

    /// The stable code, whichever budget it is.
    #[must_use]
    pub const fn code(self) -> &'static str {
        "budget_exceeded"
    }
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.holder {
            Holder::Run => "the run ",
            Holder::Principal => "the principal ",
            Holder::Tenant => "the tenant ",
        })?;
        f.write_str(match self.amount {
            Amount::Calls => "may make no more calls",
            Amount::Time => "has used up the time for its calls",
            Amount::Bytes => "may read no more results",
            Amount::Tokens => "has used up its tokens",
            Amount::InputTokens => "may read no more tokens",
            Amount::OutputTokens => "may write no more tokens",
            Amount::ReasoningTokens => "has used up its tokens for reasoning",
            Amount::Cost => "has used up what it may cost",
        })?;
        if let Some(until) = self.until {
            write!(f, " until {until}")?;
        }
        write!(f, " ({}); answer with what you have", self.key())
    }
}

impl std::error::Error for BudgetExceeded {}
