//! Checks allowlist paths against the output schema: each must name an existing leaf and nothing else.

use std::fmt;

use serde_json::{Map, Value};

use crate::error::Problem;
use crate::redact::shape::{alternatives, is_object, is_scalar, members, values};
use crate::redact::suggestion::{leaves, nearest, through_arrays};
use crate::text::sentence;

/// The number of leaves that a message lists.
const MOST_LISTED: usize = 20;

/// A path of an allowlist that does not fit the schema, with a correction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathProblem {
    /// The path as written.
    pub path: String,
    /// The problem and its correction.
    pub message: String,
    /// The nearest real path; `None` if no path is near.
    pub nearest: Option<String>,
}

impl PathProblem {
    /// Creates the problem of a path whose leaves have constraints that do not compile.
    pub(super) fn unchecked(problem: &Problem) -> Self {
        let message = format!("names leaves whose constraints cannot be checked: {problem}");
        Self { path: "$".to_owned(), message, nearest: None }
    }
}

impl fmt::Display for PathProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.path, self.message)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

/// Returns the paths that an allowlist over this schema can name, sorted. For a very large schema, only some of them.
pub(crate) fn nameable(schema: &Value) -> Vec<String> {
    let mut paths = leaves(schema);
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| is_nameable(path, schema));
    paths
}

/// Whether [`check`] accepts a path. Does not search for a suggestion.
fn is_nameable(path: &str, schema: &Value) -> bool {
    places(path, schema).is_ok_and(|places| leaf(&places, "").is_ok())
}

/// Checks one path.
pub(super) fn check(path: &str, schema: &Value) -> Result<(), PathProblem> {
    let problem = |message: String, nearest| Err(PathProblem { path: path.to_owned(), message, nearest });
    let places = match places(path, schema) {
        Ok(places) => places,
        Err(Some(message)) => return problem(message, None),
        Err(None) if alternatives(schema).iter().all(|one| is_scalar(one)) => {
            return problem("names a member, but the value is a scalar; write `$`".into(), None);
        }
        Err(None) => match through_arrays(path, |plain| is_nameable(plain, schema)) {
            Some(plain) => {
                return problem(format!("steps into an array; arrays are passed through: write `{plain}`"), None);
            }
            None => return problem("names nothing in its schema".into(), nearest(path, nameable(schema))),
        },
    };
    let prefix = if path == "$" { String::new() } else { format!("{path}.") };
    match leaf(&places, &prefix) {
        Ok(()) => Ok(()),
        Err(message) => problem(message, None),
    }
}

/// Returns the schemas at a path. `Err(None)` if a segment names nothing in any branch.
fn places<'s>(path: &str, schema: &'s Value) -> Result<Vec<&'s Value>, Option<String>> {
    let mut places = alternatives(schema);
    for segment in path.split('.').filter(|_| path != "$") {
        if segment.is_empty() {
            return Err(Some("contains an empty segment; write names joined by single dots".into()));
        }
        places = step(&places, segment)?;
    }
    Ok(places)
}

/// Follows one segment. `Err(None)` if no branch has such a member.
fn step<'s>(places: &[&'s Value], segment: &str) -> Result<Vec<&'s Value>, Option<String>> {
    let mut next = Vec::new();
    let mut text = false;
    for schema in places {
        if schema.get("prefixItems").is_some() {
            return Err(Some("goes through a tuple, whose items have no names; return a struct instead".into()));
        }
        if segment == "*" {
            if members(schema).is_some() && values(schema).is_some() {
                return Err(Some(
                    "puts `*` next to named members, which it would show too; move the map into its own field".into(),
                ));
            }
            next.extend(values(schema).map(alternatives).into_iter().flatten());
        } else if let Some(member) = members(schema).and_then(|members| members.get(segment)) {
            next.extend(alternatives(member));
        }
        // `null` only makes an object optional; any other scalar is a second form of an enum.
        text |= is_scalar(schema) && schema.get("type").is_none_or(|ty| ty != "null");
    }
    if next.is_empty() {
        if let Some(message) = places.iter().find_map(|schema| reference(schema)) {
            return Err(Some(message));
        }
        let object = places.iter().copied().find(|schema| is_object(schema));
        if let Some(message) = object.and_then(|schema| map_hint(schema, segment)) {
            return Err(Some(message));
        }
        return Err(None);
    }
    if text && places.len() > 1 {
        return Err(Some(
            "goes through an enum that is sometimes a string and sometimes an object; give the enum `#[serde(tag = \"..\")]`".into(),
        ));
    }
    Ok(next)
}

fn map_hint(schema: &Value, segment: &str) -> Option<String> {
    (segment != "*" && members(schema).is_none() && values(schema).is_some())
        .then(|| "names a key of a map; write `*` for its values".to_owned())
}

