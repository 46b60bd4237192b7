//! `Mcp-Param-` headers, which repeat arguments of a call for intermediaries such as proxies. Their values must match
//! the text of the body.

use http::HeaderMap;
use http::request::Parts;
use rmcp::model::{ErrorCode, ErrorData, Extensions};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::mcp::header::{KEYWORD, Mark, PREFIX, decode};
use crate::mcp::serve::listing::Offered;
use crate::mcp::serve::sessions::is_without_sessions;

/// The error code for a header that differs from the body.
const MISMATCH: ErrorCode = ErrorCode(-32020);

/// Removes the marks of arguments.
pub(super) fn without(schema: &mut Value) {
    for property in
        schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(|all| all.values_mut())
    {
        if let Some(property) = property.as_object_mut() {
            property.remove(KEYWORD);
        }
        without(property);
    }
}

/// Compares the headers of a request with the text of its call's arguments, and returns the error if they differ. A
/// client of a revision before 2026-07-28 may omit them.
pub(super) fn mismatch(offered: &Offered, extensions: &Extensions, arguments: &str) -> Option<ErrorData> {
    // Most tools have no such headers, and their arguments may be long, so do not parse them.
    if offered.params.is_empty() {
        return None;
    }
    // Without HTTP there are no headers.
    let headers = &extensions.get::<Parts>()?.headers;
    let arguments: Option<&RawValue> = serde_json::from_str(arguments).ok();
    let has_headers = is_without_sessions(headers);
    let differs = |Mark { path, name }: &&Mark| match header_value(headers, &format!("{PREFIX}{name}")) {
        Ok(None) if !has_headers => false,
        value => value != Ok(arguments.and_then(|arguments| written(arguments, path))),
    };
    let Mark { path, name } = offered.params.iter().find(differs)?;
    let message = format!("The header Mcp-Param-{name} does not match `{}`.", path.join("."));
    Some(ErrorData::new(MISMATCH, message, None))
}

/// Returns the value of a header. `Ok(None)` if it is absent, `Err` if it is repeated or not text.
fn header_value(headers: &HeaderMap, name: &str) -> Result<Option<String>, ()> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let value = value.to_str().map_err(|_| ())?;
    if values.next().is_some() {
        return Err(());
    }
    decode(value).map(Some).ok_or(())
}

/// Returns an argument as the client wrote it, digit for digit; a string without its quotes. `None` if the argument is
/// missing, `null`, an object or an array.
fn written(arguments: &RawValue, path: &[String]) -> Option<String> {
    let mut value = arguments;
    for name in path {
        let members: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
        value = members.get(name)?;
    }
    match value.get() {
        "null" => None,
        text if text.starts_with('"') => serde_json::from_str(text).ok(),
        text if text.starts_with(['{', '[']) => None,
        text => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    use http::HeaderValue;

    use crate::mcp::header::marks;

    #[test]
    fn arguments_are_compared_as_they_are_written() {
        let mut schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "place": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
        }});
        let mut found: Vec<_> = marks(&schema).unwrap().into_iter().map(|mark| (mark.path, mark.name)).collect();
        found.sort();
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(found, [(path(&["place", "count"]), "Count".into()), (path(&["region"]), "Region".into())]);
        let text = r#"{"region":"e\u00fc","place":{"count":1.00000000000000000001}}"#;
        let arguments: &RawValue = serde_json::from_str(text).unwrap();
        assert_eq!(written(arguments, &found[0].0).as_deref(), Some("1.00000000000000000001"));
        assert_eq!(written(arguments, &found[1].0).as_deref(), Some("e\u{fc}"));
        let mut headers = HeaderMap::new();
        assert_eq!(header_value(&headers, "mcp-param-region"), Ok(None));
        headers.append("mcp-param-region", HeaderValue::from_static("=?base64?ZcO8?="));
        assert_eq!(header_value(&headers, "mcp-param-region"), Ok(Some("e\u{fc}".to_owned())));
        headers.append("mcp-param-region", HeaderValue::from_static("other"));
        assert_eq!(header_value(&headers, "mcp-param-region"), Err(()));
        without(&mut schema);
        assert!(marks(&schema).unwrap().is_empty());
    }
}
