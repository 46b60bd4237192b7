//! `Mcp-Param-` headers (protocol revision 2026-07-28), which repeat arguments of a call so that proxies can read them.
//! The client and the server share this file: the schema keyword that marks such an argument, and the encoding of
//! values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The schema keyword that marks an argument to repeat in a header. Its value is the name of the header, without
/// [`PREFIX`].
pub(super) const KEYWORD: &str = "x-mcp-header";

/// The prefix of the names of these headers.
#[cfg(feature = "mcp-client")]
pub(super) const PREFIX: &str = "mcp-param-";

/// Whether each value of a type can be repeated in a header. A `null` is allowed, and has no header. The specification
/// excludes numbers that are not integers.
pub(super) fn is_primitive(types: &Value) -> bool {
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
