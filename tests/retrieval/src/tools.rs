//! The definitions, as texts.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Row {
    id: String,
    wire_name: String,
    #[serde(default)]
    description: Option<String>,
    schema: Value,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

/// A definition, and the parts of it that are searched.
pub struct Tool {
    pub id: String,
    pub name: String,
    pub description: String,
    pub schema: Value,
    /// The names of arguments, their descriptions, and the values that they may have.
    pub arguments: [String; 3],
}

impl Tool {
    pub fn renamed(&self, prefix: &str) -> Self {
        Self {
            id: format!("{prefix}/{}", self.id),
            name: format!("{prefix}__{}", self.name).chars().take(64).collect(),
            description: self.description.clone(),
            schema: self.schema.clone(),
            arguments: self.arguments.clone(),
        }
    }

    /// The name without its namespace.
    pub fn own_name(&self) -> &str {
        self.name.rsplit_once("__").map_or(&self.name, |(_, name)| name)
    }
}

/// Reads definitions: all, or those whose ids are in the pool.
pub fn read(tools: &str, pool: Option<&str>) -> Vec<Tool> {
    let wanted: Option<BTreeSet<String>> =
        pool.map(|pool| pool.lines().filter_map(|line| serde_json::from_str(line).ok()).map(|Id { id }| id).collect());
    let rows = tools.lines().filter_map(|line| serde_json::from_str::<Row>(line).ok());
    let rows = rows.filter(|row| wanted.as_ref().is_none_or(|wanted| wanted.contains(&row.id)));
    rows.map(|Row { id, wire_name, description, schema }| {
        let mut arguments = [const { String::new() }; 3];
        collect(&schema, &mut arguments);
        Tool { id, name: wire_name, description: description.unwrap_or_default(), schema, arguments }
    })
    .collect()
}

fn collect(schema: &Value, into: &mut [String; 3]) {
    let Value::Object(members) = schema else { return };
    for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        into[0].extend([name, "\n"]);
        if let Some(text) = property.get("description").and_then(Value::as_str) {
            into[1].extend([text, "\n"]);
        }
        collect(property, into);
    }
    let values = members.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    values.for_each(|value| into[2].extend([value, "\n"]));
    for (keyword, inner) in members {
        match (keyword.as_str(), inner) {
            ("items" | "additionalProperties", inner) => collect(inner, into),
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => all.iter().for_each(|inner| collect(inner, into)),
            _ => {}
        }
    }
}

/// Names in camel case and snake case, as words.
pub fn split(name: &str) -> String {
    let mut words = String::new();
    let mut before = ' ';
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        let begins_word = char.is_uppercase()
            && (before.is_lowercase()
                || (before.is_uppercase() && chars.peek().is_some_and(|next| next.is_lowercase())));
        if begins_word || (char.is_numeric() != before.is_numeric() && before.is_alphanumeric()) {
            words.push(' ');
        }
        words.push(if char.is_alphanumeric() { char } else { ' ' });
        before = char;
    }
    words
}
