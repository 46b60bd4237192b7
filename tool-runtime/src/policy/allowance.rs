//! [`Allowance`]: the total budget of a run, a task of a graph, a principal or a tenant.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::policy::exceeded::Amount;
use crate::policy::parse::{self, Table};
use crate::policy::spending::Spend;
use crate::policy::window::Window;

/// The total budget of a run, a task of a graph, a principal or a tenant. An absent key means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Allowance {
    /// The period after which the used amounts return to zero; for principals and tenants only.
    #[serde(deserialize_with = "some_window", skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The number of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The number of turns of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// The total time of calls, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// The total size of results, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Tokens that the model reads and writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tokens that the model reads, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens that the model writes, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens that the model writes to reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Cost, in the application's own unit.
    #[serde(deserialize_with = "parse::amount", skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The maximum number of budgets of a principal or a tenant. Each has its own window, and every call is booked in all
/// of them.
const MOST_WINDOWS: usize = 8;

impl Allowance {
    /// Returns the first limit that `taken` has reached, or that `taken` plus `wanted` would exceed. `None` if there is
    /// no such limit.
    pub(crate) fn refuses(&self, taken: Spend, wanted: Spend) -> Option<Amount> {
        let passes = |limit: Option<u64>, taken: u64, wanted: u64| {
            limit.is_some_and(|limit| taken >= limit || wanted > limit - taken)
        };
        let counted = [
            (self.calls, taken.calls, wanted.calls, Amount::Calls),
            (self.turns, taken.turns, wanted.turns, Amount::Turns),
            (self.tokens, taken.tokens, wanted.tokens, Amount::Tokens),
            (self.input_tokens, taken.input_tokens, wanted.input_tokens, Amount::InputTokens),
            (self.output_tokens, taken.output_tokens, wanted.output_tokens, Amount::OutputTokens),
            (self.reasoning_tokens, taken.reasoning_tokens, wanted.reasoning_tokens, Amount::ReasoningTokens),
            (self.bytes, taken.bytes, wanted.bytes, Amount::Bytes),
        ];
        if let Some((.., amount)) =
            counted.into_iter().find(|(limit, taken, wanted, _)| passes(*limit, *taken, *wanted))
        {
            return Some(amount);
        }
        // Every comparison with NaN is false, so this form refuses it.
        if self.cost.is_some_and(|limit| !(taken.cost < limit && wanted.cost <= limit - taken.cost)) {
            return Some(Amount::Cost);
        }
        let passes = self.time_left(taken).is_some_and(|left| left.is_zero() || wanted.time > left);
        passes.then_some(Amount::Time)
    }

    /// Returns the time that is left for calls. `None` without a limit.
    pub(crate) fn time_left(&self, taken: Spend) -> Option<Duration> {
        self.time_ms.map(|limit| Duration::from_millis(limit).saturating_sub(taken.time))
    }

    /// Returns the limits for a turn of the model: all except those of calls, their time and their results. When no
    /// calls are left, the model may still answer.
    pub(crate) const fn for_model(self) -> Self {
        Self { calls: None, time_ms: None, bytes: None, ..self }
    }

    /// Returns the limits for a call. When no turns are left, a call may still run.
    pub(crate) const fn for_call(self) -> Self {
        Self { turns: None, ..self }
    }

    /// Returns the lower value of each limit.
    pub(crate) fn narrower(self, other: Self) -> Self {
        Self {
            window: least(self.window, other.window),
            calls: least(self.calls, other.calls),
            turns: least(self.turns, other.turns),
            time_ms: least(self.time_ms, other.time_ms),
            bytes: least(self.bytes, other.bytes),
            tokens: least(self.tokens, other.tokens),
            input_tokens: least(self.input_tokens, other.input_tokens),
            output_tokens: least(self.output_tokens, other.output_tokens),
            reasoning_tokens: least(self.reasoning_tokens, other.reasoning_tokens),
            cost: self.cost.into_iter().chain(other.cost).reduce(f64::min),
        }
    }

    /// Whether tokens or their cost are limited.
    pub(crate) const fn is_of_tokens(&self) -> bool {
        self.tokens.is_some()
            || self.input_tokens.is_some()
            || self.output_tokens.is_some()
            || self.cost.is_some()
            || self.is_of_reasoning()
    }

    /// Whether tokens of reasoning are limited.
    pub(crate) const fn is_of_reasoning(&self) -> bool {
        self.reasoning_tokens.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        Self { window: None, ..*self } == Self::default()
    }
}

pub(super) fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

fn some_window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Window>, D::Error> {
    Window::deserialize(deserializer).map(Some)
}

/// Reads the budget of a run, which has no window.
pub(super) fn of_run<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Allowance, D::Error> {
    parse::table(deserializer).and_then(once)
}

/// Reads the budgets for tasks of graphs, by the graph's name.
pub(super) fn of_graphs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Allowance>, D::Error> {
    let graphs: BTreeMap<String, Allowance> = parse::table_map(deserializer)?;
    for allowance in graphs.values() {
        once::<D::Error>(*allowance)?;
        limits_something(allowance)?;
    }
    Ok(graphs)
}

fn once<E: Error>(allowance: Allowance) -> Result<Allowance, E> {
    match allowance.window {
        None => Ok(allowance),
        Some(_) => Err(E::custom("`window` is for the budgets of a principal or a tenant; remove it")),
    }
}

fn limits_something<E: Error>(allowance: &Allowance) -> Result<(), E> {
    if allowance.is_empty() {
        return Err(E::custom("this budget limits nothing; write `calls`, `tokens`, `cost` or another limit"));
    }
    Ok(())
}

/// Reads the budgets of a principal or a tenant: a table, or a list of tables with different windows.
pub(super) fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Allowance>, D::Error> {
    struct Tables;
    impl<'de> Visitor<'de> for Tables {
        type Value = Vec<Allowance>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table, or a list of tables")
        }

        fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
            checked(vec![Allowance::deserialize(MapAccessDeserializer::new(entries))?])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(Table(allowance)) = items.next_element()? {
                all.push(allowance);
            }
            checked(all)
        }
    }
    deserializer.deserialize_any(Tables)
}

fn checked<E: Error>(all: Vec<Allowance>) -> Result<Vec<Allowance>, E> {
    let mut windows = Vec::new();
    for allowance in &all {
        let Some(window) = allowance.window else {
            return Err(E::custom(
                "this budget has no `window`; write the period after which it starts again at zero, for example `window = \"1h\"`",
            ));
        };
        limits_something(allowance)?;
        if windows.contains(&window) {
            return Err(E::custom("two budgets have the same `window`; write them as one"));
        }
        windows.push(window);
    }
    if all.len() > MOST_WINDOWS {
        return Err(E::custom(format!("more than {MOST_WINDOWS} windows; write fewer")));
    }
    Ok(all)
}
