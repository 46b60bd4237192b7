//! The fields of a definition that picking searches, and their weights in the ranking by BM25F.

use serde_json::Value;

use crate::text::cut;
use crate::tool::{ToolSpec, is_discovered};

/// A field of a definition that picking searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PickField {
    /// The part of the name after the namespace.
    Name,
    /// The title and the description.
    Description,
    /// The names of arguments, at any depth.
    Argument,
    /// The descriptions of arguments.
    ArgumentDescription,
    /// The values that the schema lists for an argument.
    ArgumentValue,
    /// The namespace; for a tool of an MCP server, the id of the server.
    Namespace,
    /// The search words that the author added with `also`.
    Also,
}

pub(super) const FIELDS: usize = 7;

/// The parameters of a field in BM25F.
pub(super) struct Settings {
    pub(super) field: PickField,
    /// The weight of a word in this field.
    pub(super) weight: f64,
    /// The discount for a field that is longer than the average, from 0 to 1.
    pub(super) length: f64,
    /// The maximum number of bytes that are read, so that a long description cannot match every query.
    pub(super) max_bytes: usize,
    /// Whether two adjacent words also count as one word.
    pub(super) pairs: bool,
}

/// The settings of each field, chosen on one half of the retrieval corpus, checked on the other half, and rounded.
pub(super) const SETTINGS: [Settings; FIELDS] = [
    Settings { field: PickField::Name, weight: 3.0, length: 0.25, max_bytes: 1 << 10, pairs: true },
    Settings { field: PickField::Description, weight: 1.0, length: 0.8, max_bytes: 8 << 10, pairs: true },
    Settings { field: PickField::Argument, weight: 0.75, length: 0.4, max_bytes: 4 << 10, pairs: true },
    Settings { field: PickField::ArgumentDescription, weight: 0.3, length: 0.4, max_bytes: 8 << 10, pairs: false },
    Settings { field: PickField::ArgumentValue, weight: 0.75, length: 0.4, max_bytes: 4 << 10, pairs: false },
    Settings { field: PickField::Namespace, weight: 0.25, length: 0.75, max_bytes: 1 << 10, pairs: false },
    // The corpus has no `also` words, so this weight is chosen by hand. It is lower than that of the name, and a tool
    // with many `also` words gets no discount.
    Settings { field: PickField::Also, weight: 2.0, length: 0.0, max_bytes: 1 << 10, pairs: true },
];

/// Returns the text of each field, truncated to its `max_bytes`.
pub(super) fn texts(spec: &ToolSpec) -> [String; FIELDS] {
    let (namespace, name) = split(spec.name.as_str());
    let title = spec.title.as_deref().unwrap_or_default();
    let mut texts = [
        name.to_owned(),
        format!("{title}\n{}", spec.description),
        String::new(),
        String::new(),
        String::new(),
        namespace.to_owned(),
        spec.also.join("\n"),
    ];
    let [_, _, names, descriptions, values, ..] = &mut texts;
    arguments(&spec.input_schema.to_value(), &mut |kind, text| {
        let (into, most) = match kind {
            PickField::Argument => (&mut *names, SETTINGS[2].max_bytes),
            PickField::ArgumentDescription => (&mut *descriptions, SETTINGS[3].max_bytes),
            _ => (&mut *values, SETTINGS[4].max_bytes),
        };
        if into.len() < most {
            into.extend([text, "\n"]);
        }
    });
    for (text, settings) in texts.iter_mut().zip(&SETTINGS) {
        text.truncate(cut(text, settings.max_bytes).len());
    }
    texts
}

/// Splits a name into its namespace and the rest.
fn split(name: &str) -> (&str, &str) {
    match name.split_once("__") {
        Some((prefix, rest)) if is_discovered(name) => rest.split_once("__").unwrap_or((prefix, rest)),
        Some(parts) => parts,
        None => ("", name),
    }
}

/// Visits the names, descriptions and listed values of the arguments. Catalogs limit the depth of schemas.
fn arguments(schema: &Value, take: &mut impl FnMut(PickField, &str)) {
    let Value::Object(schema) = schema else { return };
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        take(PickField::Argument, name);
        if let Some(description) = property.get("description").and_then(Value::as_str) {
            take(PickField::ArgumentDescription, description);
        }
        arguments(property, take);
    }
    let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
    values.filter_map(Value::as_str).for_each(|value| take(PickField::ArgumentValue, value));
    for (keyword, inner) in schema {
        match (keyword.as_str(), inner) {
            ("items" | "additionalProperties", inner) => arguments(inner, take),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(inner)) => {
                inner.iter().for_each(|inner| arguments(inner, take));
            }
            _ => {}
        }
    }
}
