//! [`ArgumentRule`]: a rule on one argument, and its written form.

use serde::{Deserialize, Serialize};

use crate::json::Tree;
use crate::policy::decimal::Decimal;
use crate::policy::parse::Table;
use crate::policy::rule_verdict::RuleVerdict;

/// A rule on one argument. When it fires, the call is denied or waits for a person.
///
/// ```toml
/// [[tools.mail__send.arguments]]
/// pointer = "/to"
/// one_of = ["office@example.org"]
/// otherwise = "deny"
/// ```
///
/// If the pointer leads to an array, the rule tests each item. A rule with `then` fires if some value meets the
/// condition. A rule with `otherwise` fires if some value does not meet it, or if the argument is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Table<ArgumentRuleTable>", into = "ArgumentRuleTable")]
pub(crate) struct ArgumentRule {
    /// JSON Pointer (RFC 6901) into the arguments.
    pub pointer: String,
    /// The condition on the argument.
    pub condition: Condition,
    /// Whether the rule fires on a match or on a mismatch.
    pub when: Fires,
    /// The verdict when the rule fires.
    pub verdict: RuleVerdict,
}

/// When a rule fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fires {
    /// Written as `then = ..`.
    Match,
    /// Written as `otherwise = ..`.
    Mismatch,
}

/// A condition on an argument.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    /// Equal to this value. Numbers compare by value: `5.0` equals `5`.
    Equals(RuleValue),
    /// Equal to one of these values.
    OneOf(Vec<RuleValue>),
    /// A string with this prefix. Nothing is normalised: `/data/../etc` begins with `/data/`.
    Prefix(String),
    /// A number, or a string with a decimal number, up to this limit. Compared without rounding.
    AtMost(Limit),
}

/// The limit of `at_most` as the policy writes it, and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limit {
    written: RuleValue,
    pub(super) value: Decimal,
}

/// A value in a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RuleValue {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// Text, compared byte for byte.
    Text(String),
}

impl ArgumentRule {
    /// Whether the rule fires for these arguments.
    pub(crate) fn fires(&self, arguments: &Tree<'_>) -> bool {
        let values = match arguments.pointer(&self.pointer) {
            None => return self.when == Fires::Mismatch,
            Some(Tree::Array(items)) => items.as_slice(),
            Some(value) => std::slice::from_ref(value),
        };
        let wanted = self.when == Fires::Match;
        values.iter().any(|value| self.condition.holds(value) == wanted)
    }
}

impl Condition {
    fn holds(&self, value: &Tree<'_>) -> bool {
        match self {
            Self::Equals(wanted) => wanted.is(value),
            Self::OneOf(wanted) => wanted.iter().any(|wanted| wanted.is(value)),
            Self::Prefix(prefix) => value.as_str().is_some_and(|text| text.starts_with(prefix.as_str())),
            Self::AtMost(limit) => {
                let number = match value {
                    Tree::String(text) => Decimal::parse(text),
                    value => decimal(value),
                };
                number.is_some_and(|number| number <= limit.value)
            }
        }
    }
}

impl RuleValue {
    fn is(&self, value: &Tree<'_>) -> bool {
        match (self, value) {
            (Self::Bool(left), Tree::Bool(right)) => left == right,
            (Self::Text(left), Tree::String(right)) => left == right,
            (left, Tree::Int(right)) if left.as_i128().is_some() => left.as_i128() == Some((*right).into()),
            (left, Tree::UInt(right)) if left.as_i128().is_some() => left.as_i128() == Some((*right).into()),
            (left, right) => left.decimal().is_some_and(|left| decimal(right) == Some(left)),
        }
    }

    fn as_i128(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some((*number).into()),
            Self::UInt(number) => Some((*number).into()),
            Self::Bool(_) | Self::Float(_) | Self::Text(_) => None,
        }
    }

    /// Returns the number. `None` for a string, `true`, `false`, and a float that is not finite.
    fn decimal(&self) -> Option<Decimal> {
        match self {
            Self::Int(number) => Decimal::parse(&number.to_string()),
            Self::UInt(number) => Decimal::parse(&number.to_string()),
            Self::Float(number) => Decimal::of_float(*number),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

impl Limit {
    /// Reads a limit from a number or a numeric string. A string keeps digits that a number in TOML or JSON loses.
    fn of(written: RuleValue) -> Result<Self, &'static str> {
        let value = match &written {
            RuleValue::Text(text) => Decimal::parse(text),
            number => number.decimal(),
        };
        match value {
            Some(value) => Ok(Self { written, value }),
            None => Err("`at_most` is a finite number, such as 20 or \"19.99\""),
        }
    }
}

/// Returns the value of a JSON number. `None` for any other type.
fn decimal(value: &Tree<'_>) -> Option<Decimal> {
    match value {
        Tree::Int(number) => Decimal::parse(&number.to_string()),
        Tree::UInt(number) => Decimal::parse(&number.to_string()),
        Tree::Float(number) => Decimal::of_float(*number),
        _ => None,
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgumentRuleTable {
    pointer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    equals: Option<RuleValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    one_of: Option<Vec<RuleValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_most: Option<RuleValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    then: Option<RuleVerdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    otherwise: Option<RuleVerdict>,
}

impl TryFrom<Table<ArgumentRuleTable>> for ArgumentRule {
    type Error = &'static str;

    fn try_from(Table(written): Table<ArgumentRuleTable>) -> Result<Self, Self::Error> {
        if !written.pointer.starts_with('/') {
            return Err("the pointer of an argument rule starts with `/`, for example `/to`");
        }
        if written.pointer.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
            return Err("in the pointer of an argument rule `~` is written as `~0`, and `/` in a name as `~1`");
        }
        let condition = match (written.equals, written.one_of, written.prefix, written.at_most) {
            (Some(value), None, None, None) => Condition::Equals(value),
            (None, Some(values), None, None) if values.is_empty() => return Err("`one_of` names at least one value"),
            (None, Some(values), None, None) => Condition::OneOf(values),
            (None, None, Some(prefix), None) if prefix.is_empty() => return Err("an empty `prefix` fits any text"),
            (None, None, Some(prefix), None) => Condition::Prefix(prefix),
            (None, None, None, Some(limit)) => Condition::AtMost(Limit::of(limit)?),
            _ => return Err("an argument rule has exactly one of `equals`, `one_of`, `prefix` and `at_most`"),
        };
        let (when, verdict) = match (written.then, written.otherwise) {
            (Some(verdict), None) => (Fires::Match, verdict),
            (None, Some(verdict)) => (Fires::Mismatch, verdict),
            _ => return Err("an argument rule has exactly one of `then` and `otherwise`"),
        };
        Ok(Self { pointer: written.pointer, condition, when, verdict })
    }
}

impl From<ArgumentRule> for ArgumentRuleTable {
    fn from(rule: ArgumentRule) -> Self {
        let (then, otherwise) = match rule.when {
            Fires::Match => (Some(rule.verdict), None),
            Fires::Mismatch => (None, Some(rule.verdict)),
        };
        let mut written =
            Self { pointer: rule.pointer, equals: None, one_of: None, prefix: None, at_most: None, then, otherwise };
        match rule.condition {
            Condition::Equals(value) => written.equals = Some(value),
            Condition::OneOf(values) => written.one_of = Some(values),
            Condition::Prefix(prefix) => written.prefix = Some(prefix),
            Condition::AtMost(limit) => written.at_most = Some(limit.written),
        }
        written
    }
}

#[cfg(test)]
mod tests;
