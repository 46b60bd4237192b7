//! [`Reads`]: the inputs that Cedar policies read, found in the JSON form of the policies.

use std::collections::BTreeSet;

use cedar_policy::Policy;
use serde_json::Value;

/// The inputs that policies read.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Whether some policy reads the arguments of calls.
    pub(super) arguments: bool,
    /// Whether some policy reads all arguments as one record.
    pub(super) whole: bool,
    /// The arguments that policies read by name.
    pub(super) names: BTreeSet<String>,
    /// The attributes of principals that policies read.
    pub(super) attributes: BTreeSet<String>,
    /// The roles that policies name.
    pub(super) roles: BTreeSet<String>,
    /// The labels that policies name.
    pub(super) labels: BTreeSet<String>,
}

impl Reads {
    /// Returns the inputs of one policy.
    pub(super) fn of(policy: &Policy, json: &Value) -> Self {
        let mut reads = Self::default();
        json.get("conditions").into_iter().for_each(|clauses| reads.walk(clauses));
        for literal in policy.entity_literals() {
            if literal.type_name().to_string() == "Role" {
                reads.roles.insert(literal.id().unescaped().to_owned());
            }
        }
        reads
    }

    /// Returns the inputs of one `when` or `unless` clause.
    pub(super) fn of_clause(clause: &Value) -> Self {
        let mut reads = Self::default();
        reads.walk(clause);
        reads
    }

    pub(super) fn add(&mut self, other: Self) {
        self.arguments |= other.arguments;
        self.whole |= other.whole;
        self.names.extend(other.names);
        self.attributes.extend(other.attributes);
        self.roles.extend(other.roles);
        self.labels.extend(other.labels);
    }

    fn walk(&mut self, expression: &Value) {
        match expression {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(members) => {
                if self.path(expression) {
                    return;
                }
                for (operator, operands) in members {
                    if matches!(operator.as_str(), "contains" | "containsAny" | "containsAll") {
                        self.named_labels(operands);
                    }
                    self.walk(operands);
                }
            }
            _ => {}
        }
    }

    /// Records an access such as `context.arguments.to`, or a lone variable. Returns `false` for other expressions.
    fn path(&mut self, expression: &Value) -> bool {
        let Some((variable, path)) = chain(expression) else { return false };
        match (variable, path.as_slice()) {
            // A policy can compare the whole context, and so all arguments, with a record.
            ("context", [] | ["arguments"]) => (self.arguments, self.whole) = (true, true),
            ("context", ["arguments", name, ..]) => {
                self.arguments = true;
                self.names.insert((*name).to_owned());
            }
            ("principal", [name, ..]) => {
                self.attributes.insert((*name).to_owned());
            }
            _ => {}
        }
        true
    }

    fn named_labels(&mut self, operands: &Value) {
        let of_labels = operands
            .get("left")
            .and_then(chain)
            .is_some_and(|(variable, path)| variable == "context" && path == ["labels"]);
        let named = operands.get("right").filter(|_| of_labels);
        let one = named.and_then(|named| named.get("Value")).and_then(Value::as_str);
        let several = named.and_then(|named| named.get("Set")).and_then(Value::as_array).into_iter().flatten();
        let several = several.filter_map(|item| item.get("Value").and_then(Value::as_str));
        self.labels.extend(one.into_iter().chain(several).map(str::to_owned));
    }
}

/// Splits `context.a.b` or `context has a.b` into the variable and its path.
fn chain(expression: &Value) -> Option<(&str, Vec<&str>)> {
    let mut path = Vec::new();
    let mut expression = expression;
    loop {
        if let Some(variable) = expression.get("Var").and_then(Value::as_str) {
            path.reverse();
            return Some((variable, path));
        }
        let access = expression.get(".").or_else(|| expression.get("has"))?;
        match access.get("attr")? {
            Value::String(name) => path.push(name),
            Value::Array(names) => path.extend(names.iter().rev().filter_map(Value::as_str)),
            _ => return None,
        }
        expression = access.get("left")?;
    }
}
