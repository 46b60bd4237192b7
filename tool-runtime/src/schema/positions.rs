//! Where a schema holds other schemas: a property named `anyOf` or an enum value `"not"` is data, not a keyword.

use serde_json::{Map, Value};

use crate::schema::problem::Pointer;

/// The deepest nesting of schemas.
pub(crate) const MAX_DEPTH: usize = 32;

/// Keywords whose value is one schema.
const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is a list of schemas; `items` was one up to draft-07.
const LIST: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/// Keywords whose value maps names to schemas; members of `dependencies` may be lists of names instead.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// One schema inside another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position<'a> {
    /// The keyword that holds it.
    pub(crate) keyword: &'a str,
    /// Its name, for keywords that map names to schemas.
    pub(crate) name: Option<&'a str>,
    /// Its place, for keywords that list schemas.
    pub(crate) index: Option<usize>,
    /// The schema: an object or a boolean, anything else is an error of the document.
    pub(crate) schema: &'a Value,
}

impl Position<'_> {
    /// Moves the pointer to this position and returns the mark to leave to.
    pub(crate) fn enter(&self, pointer: &mut Pointer) -> usize {
        let mark = pointer.enter(self.keyword);
        if let Some(name) = self.name {
            pointer.enter(name);
        } else if let Some(index) = self.index {
            pointer.enter(&index.to_string());
        }
        mark
    }
}

/// The schemas directly inside `schema`, in the order of its members.
pub(crate) fn subschemas(schema: &Map<String, Value>) -> Vec<Position<'_>> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        let keyword = keyword.as_str();
        match value {
            Value::Object(members) if NAMED.contains(&keyword) => {
                let schemas = members.iter().filter(|(_, schema)| is_schema(schema));
                found.extend(schemas.map(|(name, schema)| Position { keyword, name: Some(name), index: None, schema }));
            }
            Value::Array(list) if LIST.contains(&keyword) => {
                let schemas = list.iter().enumerate().filter(|(_, schema)| is_schema(schema));
                found.extend(schemas.map(|(index, schema)| Position {
                    keyword,
                    name: None,
                    index: Some(index),
                    schema,
                }));
            }
            schema if ONE.contains(&keyword) && is_schema(schema) => {
                found.push(Position { keyword, name: None, index: None, schema });
            }
            _ => {}
        }
    }
    found
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}
