//! [`inlined`]: replaces the references of a document with their targets, for code that follows a path through it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::schema::graph::{Document, MAX_CHAIN, Target, address};
use crate::schema::merge::{ANNOTATIONS, UNEVALUATED, joins};
use crate::schema::positions::subschemas;

/// The maximum size of a document with replaced references, in bytes. Later references stay.
const MAX_BYTES: usize = 1 << 20;

/// The approximate size of a value without its texts, in bytes.
const NODE: usize = 16;

/// Keywords that name a schema, or contain schemas that apply to no value.
const NAMES: [&str; 5] = ["$anchor", "$defs", "$dynamicAnchor", "$id", "definitions"];

/// Replaces each reference with the schema that it refers to. A reference stays if it leads to a schema that contains
/// it or to a meta-schema, or if the document would become too large or too deep. If a reference leads out of the
/// document, all references stay.
pub(crate) fn inlined(schema: &Value) -> Cow<'_, Value> {
    if !has_reference(schema) {
        return Cow::Borrowed(schema);
    }
    let Ok(document) = Document::read(schema) else { return Cow::Borrowed(schema) };
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let mut inlining =
        Inlining { document: &document, is_older: dialect.contains("draft-07"), around: Vec::new(), bytes: 0 };
    Cow::Owned(inlining.schema(schema))
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(members) => members.contains_key("$ref") || members.values().any(has_reference),
        _ => false,
    }
}

struct Inlining<'a, 'd> {
    document: &'d Document<'a>,
    /// Draft-07 ignores the keywords next to a reference.
    is_older: bool,
    /// The addresses of the schemas that enclose the current one.
    around: Vec<usize>,
    bytes: usize,
}

impl<'a> Inlining<'a, '_> {
    fn schema(&mut self, schema: &'a Value) -> Value {
        let Value::Object(members) = schema else { return self.copy(schema) };
        self.bytes += NODE;
        self.around.push(address(schema));
        let written = match self.target(members) {
            Some(target) => self.referred(members, target),
            None => Value::Object(self.members(members, |_| true)),
        };
        self.around.pop();
        written
    }

    /// Returns the schema that replaces a reference.
    fn target(&self, members: &'a Map<String, Value>) -> Option<&'a Value> {
        if !members.contains_key("$ref") || self.bytes > MAX_BYTES || self.around.len() > MAX_CHAIN {
            return None;
        }
        // A reference with a dynamic reference next to it has several targets.
        match self.document.referred(members).as_slice() {
            [Target::Schema(target)] if !self.around.contains(&address(target)) => Some(target),
            _ => None,
        }
    }

    fn referred(&mut self, members: &'a Map<String, Value>, target: &'a Value) -> Value {
        let mut target = self.schema(target);
        if self.is_older {
            return target;
        }
        let mut own = self.members(members, |key| key != "$ref");
        if own.keys().all(|key| key == "$schema" || ANNOTATIONS.contains(&key.as_str())) || can_join(&own, &target) {
            if let Value::Object(target) = &mut target {
                target.append(&mut own);
            }
            return target;
        }
        // Rules next to a reference apply, too.
        match own.entry("allOf").or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(all) => all.insert(0, target),
            other => *other = Value::Array(vec![target]),
        }
        Value::Object(own)
    }

    /// Returns the members of a schema, with the references in them replaced. Definitions and names of schemas are left
    /// out, because no reference needs them.
    fn members(&mut self, members: &'a Map<String, Value>, wanted: fn(&str) -> bool) -> Map<String, Value> {
        let positions = subschemas(members);
        let mut written = Map::new();
        for (key, value) in members.iter().filter(|(key, _)| wanted(key) && !NAMES.contains(&key.as_str())) {
            self.bytes += key.len();
            let value = match (positions.iter().find(|position| position.keyword == key), value) {
                (None, value) => self.copy(value),
                (Some(_), Value::Array(list)) => list.iter().map(|item| self.schema(item)).collect(),
                (Some(position), Value::Object(named)) if position.name.is_some() => {
                    let mut schemas = Map::new();
                    for (name, inner) in named {
                        self.bytes += name.len();
                        schemas.insert(name.clone(), self.schema(inner));
                    }
                    Value::Object(schemas)
                }
                (Some(_), schema) => self.schema(schema),
            };
            written.insert(key.clone(), value);
        }
        written
    }

    fn copy(&mut self, value: &Value) -> Value {
        self.bytes += value.to_string().len() + NODE;
        value.clone()
    }
}

