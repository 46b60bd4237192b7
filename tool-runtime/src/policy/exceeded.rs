//! [`BudgetExceeded`]: the budget that is used up, and its holder.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The holder of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Holder {
    /// One run.
    Run,
    /// One task of a graph.
    Graph,
    /// All runs of a principal in a tenant.
    Principal,
    /// All runs of a tenant.
    Tenant,
}

/// The resource that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Calls,
    Turns,
    Time,
    Bytes,
    Tokens,
    InputTokens,
    OutputTokens,
    ReasoningTokens,
    Cost,
}

/// The error for a budget that is used up, or that a call or turn would exceed. Its message may go to a model.
///
/// ```
/// use tool_runtime::wire::Usage;
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let policy = ToolPolicy::from_toml("budgets.run.tokens = 100")?;
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, policy).build()?;
/// let run = runner.run(RunOptions::new());
/// assert_eq!(run.exhausted().await?, None);
/// run.account(Usage::new(90, 20), 0.0);
/// assert_eq!(run.exhausted().await?.map(|budget| budget.key()), Some("budgets.run.tokens"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
        /// The keys of one resource for each holder, in the order of [`Holder`].
        macro_rules! keys {
            ($key:literal) => {
                [
                    concat!("budgets.run.", $key),
                    concat!("budgets.graphs.NAME.", $key),
                    concat!("budgets.principal.", $key),
                    concat!("budgets.tenant.", $key),
                ]
            };
        }
        let [run, graph, principal, tenant] = match self.amount {
            Amount::Calls => keys!("calls"),
            Amount::Turns => keys!("turns"),
            Amount::Time => keys!("time_ms"),
            Amount::Bytes => keys!("bytes"),
            Amount::Tokens => keys!("tokens"),
            Amount::InputTokens => keys!("input_tokens"),
            Amount::OutputTokens => keys!("output_tokens"),
            Amount::ReasoningTokens => keys!("reasoning_tokens"),
            Amount::Cost => keys!("cost"),
        };
        match self.holder {
            Holder::Run => run,
            Holder::Graph => graph,
            Holder::Principal => principal,
            Holder::Tenant => tenant,
        }
    }

    /// Returns the time at which the budget starts again at zero. `None` for a run or a graph: their budgets never do.
    #[must_use]
    pub const fn until(self) -> Option<Timestamp> {
        self.until
    }

    /// Returns the stable code, which is the same for every budget.
    #[must_use]
    pub const fn code(self) -> &'static str {
        "budget_exceeded"
    }
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.holder {
            Holder::Run => "the run ",
            Holder::Graph => "the graph ",
            Holder::Principal => "the principal ",
            Holder::Tenant => "the tenant ",
        })?;
        f.write_str(match self.amount {
            Amount::Calls => "may make no more calls",
            Amount::Turns => "has used up its turns",
            Amount::Time => "has used up the time for its calls",
            Amount::Bytes => "may read no more results",
            Amount::Tokens => "has used up its tokens",
            Amount::InputTokens => "may read no more tokens",
            Amount::OutputTokens => "may write no more tokens",
            Amount::ReasoningTokens => "has used up its tokens for reasoning",
            Amount::Cost => "has used up its cost budget",
        })?;
        if let Some(until) = self.until {
            write!(f, " until {until}")?;
        }
        write!(f, " ({}); answer with what you have", self.key())
    }
}

impl std::error::Error for BudgetExceeded {}
