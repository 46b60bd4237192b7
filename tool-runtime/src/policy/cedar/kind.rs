//! [`Kind`]: the Cedar type of an argument, derived from its JSON Schema.

use std::collections::BTreeMap;

use cedar_policy::RestrictedExpression;
use serde_json::{Value, json};

use crate::json::Tree;
use crate::policy::check::unsatisfiable::{target, types};

/// The maximum depth of nested arguments. Policies do not see deeper members.
const MAX_DEPTH: usize = 8;

/// The Cedar type of an argument. Policies do not see arguments that have no such type, such as unions and a lone
/// `null`. They see a map as a record without members.
#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    Long,
    Decimal,
    Bool,
    Set(Box<Kind>),
    Record(BTreeMap<String, Member>),
}

/// A member of a record.
#[derive(Debug, PartialEq)]
pub(super) struct Member {
    kind: Kind,
    required: bool,
}

/// A value that does not fit its Cedar type, such as a number with more than four decimal places.
#[derive(Debug, PartialEq)]
pub(super) struct TypeMismatch;

impl Kind {
    /// Returns the type of a tool's arguments: a record of the members that `wanted` accepts.
    pub(super) fn arguments(schema: &Value, wanted: impl Fn(&str) -> bool) -> Self {
        let members = match record(schema, target(schema, schema), 0) {
            Self::Record(members) => members,
            _ => BTreeMap::new(),
        };
        Self::Record(members.into_iter().filter(|(name, _)| wanted(name)).collect())
    }

    /// Returns the type as JSON for a Cedar schema.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Text => json!({ "type": "String" }),
            Self::Long => json!({ "type": "Long" }),
            Self::Decimal => json!({ "type": "Extension", "name": "decimal" }),
            Self::Bool => json!({ "type": "Boolean" }),
            Self::Set(item) => json!({ "type": "Set", "element": item.to_json() }),
            Self::Record(members) => {
                let members = members.iter().map(|(name, member)| {
                    let mut of = member.kind.to_json();
                    of["required"] = member.required.into();
                    (name.clone(), of)
                });
                json!({ "type": "Record", "attributes": members.collect::<serde_json::Map<_, _>>() })
            }
        }
    }

    /// Converts an argument to a Cedar value. `None` for `null`: policies see the argument as absent.
    pub(super) fn value(&self, value: &Tree<'_>) -> Result<Option<RestrictedExpression>, TypeMismatch> {
        let value = match (self, value) {
            (_, Tree::Null) => return Ok(None),
            (Self::Text, Tree::String(text)) => RestrictedExpression::new_string(text.clone().into_owned()),
            (Self::Bool, Tree::Bool(flag)) => RestrictedExpression::new_bool(*flag),
            (Self::Long, Tree::Int(number)) => RestrictedExpression::new_long(*number),
            (Self::Decimal, number) => RestrictedExpression::new_decimal(decimal(number).ok_or(TypeMismatch)?),
            (Self::Set(kind), Tree::Array(items)) => {
                let items =
                    items.iter().filter_map(|item| kind.value(item).transpose()).collect::<Result<Vec<_>, _>>()?;
                RestrictedExpression::new_set(items)
            }
            (Self::Record(kinds), Tree::Object(members)) => {
                let mut record = Vec::new();
                for (name, value) in members {
                    if let Some(member) = kinds.get(&**name)
                        && let Some(value) = member.kind.value(value)?
                    {
                        record.push((name.clone().into_owned(), value));
                    }
                }
                RestrictedExpression::new_record(record).map_err(|_| TypeMismatch)?
            }
            _ => return Err(TypeMismatch),
        };
        Ok(Some(value))
    }
}

/// Formats a number as a Cedar decimal, which has one to four decimal places. `None` if the number would need rounding,
/// for an integer above `i64::MAX`, and for a value that is not a number.
fn decimal(number: &Tree<'_>) -> Option<String> {
    let text = match number {
        Tree::Int(number) => number.to_string(),
        Tree::Float(number) => number.to_string(),
        _ => return None,
    };
    match text.split_once('.') {
        None => Some(format!("{text}.0")),
        Some((_, places)) => (places.len() <= 4).then_some(text),
    }
}

/// Returns the Cedar type for a schema, and whether the schema accepts `null`.
fn kind(document: &Value, schema: &Value, depth: usize) -> Option<(Kind, bool)> {
    if depth > MAX_DEPTH {
        return None;
    }
    let schema = target(document, schema);
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            let is_null = |choice: &&Value| choice.get("type").is_some_and(|name| name == "null");
            let mut others = choices.iter().filter(|choice| !is_null(choice));
            let (one, more) = (others.next()?, others.next());
            let nullable = choices.iter().any(|choice| is_null(&choice));
            return more
                .is_none()
                .then(|| kind(document, one, depth + 1))?
                .map(|(kind, null)| (kind, null || nullable));
        }
    }
    let nullable = types(schema).any(|name| name == "null");
    let mut named = types(schema).filter(|name| *name != "null");
    let (one, more) = (named.next(), named.next());
    if more.is_some() {
        return None;
    }
    let kind = match one {
        Some("string") => Kind::Text,
        Some("integer") => Kind::Long,
        Some("number") => Kind::Decimal,
        Some("boolean") => Kind::Bool,
        Some("array") => Kind::Set(Box::new(kind(document, schema.get("items")?, depth + 1)?.0)),
        Some("object") => record(document, schema, depth),
        None if texts_only(schema) => Kind::Text,
        _ => return None,
    };
    Some((kind, nullable))
}

/// Whether an `enum` or `const` without a `type` contains only strings.
fn texts_only(schema: &Value) -> bool {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let mut all = listed.chain(schema.get("const")).peekable();
    all.peek().is_some() && all.all(Value::is_string)
}

fn record(document: &Value, schema: &Value, depth: usize) -> Kind {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let required = |name: &str| {
        let named = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        named.filter_map(Value::as_str).any(|required| required == name)
    };
    let member = |(name, schema): (&String, &Value)| {
        let (kind, nullable) = kind(document, schema, depth + 1)?;
        Some((name.clone(), Member { required: required(name) && !nullable, kind }))
    };
    Kind::Record(properties.filter_map(member).collect())
}