/// Whether the rules next to a reference can be merged into its target. Alternatives stay separate, because readers
/// look for the members of an object in each alternative.
fn can_join(own: &Map<String, Value>, target: &Value) -> bool {
    let Value::Object(target) = target else { return false };
    let apart = |key: &&str| own.contains_key(*key) || target.contains_key(*key);
    joins(own, target) && !["allOf", "anyOf", "oneOf"].iter().chain(&UNEVALUATED).any(apart)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &Value) {
        assert_eq!(&*inlined(schema), expected);
    }

    #[test]
    fn a_reference_becomes_what_it_leads_to() {
        let defs = json!({"A": {"$anchor": "a", "type": "string"}, "B": {"items": {"$ref": "#a"}}});
        check(&json!({"$defs": defs, "$ref": "#/$defs/B"}), &json!({"items": {"type": "string"}}));
        let b = "https://json-schema.org/draft/2020-12/schema";
        check(
            &json!({"$schema": b, "$defs": defs, "properties": {"p": {"$ref": "#/$defs/A", "title": "P"}}}),
            &json!({"$schema": b, "properties": {"p": {"type": "string", "title": "P"}}}),
        );
        let required = json!({"$ref": "#/$defs/B", "type": "array", "minItems": 1, "description": "Own."});
        check(
            &json!({"$defs": defs, "properties": {"p": required}}),
            &json!({"properties": {"p":
                {"type": "array", "minItems": 1, "description": "Own.", "items": {"type": "string"}}}}),
        );
        // `items` does not apply to the items that `prefixItems` next to it checks.
        let tuple = json!({"$ref": "#/$defs/B", "prefixItems": [true]});
        check(
            &json!({"$defs": defs, "properties": {"p": tuple}}),
            &json!({"properties": {"p": {"prefixItems": [true], "allOf": [{"items": {"type": "string"}}]}}}),
        );
        // Rules next to a reference apply, too, except in draft-07.
        let older = "http://json-schema.org/draft-07/schema#";
        let next_to = json!({"$ref": "#/definitions/A", "maxLength": 3, "allOf": [{"minLength": 1}]});
        check(
            &json!({"definitions": defs, "properties": {"p": next_to}}),
            &json!({"properties": {"p": {"maxLength": 3, "allOf": [{"type": "string"}, {"minLength": 1}]}}}),
        );
        check(
            &json!({"$schema": older, "definitions": defs, "properties": {"p": next_to}}),
            &json!({"$schema": older, "properties": {"p": {"type": "string"}}}),
        );
        // A value in `const` is not a schema.
        let constant = json!({"properties": {"p": {"const": {"$ref": "#"}}}});
        check(&constant, &constant);
    }

    #[test]
    fn a_circle_and_a_large_document_keep_references() {
        let node = json!({"properties": {"below": {"items": {"$ref": "#/$defs/N"}}}});
        check(&json!({"$defs": {"N": node}, "$ref": "#/$defs/N"}), &node);
        let properties: Map<_, _> = (0..1000).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/A"}))).collect();
        let large =
            json!({"$defs": {"A": {"type": "string", "description": "d".repeat(30_000)}}, "properties": properties});
        let text = inlined(&large).to_string();
        assert!((MAX_BYTES..MAX_BYTES + 100_000).contains(&text.len()), "{}", text.len());
    }
}
