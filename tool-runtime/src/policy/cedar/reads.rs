//! The inputs that policies read, found in their JSON form.

use std::collections::BTreeSet;

use cedar_policy::Policy;
use serde_json::Value;

/// The inputs of policies.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// They read the arguments of calls.
    pub(super) arguments: bool,
    /// Some read all of them as one record.
    pub(super) whole: bool,
    /// The arguments that they read by name.
    pub(super) names: BTreeSet<String>,
    /// The attributes of principals that they read.
    pub(super) attributes: BTreeSet<String>,
    /// The roles that they name.
    pub(super) roles: BTreeSet<String>,
    /// The labels that they name.
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

    /// Returns the inputs of one `when` or `unless`.
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

    /// Records a chain of attributes of a variable, or a variable alone. Returns `false` if the expression is neither.
    fn path(&mut self, expression: &Value) -> bool {
        let Some((variable, path)) = chain(expression) else { return false };
        match (variable, path.as_slice()) {
            // The context alone could be compared with a whole record.
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

/// `context.a.b` or `context has a.b` as the variable and its path.
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
