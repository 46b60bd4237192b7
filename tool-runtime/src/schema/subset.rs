//! [`is_subset`]: the check that every provider accepts a schema from a server or a file.

use serde_json::{Map, Value};

use crate::error::Problem;
use crate::schema::positions::{MAX_DEPTH, subschemas};
use crate::schema::problem::Pointer;

/// Keywords that some provider does not accept.
const REFUSED: [&str; 8] = ["oneOf", "anyOf", "allOf", "not", "if", "then", "else", "patternProperties"];

/// Checks that a schema stays within the subset that every provider accepts. The subset has no alternatives, conditions
/// or patterned properties at a schema position, and schemas nest at most 32 levels deep. References are `#/$defs/NAME`
/// or `#/definitions/NAME`, lead to existing definitions, and are not recursive.
///
/// # Errors
///
/// Every place outside of the subset.
pub fn is_subset(schema: &Value) -> Result<(), Vec<Problem>> {
    let problems = outside(schema);
    if problems.is_empty() { Ok(()) } else { Err(problems.into_iter().map(|(_, problem)| problem).collect()) }
}

/// The reason why a place is outside of the subset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    Keyword,
    Reference,
}

/// Returns every place outside of the subset.
pub(crate) fn outside(schema: &Value) -> Vec<(Outside, Problem)> {
    let mut gate =
        Gate { root: schema, pointer: Pointer::default(), open: Vec::new(), seen: Vec::new(), problems: Vec::new() };
    match schema {
        Value::Object(_) => gate.visit(schema, 0),
        _ => gate.refuse(Outside::Keyword, "the schema is not an object", "write an object with `type`"),
    }
    gate.problems
}

struct Gate<'a> {
    root: &'a Value,
    pointer: Pointer,
    /// The definitions that are being visited.
    open: Vec<(&'a str, &'a str)>,
    /// The definitions that were visited.
    seen: Vec<(&'a str, &'a str)>,
    problems: Vec<(Outside, Problem)>,
}

impl<'a> Gate<'a> {
    fn refuse(&mut self, kind: Outside, message: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push((kind, self.pointer.problem(message, remedy)));
    }

    fn visit(&mut self, schema: &'a Value, depth: usize) {
        let Value::Object(members) = schema else { return };
        if depth > MAX_DEPTH {
            return self.refuse(Outside::Keyword, format!("schemas nest over {MAX_DEPTH} levels deep"), "nest less");
        }
        for keyword in REFUSED.into_iter().filter(|keyword| members.contains_key(*keyword)) {
            self.refuse(
                Outside::Keyword,
                format!("`{keyword}` is outside the subset"),
                "write one type for the value, null included",
            );
        }
        if let Some(reference) = members.get("$ref") {
            self.follow(reference, depth);
        }
        for position in subschemas(members) {
            let mark = position.enter(&mut self.pointer);
            self.visit(position.schema, depth + 1);
            self.pointer.leave(mark);
        }
    }

    fn follow(&mut self, reference: &'a Value, depth: usize) {
        let remedy = "refer to `#/$defs/NAME` or `#/definitions/NAME`, not in a circle";
        let target = reference.as_str().and_then(|reference| {
            let (holder, name) = reference.strip_prefix("#/")?.split_once('/')?;
            (matches!(holder, "$defs" | "definitions") && !name.contains('/')).then_some((holder, name))
        });
        let Some((holder, name)) = target else {
            return self.refuse(Outside::Reference, "the reference does not lead to a definition", remedy);
        };
        let definition = self.root.get(holder).and_then(Value::as_object).and_then(|all: &Map<_, _>| all.get(name));
        let Some(definition) = definition else {
            return self.refuse(Outside::Reference, "the reference has no target", remedy);
        };
        if self.open.contains(&(holder, name)) {
            return self.refuse(Outside::Reference, "the reference leads back to itself", remedy);
        }
        // Each definition is visited once, because its mistakes do not depend on the reference to it.
        if self.seen.contains(&(holder, name)) {
            return;
        }
        self.seen.push((holder, name));
        self.open.push((holder, name));
        let mark = self.pointer.enter(name);
        self.visit(definition, depth + 1);
        self.pointer.leave(mark);
        self.open.pop();
    }
}
