//! Formats a definition as a tree: the arguments, and the output with the readers of each part.

use serde_json::Value;
use tool_runtime::ToolSpec;
use tool_runtime::tool::Redaction;

use crate::terminal;

/// The maximum depth. It bounds schemas of servers, which may refer to themselves.
const DEPTH: usize = 12;
/// The maximum number of rows of a tree.
const ROWS: usize = 400;
/// The maximum number of schemas that are visited to collect the members of one value.
const VISITS: usize = 1_000;
/// The maximum length of a list of values, a pattern, a format or a default value, in characters.
const LONG: usize = 60;

/// A line of a tree: name, type, note.
pub(super) type TreeRow = [String; 3];

/// Returns the rows for the arguments of a tool.
pub(super) fn arguments(spec: &ToolSpec) -> Vec<TreeRow> {
    let schema = spec.input_schema.to_value();
    let mut tree = Tree { root: &schema, rows: Vec::new() };
    tree.members(&schema, "", 0, &|path, is_required, _| {
        let is_own = !path.contains('.');
        let mut notes = Vec::new();
        if is_required {
            notes.push("required".to_owned());
        }
        if is_own && spec.require_any.iter().any(|name| name == path) {
            notes.push(format!("one of {} is required", spec.require_any.join(", ")));
        }
        if let Some(lister) = spec.evidence.get(path) {
            notes.push(format!("a value that {lister} or the user showed"));
        }
        if is_own && spec.sensitive.iter().any(|name| name == path) {
            notes.push("sensitive: masked for UI, audit and approvers".to_owned());
        }
        notes.join("; ")
    });
    tree.rows
}

/// Returns the rows for the output of a tool, with the readers of each leaf under an allowlist.
pub(super) fn output(spec: &ToolSpec, redaction: &Redaction) -> Vec<TreeRow> {
    let schema = spec.output_schema.to_value();
    let mut tree = Tree { root: &schema, rows: Vec::new() };
    let readers = |path: &str| readers(redaction, path).to_owned();
    let whole = tree.target(&schema);
    if tree.children(whole).is_empty() {
        tree.rows.push(["(the value)".to_owned(), kind(whole), readers("$")]);
    } else {
        tree.members(&schema, "", 0, &|path, _, is_leaf| if is_leaf { readers(path) } else { String::new() });
    }
    for extra in ["$media", "$error"] {
        if redaction.allow.iter().chain(&redaction.model).any(|path| path == extra) {
            tree.rows.push([extra.to_owned(), String::new(), readers(extra)]);
        }
    }
    tree.rows
}

/// Returns the readers of a leaf.
fn readers(redaction: &Redaction, path: &str) -> &'static str {
    let is_in = |paths: &[String]| paths.iter().any(|one| one == path);
    match (is_in(&redaction.allow), is_in(&redaction.model)) {
        (true, _) => "model, UI, audit",
        (false, true) => "model",
        (false, false) => "not shown",
    }
}

struct Tree<'a> {
    root: &'a Value,
    rows: Vec<TreeRow>,
}

/// Returns the note about a member, from its path, whether it is required, and whether it is a leaf.
type Note<'a> = &'a dyn Fn(&str, bool, bool) -> String;

impl<'a> Tree<'a> {
    fn members(&mut self, schema: &'a Value, path: &str, depth: usize, note: Note<'_>) {
        for (name, member, is_required) in self.children(self.target(schema)) {
            if self.rows.len() == ROWS {
                return self.rows.push(["\u{2026}".to_owned(), String::new(), String::new()]);
            }
            if self.rows.len() > ROWS {
                return;
            }
            let member = self.target(member);
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let is_leaf = self.children(member).is_empty();
            let indent = "  ".repeat(depth);
            self.rows.push([
                format!("{indent}{}", terminal::safe(name)),
                terminal::safe(&kind(member)),
                note(&path, is_required, is_leaf),
            ]);
            if depth + 1 < DEPTH {
                self.members(member, &path, depth + 1, note);
            }
        }
    }

    /// Returns the members of an object, of the objects in a list, and of each alternative. A map has the member `*`,
    /// which stands for its values.
    fn children(&self, schema: &'a Value) -> Vec<(&'a str, &'a Value, bool)> {
        let mut found = Vec::new();
        self.collect(schema, &mut { VISITS }, &mut found);
        found
    }

    /// Collects members. Alternatives and items are levels of the schema, but not of the tree.
    fn collect(&self, schema: &'a Value, visits: &mut usize, found: &mut Vec<(&'a str, &'a Value, bool)>) {
        *visits = visits.saturating_sub(1);
        if *visits == 0 {
            return;
        }
        let required: Vec<_> = list(schema, "required").filter_map(Value::as_str).collect();
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let properties = properties.map(|(name, member)| (&**name, member, required.contains(&&**name)));
        let values = schema.get("additionalProperties").filter(|values| values.is_object());
        for member in properties.chain(values.map(|values| ("*", values, false))) {
            if found.iter().all(|(known, ..)| *known != member.0) {
                found.push(member);
            }
        }
        let alternatives = ["anyOf", "oneOf", "allOf"].into_iter().flat_map(|key| list(schema, key));
        for inner in alternatives.chain(schema.get("items")) {
            self.collect(self.target(inner), visits, found);
        }
    }

