//! Finds the schemas inside a schema. A property named `anyOf` or an enum value `"not"` is data, not a keyword.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::schema::problem::Pointer;

/// The maximum nesting of schemas.
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

/// Keywords whose value is a list of schemas; `items` can be a list in draft-07.
const LIST: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/// Keywords whose value maps names to schemas; members of `dependencies` may be lists of names instead.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// One schema inside another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position<'a> {
    /// The keyword that contains the schema.
    pub(crate) keyword: &'a str,
    /// Its name, for keywords that map names to schemas.
    pub(crate) name: Option<&'a str>,
    /// Its index, for keywords that list schemas.
    pub(crate) index: Option<usize>,
    /// The schema, which is an object or a boolean.
    pub(crate) schema: &'a Value,
}

impl Position<'_> {
    /// Moves the pointer to this position, and returns the mark for [`Pointer::leave`].
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

/// Returns the schemas directly inside `schema`, in the order of its members.
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

/// Whether a reference is `#/$defs/NAME` or `#/definitions/NAME`, with a name that needs no escapes in a URI.
pub(super) fn names_definition(reference: &str) -> bool {
    let name = reference.strip_prefix("#/$defs/").or_else(|| reference.strip_prefix("#/definitions/"));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(plain))
}

/// Returns the different patterns of a document. Data is searched, too, if a reference could lead there.
pub(super) fn patterns(document: &Value) -> HashSet<&str> {
    let has_data = !refers_to_definitions_only(document);
    let (mut found, mut waiting) = (HashSet::new(), vec![(document, Place::Schema)]);
    while let Some((value, place)) = waiting.pop() {
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, place))),
            Value::Object(members) => {
                found.extend(members.get("pattern").and_then(Value::as_str));
                let named = members.get("patternProperties").and_then(Value::as_object);
                found.extend(named.into_iter().flat_map(Map::keys).map(String::as_str));
                let inner = members.iter().map(|(key, value)| (value, place.of(key)));
                waiting.extend(inner.filter(|(_, inner)| has_data || *inner != Place::Data));
            }
            _ => {}
        }
    }
    found
}

/// The role of a value in a schema document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A schema, or a list of schemas.
    Schema,
    /// A map of names to schemas.
    Names,
    /// The value of a keyword that no validator reads as a schema.
    Data,
    /// The value of any other keyword.
    Unknown,
}

impl Place {
    fn of(self, key: &str) -> Self {
        match self {
            Self::Names => Self::Schema,
            Self::Schema if ["const", "default", "enum", "examples"].contains(&key) => Self::Data,
            Self::Schema if NAMED.contains(&key) => Self::Names,
            Self::Schema if ONE.contains(&key) || LIST.contains(&key) => Self::Schema,
            Self::Schema | Self::Unknown => Self::Unknown,
            Self::Data => Self::Data,
        }
    }
}

/// Whether every reference leads to the root of the document or to one of its definitions.
fn refers_to_definitions_only(document: &Value) -> bool {
    match document {
        Value::Array(items) => items.iter().all(refers_to_definitions_only),
        Value::Object(members) => members.iter().all(|(key, value)| match (key.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => to == "#" || names_definition(to),
            _ => refers_to_definitions_only(value),
        }),
        _ => true,
    }
}