/// Returns the message for a reference that was not replaced by its target.
fn reference(schema: &Value) -> Option<String> {
    let reference = ["$ref", "$dynamicRef", "$recursiveRef"].iter().find_map(|key| schema.get(*key)?.as_str())?;
    Some(format!(
        "goes through the reference `{}`, which leads back to itself or makes the schema too large; name fields outside \
         of it",
        sentence(reference, 64)
    ))
}

/// Checks that a path leads to a leaf, which is a scalar or an array of scalars in every branch.
fn leaf(places: &[&Value], prefix: &str) -> Result<(), String> {
    for schema in places {
        if schema.get("prefixItems").is_some() {
            return Err("names a tuple, whose items have no names; return a struct instead".into());
        }
        if let Some(message) = reference(schema) {
            return Err(message);
        }
        if is_object(schema) {
            if members(schema).is_none_or(Map::is_empty) {
                return Err("names a map, not a leaf; add `.*` for its values".to_owned());
            }
            let leaves: Vec<_> =
                nameable(schema).iter().take(MOST_LISTED).map(|leaf| format!("`{prefix}{leaf}`")).collect();
            return Err(if leaves.is_empty() {
                "names an object without a leaf, so nothing of it can be shown; remove the path".to_owned()
            } else {
                format!("names an object, not a leaf; name the fields that may be shown: {}", leaves.join(", "))
            });
        }
        if !is_scalar(schema) {
            return Err(
                "names a value whose schema has no type, so its content is unknown; give the field a type".into()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_path(path: &str, expected: Result<(), &str>) {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "inner": {"type": "object", "properties": {"x": {"type": "integer"}, "deep": {"type": "array", "items":
                    {"type": "object", "properties": {"y": {"type": ["string", "null"]}}}}}},
                "by_name": {"type": "object", "additionalProperties": {"type": "number"}},
                "by_number": {"type": "object", "patternProperties": {"^-?\\d+$": {"type": "string"}},
                    "additionalProperties": false},
                "any": {},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}]},
            },
        });
        match (check(path, &schema), expected) {
            (Ok(()), Ok(())) => {}
            (Err(problem), Err(part)) => assert!(problem.to_string().contains(part), "{problem}"),
            (got, expected) => panic!("{path}: {got:?}, not {expected:?}"),
        }
    }

    #[test]
    fn of_leaves_with_one_name_the_nearest_path_is_meant() {
        let leaf = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {
            "by": {"type": "object", "additionalProperties": leaf}, "items": {"type": "array", "items": leaf},
            "total": {"type": "integer"},
        }});
        let problem = check("itmes.a", &schema).unwrap_err();
        assert_eq!(problem.nearest.as_deref(), Some("items.a"));
        let problem = check("total", &json!({"type": "integer"})).unwrap_err();
        assert!(problem.message.ends_with("write `$`"), "{problem}");
    }

    #[test]
    fn each_path_that_can_be_named_is_a_leaf() {
        let schema = json!({"type": "object", "properties": {
            "any": {},
            "by": {"type": "object", "additionalProperties": {"type": "number"}},
            "items": {"type": "array", "items": {"anyOf": [
                {"type": "object", "properties": {"a": {"type": "string"}, "pair": {"prefixItems": [{"type": "string"}]}}},
                {"type": "object", "properties": {"a": {"type": "string"}, "b.c": {"type": "string"}}},
                {"type": "null"},
            ]}},
        }});
        let paths = nameable(&schema);
        assert_eq!(paths, ["by.*", "items.a"]);
        assert!(paths.iter().all(|path| check(path, &schema).is_ok()));
        assert_eq!(nameable(&json!({"type": "integer"})), ["$"]);
    }

    #[test]
    fn a_path_names_a_leaf() {
        for good in ["name", "inner.x", "inner.deep.y", "by_name.*", "by_number.*"] {
            check_path(good, Ok(()));
        }
        let bad = [
            ("", "empty segment"),
            ("nam", "did you mean `name`?"),
            ("inner", "`inner.deep.y`, `inner.x`"),
            ("inner.deep", "`inner.deep.y`"),
            ("by_name", "add `.*`"),
            ("by_name.ada", "write `*`"),
            ("by_number", "add `.*`"),
            ("any", "whose schema has no type"),
            ("pair", "names a tuple"),
            ("$", "may be shown: `by_name.*`, `by_number.*`, `inner.deep.y`, `inner.x`, `name`"),
            ("inner.deep[].y", "arrays are passed through: write `inner.deep.y`"),
            ("inner.deep.0.y", "write `inner.deep.y`"),
            ("inner.deep.*.y", "write `inner.deep.y`"),
        ];
        for (path, part) in bad {
            check_path(path, Err(part));
        }
    }
}