    /// Follows the `$ref`s of a schema.
    fn target(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..DEPTH {
            let named = schema.get("$ref").and_then(Value::as_str).and_then(|named| named.strip_prefix('#'));
            let Some(next) = named.and_then(|pointer| self.root.pointer(pointer)) else { return schema };
            schema = next;
        }
        schema
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the type of a value and its bounds, on one line.
fn kind(schema: &Value) -> String {
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if list(schema, "enum").next().is_some() {
        let values: Vec<_> =
            list(schema, "enum").map(|value| value.as_str().map_or(value.to_string(), str::to_owned)).collect();
        return shortened(&values.join(" | "));
    }
    let alternatives: Vec<_> = ["anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key)).map(kind).collect();
    if !alternatives.is_empty() {
        let mut kinds: Vec<String> = Vec::new();
        kinds.extend(alternatives.into_iter().filter(|kind| !kind.is_empty()));
        kinds.dedup();
        return shortened(&kinds.join(" | "));
    }
    let named = schema.get("type");
    let types: Vec<_> = match named {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one.as_str()],
        _ => Vec::new(),
    };
    let mut text = types.iter().map(|one| typed(one, schema)).collect::<Vec<_>>().join(" | ");
    if let Some(format) = schema.get("format").or_else(|| schema.get("pattern")).and_then(Value::as_str) {
        text = format!("{text} ({})", shortened(format));
    }
    for (least, most, unit) in
        [("minimum", "maximum", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " items")]
    {
        match (schema.get(least), schema.get(most)) {
            (Some(least), Some(most)) => text = format!("{text}, {least} to {most}{unit}"),
            (Some(least), None) => text = format!("{text}, at least {least}{unit}"),
            (None, Some(most)) => text = format!("{text}, at most {most}{unit}"),
            (None, None) => {}
        }
    }
    if let Some(default) = schema.get("default") {
        text = format!("{text}, default {}", shortened(&default.to_string()));
    }
    text
}

fn typed(name: &str, schema: &Value) -> String {
    match (name, schema.get("items")) {
        ("array", Some(items)) => format!("list of {}", kind(items)).trim_end().to_owned(),
        ("array", None) => "list".to_owned(),
        ("object", _) if schema.get("additionalProperties").is_some_and(Value::is_object) => "map".to_owned(),
        _ => name.to_owned(),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= LONG {
        return text.to_owned();
    }
    text.chars().take(LONG).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use serde_json::{Value, json};
    use tool_runtime::registration::{DynamicHandler, DynamicTool};
    use tool_runtime::{ToolContext, ToolEffect, ToolError, ToolSpec};

    use super::{arguments, output};

    struct NotRunnable;

    #[async_trait]
    impl DynamicHandler for NotRunnable {
        async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
            Ok(Value::Null)
        }
    }

    fn spec(input: Value, output: Value) -> ToolSpec {
        let tool = DynamicTool::new("a__b", "Does it.", input, ToolEffect::ReadOnly, Arc::new(NotRunnable));
        tool.output_schema(output).redact(["id", "lines.title"]).model(["lines.price"]).definition().unwrap()
    }

    #[test]
    fn each_leaf_has_its_readers() {
        let line = json!({ "type": "object", "properties": {
            "title": { "type": "string" }, "price": { "type": "integer" }, "key": { "type": "string" },
        } });
        let whole = json!({ "type": "object", "properties": {
            "id": { "type": "string", "format": "uuid" }, "lines": { "type": "array", "items": line },
        } });
        let spec = spec(json!({ "type": "object" }), whole);
        let rows = output(&spec, &spec.redaction);
        assert_eq!(
            rows,
            [
                ["id", "string (uuid)", "model, UI, audit"],
                ["lines", "list of object", ""],
                ["  key", "string", "not shown"],
                ["  price", "integer", "model"],
                ["  title", "string", "model, UI, audit"],
            ]
        );
    }

    #[test]
    fn arguments_have_their_bounds() {
        let input = json!({ "type": "object", "required": ["count"], "properties": {
            "count": { "type": "integer", "minimum": 1, "maximum": 9 },
            "state": { "enum": ["open", "done"], "type": "string" },
            "zone": { "type": ["string", "null"], "default": "UTC" },
        } });
        let spec = spec(input, json!({ "type": "object" }));
        assert_eq!(
            arguments(&spec),
            [
                ["count", "integer, 1 to 9", "required"],
                ["state", "open | done", ""],
                ["zone", "string | null, default \"UTC\"", ""],
            ]
        );
    }
}
