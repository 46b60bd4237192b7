//! [`Effective`]: what arguments amount to, however they are written: a default that is spelled out and one that is
//! left out are the same call.

use std::borrow::Cow;

use serde_json::Value;

use crate::json::{Tree, canonical};
use crate::tool::{Digested, Schema};

/// The published defaults of a tool's arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effective(Box<[(Box<str>, Value)]>);

impl Effective {
    /// Reads them off an input schema, once.
    pub(crate) fn of(schema: &Schema) -> Self {
        // Reading a schema is most of the work of building a catalog.
        if !schema.as_str().contains("\"default\"") {
            return Self::default();
        }
        let schema = schema.to_value();
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        Self(properties.filter_map(|(name, one)| Some((name.as_str().into(), one.get("default")?.clone()))).collect())
    }

    /// Returns the arguments with their defaults and without members that are `null`; `same` if those are the arguments
    /// as they are.
    pub(crate) fn of_arguments(&self, arguments: &Tree<'_>, same: &Digested) -> Digested {
        let left_out = |name: &str| arguments.get(name).is_none_or(Tree::is_null);
        let mut missing = self.0.iter().filter(|(name, default)| left_out(name) && !default.is_null()).peekable();
        if missing.peek().is_none() && !has_null(arguments) {
            return same.clone();
        }
        let mut effective = without_nulls(arguments);
        if let Tree::Object(members) = &mut effective {
            members.extend(missing.map(|(name, default)| (Cow::Borrowed(&**name), Tree::from_value(default))));
        }
        Digested::of(canonical::to_text(&effective))
    }
}

fn has_null(tree: &Tree<'_>) -> bool {
    match tree {
        Tree::Array(items) => items.iter().any(has_null),
        Tree::Object(members) => members.iter().any(|(_, value)| value.is_null() || has_null(value)),
        _ => false,
    }
}

fn without_nulls<'t>(tree: &'t Tree<'_>) -> Tree<'t> {
    match tree {
        Tree::Null => Tree::Null,
        Tree::Bool(flag) => Tree::Bool(*flag),
        Tree::Int(number) => Tree::Int(*number),
        Tree::UInt(number) => Tree::UInt(*number),
        Tree::Float(number) => Tree::Float(*number),
        Tree::String(text) => Tree::String(Cow::Borrowed(text)),
        Tree::Array(items) => Tree::Array(items.iter().map(without_nulls).collect()),
        Tree::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Tree::Object(kept.map(|(name, value)| (Cow::Borrowed(&**name), without_nulls(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Limits, parse};

    #[test]
    fn defaults_and_nulls_make_no_difference() {
        let schema = r#"{"properties":{"n":{"type":"integer"},"zone":{"default":"UTC"},"none":{"default":null}}}"#;
        let effective = Effective::of(&Schema::from_text(schema));
        let digest = |text: &str| {
            let tree = parse(text, &Limits::UNBOUNDED).unwrap();
            effective.of_arguments(&tree, &Digested::of(canonical::to_text(&tree))).hash()
        };
        for same in [
            r#"{"n":1}"#,
            r#"{"zone":null,"n":1}"#,
            r#"{"n":1,"none":null,"zone":"UTC"}"#,
            r#"{"n":1,"zone":"UTC","text":null}"#,
        ] {
            assert_eq!(digest(same), digest(r#"{"n":1,"zone":"UTC"}"#), "{same}");
        }
        for other in [r#"{"n":2}"#, r#"{"n":1,"zone":"CET"}"#, r#"{"n":1,"none":""}"#] {
            assert_ne!(digest(other), digest(r#"{"n":1}"#), "{other}");
        }
    }
}
