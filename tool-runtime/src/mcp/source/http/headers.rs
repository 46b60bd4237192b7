//! [`ParamHeader`]: an argument that a server wants repeated in a header of the call (`x-mcp-header`).

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::mcp::header::{Mark, PREFIX, encode, marks};

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
    let header = |Mark { path, name }| {
        let name = HeaderName::try_from(format!("{PREFIX}{name}")).ok()?;
        Some(ParamHeader { path, name })
    };
    Ok(marks(schema)?.into_iter().filter_map(header).collect())
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
