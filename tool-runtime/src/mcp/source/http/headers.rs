//! [`ParamHeader`]: an argument that a server wants repeated in a header of the call (`x-mcp-header`).

use std::collections::HashSet;

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::mcp::header::{KEYWORD, PREFIX, encode, is_primitive};
use crate::schema::{Position, subschemas};

/// An argument that is repeated in a header.
#[derive(Debug, Clone)]
pub(in crate::mcp::source) struct ParamHeader {
    /// The names of the properties that lead to the argument.
    path: Vec<String>,
    name: HeaderName,
}

/// Returns the arguments that a schema marks. An invalid mark is an error, because the specification excludes such a
/// tool.
pub(in crate::mcp::source) fn read(schema: &Value) -> Result<Vec<ParamHeader>, String> {
    let (mut found, mut names) = (Vec::new(), HashSet::new());
    find(schema, Some(&[]), &mut found)?;
    let read = |(path, property): (Vec<&str>, &Value)| {
        let at = path.join(".");
        let name = property[KEYWORD].as_str().filter(|name| !name.is_empty());
        let name = name.and_then(|name| HeaderName::try_from(format!("{PREFIX}{name}")).ok());
        let name = name.ok_or_else(|| format!("`{at}`: the value of `{KEYWORD}` cannot be part of a header's name"))?;
        if !is_primitive(&property["type"]) {
            return Err(format!("`{at}`: `{KEYWORD}` marks an argument that is not a string, integer or boolean"));
        }
        if !names.insert(name.clone()) {
            return Err(format!("`{at}`: another argument has the same `{KEYWORD}`"));
        }
        Ok(ParamHeader { path: path.into_iter().map(str::to_owned).collect(), name })
    };
    found.into_iter().map(read).collect()
}

/// Finds the marked properties. `path` leads to the schema; it is `None` below any keyword except `properties`.
fn find<'a>(
    schema: &'a Value,
    path: Option<&[&'a str]>,
    found: &mut Vec<(Vec<&'a str>, &'a Value)>,
) -> Result<(), String> {
    let Value::Object(members) = schema else { return Ok(()) };
    if members.contains_key(KEYWORD) {
        let path = path.filter(|path| !path.is_empty());
        let path =
            path.ok_or_else(|| format!("`{KEYWORD}` marks something that is not reached through `properties` alone"))?;
        found.push((path.to_vec(), schema));
    }
    subschemas(members).into_iter().try_for_each(|Position { keyword, name, schema, .. }| {
        let path = path.zip(name.filter(|_| keyword == "properties")).map(|(path, name)| [path, &[name]].concat());
        find(schema, path.as_deref(), found)
    })
}

/// Returns the headers of a call. An argument that is missing or `null` has none.
pub(in crate::mcp::source) fn of(headers: &[ParamHeader], arguments: &Value) -> Vec<(HeaderName, HeaderValue)> {
    let header = |header: &ParamHeader| {
        let value = header.path.iter().try_fold(arguments, |value, name| value.get(name))?;
        let text = match value {
            Value::String(text) => encode(text),
            // The same text as in the body.
            Value::Bool(_) | Value::Number(_) => value.to_string().into(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        let mut value = HeaderValue::try_from(&*text).ok()?;
        value.set_sensitive(true);
        Some((header.name.clone(), value))
    };
    headers.iter().filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn marked(mark: &str) -> Value {
        json!({"type": "string", "x-mcp-header": mark})
    }

    #[test]
    fn marked_arguments_are_sent() {
        let schema = json!({"type": "object", "required": ["x-mcp-header"], "properties": {
            // An argument with the name of this keyword, and one with the name of another keyword.
            "x-mcp-header": {"type": "string", "default": {"x-mcp-header": "no mark"}},
            "items": marked("Items"),
            "place": {"properties": {"count": {"type": ["integer", "null"], "x-mcp-header": "count"}}},
            "sure": {"type": "boolean", "x-mcp-header": "Sure!"},
        }});
        let headers = read(&schema).unwrap();
        let sent = |arguments: Value| {
            let mut sent: Vec<_> = of(&headers, &arguments)
                .into_iter()
                .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                .collect();
            sent.sort();
            sent
        };
        let arguments = json!({"items": "eü", "place": {"count": -7}, "sure": true, "x-mcp-header": "x"});
        let expected = ["mcp-param-count: -7", "mcp-param-items: =?base64?ZcO8?=", "mcp-param-sure!: true"];
        assert_eq!(sent(arguments), expected);
        assert_eq!(sent(json!({"place": {"count": null}, "count": 1})), [""; 0]);
    }

    #[test]
    fn a_wrong_mark_excludes_the_tool() {
        let property = |property: Value| json!({"type": "object", "properties": {"a": property}});
        for schema in [
            property(marked("")),
            property(marked("a b")),
            property(marked("a:")),
            property(marked("a\r\nx")),
            property(marked("ü")),
            property(json!({"type": "string", "x-mcp-header": 7})),
            property(json!({"type": "number", "x-mcp-header": "A"})),
            property(json!({"type": "object", "x-mcp-header": "A"})),
            property(json!({"x-mcp-header": "A"})),
            property(json!({"type": "array", "items": marked("A")})),
            property(json!({"anyOf": [marked("A")]})),
            property(json!({"properties": {"b": {"not": marked("A")}}})),
            json!({"type": "object", "x-mcp-header": "A"}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": marked("A")}}),
            json!({"type": "object", "if": {"properties": {"a": marked("A")}}}),
            json!({"type": "object", "properties": {"a": marked("A"), "b": {"properties": {"c": marked("a")}}}}),
        ] {
            assert!(read(&schema).is_err(), "{schema}");
        }
    }
}
