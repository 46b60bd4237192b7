//! The policy: data that decides which calls run, which wait for a person and what a run may spend.
//!
//! A tool that the policy does not name is denied. Only [`ToolPolicy::from_path`] does IO. A policy with every key, all
//! of them optional:
//!
//! ```toml
#![doc = include_str!("policy/example.toml")]
//! ```

mod allowance;
mod approvals;
mod argument_rule;
mod budget;
#[cfg(feature = "cedar")]
mod cedar;
mod check;
mod compile;
mod data;
mod decimal;
mod decision;
mod exceeded;
mod label;
mod loop_guard;
mod mcp_rule;
mod names;
#[cfg(not(feature = "cedar"))]
mod no_cedar;
#[cfg(not(feature = "toml"))]
mod no_toml;
mod notice_rule;
mod parse;
mod party;
mod problem;
mod read;
mod record_rule;
mod resource;
mod rule_verdict;
mod run_policy;
mod server_rule;
mod spending;
mod terms;
#[cfg(feature = "toml")]
mod toml_text;
pub(crate) mod tool_policy;
mod unready;
mod window;

pub(crate) use allowance::Allowance;
pub(crate) use approvals::Decided;
pub(crate) use argument_rule::ArgumentRule;
pub(crate) use budget::ToolLimits;
pub use exceeded::BudgetExceeded;
pub(crate) use exceeded::Holder;
pub(crate) use loop_guard::{Last, LoopGuard, LoopThresholds, LoopVerdict};
pub(crate) use names::{RunTools, ToolNames, are_within, common_tools};
#[cfg(not(feature = "cedar"))]
use no_cedar as cedar;
#[cfg(not(feature = "toml"))]
use no_toml as toml_text;
pub(crate) use notice_rule::{LinkIds, NoticeEvent, NoticeTerms};
pub(crate) use party::Party;
pub(crate) use resource::Standing;
pub use resource::{PolicyContext, PolicyResource};
pub(crate) use rule_verdict::RuleVerdict;
pub(crate) use run_policy::{Policies, RunPolicy};
pub(crate) use spending::{Reservation, Spend, Spending};
pub(crate) use terms::Terms;
pub(crate) use tool_policy::ToolPolicy;
pub(crate) use unready::Unready;
pub(crate) use window::Window;

#[cfg(test)]
mod tests;
