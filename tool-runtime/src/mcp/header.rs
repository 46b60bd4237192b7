//! `Mcp-Param-` headers (protocol revision 2026-07-28), which repeat arguments of a call so that proxies can read them.
//! The client and the server share this file: the schema keyword that marks such an argument, and the encoding of
//! values.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderName;
use serde_json::Value;

use crate::schema::{Position, subschemas};

/// The schema keyword that marks an argument to repeat in a header. Its value is the name of the header, without
/// [`PREFIX`].
pub(super) const KEYWORD: &str = "x-mcp-header";

/// The prefix of the names of these headers.
pub(super) const PREFIX: &str = "mcp-param-";

/// An argument that a schema marks.
pub(super) struct Mark {
    /// The names of the properties that lead to the argument.
    pub(super) path: Vec<String>,
    /// The value of the keyword.
    pub(super) name: String,
}

/// Returns the arguments that a schema marks. An invalid mark is an error, because the specification excludes such a
/// tool.
pub(super) fn marks(schema: &Value) -> Result<Vec<Mark>, String> {
    let (mut found, mut names) = (Vec::new(), HashSet::new());
    find(schema, Some(&[]), &mut found)?;
    let read = |(path, property): (Vec<&str>, &Value)| {
        let at = path.join(".");
        let name = property[KEYWORD].as_str().filter(|name| !name.is_empty());
        let header = name.and_then(|name| HeaderName::try_from(format!("{PREFIX}{name}")).ok());
        let (Some(name), Some(header)) = (name, header) else {
            return Err(format!("`{at}`: the value of `{KEYWORD}` cannot be part of a header's name"));
        };
        if !is_primitive(&property["type"]) {
            return Err(format!("`{at}`: `{KEYWORD}` marks an argument that is not a string, integer or boolean"));
        }
        // Names of headers that differ in case are equal.
        if !names.insert(header) {
            return Err(format!("`{at}`: another argument has the same `{KEYWORD}`"));
        }
        Ok(Mark { path: path.into_iter().map(str::to_owned).collect(), name: name.to_owned() })
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

/// Whether each value of a type can be repeated in a header. A `null` is allowed, and has no header. The specification
/// excludes numbers that are not integers.
fn is_primitive(types: &Value) -> bool {
    let is_one = |one: &Value| matches!(one.as_str(), Some("string" | "integer" | "boolean"));
    match types {
        Value::Array(types) => types.iter().any(is_one) && types.iter().all(|one| is_one(one) || one == "null"),
        one => is_one(one),
    }
}

/// Encodes a value for a header. A value that a header cannot hold becomes Base64, such as `=?base64?ZcO8?=`.
#[cfg(feature = "mcp-client")]
pub(super) fn encode(value: &str) -> std::borrow::Cow<'_, str> {
    let is_printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    // HTTP recipients strip spaces around a value, so such a value needs the encoding.
    if is_printable && value.trim_matches(' ') == value && coded(value).is_none() {
        return value.into();
    }
    format!("=?base64?{}?=", STANDARD.encode(value)).into()
}

/// Decodes the value of a header. `None` if its Base64 is invalid or does not contain UTF-8.
#[cfg(feature = "mcp-server")]
pub(super) fn decode(value: &str) -> Option<String> {
    match coded(value) {
        None => Some(value.to_owned()),
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok(),
    }
}

/// Returns the Base64 part of an encoded value. `None` if the value is not encoded.
fn coded(value: &str) -> Option<&str> {
    value.strip_prefix("=?base64?")?.strip_suffix("?=")
}

#[cfg(all(test, feature = "mcp-client", feature = "mcp-server"))]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_as_the_specification_says() {
        for (value, sent) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("a b", "a b"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!((&*encode(value), decode(sent).as_deref()), (sent, Some(value)));
        }
        assert_eq!((decode("=?base64?!?="), decode("=?base64?/w==?=")), (None, None));
        assert_eq!(decode("=?BASE64?ZcO8?=").as_deref(), Some("=?BASE64?ZcO8?="));
    }
}
