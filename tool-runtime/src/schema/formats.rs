//! Replaces formats that only schemars defines, such as `uint32`, with bounds and patterns that every validator knows.

use serde_json::{Map, Number, Value};

/// Formats that JSON Schema defines. All others are dropped, because a validator may ignore or refuse them.
const STANDARD: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Text formats of schemars that JSON Schema does not define, each with the pattern that replaces it. Every validator
/// checks patterns.
const TEXTS: [(&str, &str); 4] = [
    ("partial-date-time", r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?$"),
    ("partial-time", r"^\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?$"),
    (
        "zoned-date-time",
        r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?\[[A-Za-z0-9_+/-]+\]$",
    ),
    ("ip", "^[0-9A-Fa-f:.]{2,45}$"),
];

/// Adds the pattern for a text format that JSON Schema does not define, unless the author wrote a pattern.
pub(crate) fn write_pattern(schema: &mut Map<String, Value>, format: &str) {
    if let Some((_, pattern)) = TEXTS.iter().find(|(name, _)| *name == format) {
        schema.entry("pattern").or_insert_with(|| (*pattern).into());
    }
}

/// Returns the format for which this pattern was written.
#[cfg(feature = "testing")]
pub(crate) fn named_by(pattern: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(_, written)| *written == pattern).map(|(name, _)| *name)
}

/// Drops a format that JSON Schema does not define and returns it.
pub(crate) fn drop_private(schema: &mut Map<String, Value>) -> Option<String> {
    let format = schema.get("format")?.as_str()?;
    if STANDARD.contains(&format) {
        return None;
    }
    match schema.remove("format") {
        Some(Value::String(format)) => Some(format),
        _ => None,
    }
}

/// Adds the bounds of a numeric format, unless the schema has narrower ones. An integer of 128 bits without bounds from
/// its author may also be text, because JSON numbers are read only up to 64 bits.
pub(crate) fn write_bounds(schema: &mut Map<String, Value>, format: &str) {
    let Some((low, high)) = bounds(format) else { return };
    let digits = match format {
        "int128" => Some("^-?[0-9]{1,39}$"),
        "uint128" => Some("^[0-9]{1,39}$"),
        _ => None,
    };
    let is_bounded = schema.keys().any(|key| match key.as_str() {
        // An unsigned integer has this bound from its type.
        "minimum" => format != "uint128" || schema.get(key) != Some(&Value::from(0)),
        key => ["maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum", "const"].contains(&key),
    });
    if let Some(digits) = digits.filter(|_| !is_bounded) {
        let nullable = schema.get("type").and_then(Value::as_array).is_some_and(|types| types.contains(&"null".into()));
        let types = if nullable { vec!["integer", "string", "null"] } else { vec!["integer", "string"] };
        schema.insert("type".to_owned(), types.into());
        schema.insert("pattern".to_owned(), digits.into());
    }
    if schema.get("minimum").is_none_or(|given| compare(given, &low).is_none_or(std::cmp::Ordering::is_lt)) {
        schema.insert("minimum".to_owned(), Value::Number(low));
    }
    if schema.get("maximum").is_none_or(|given| compare(given, &high).is_none_or(std::cmp::Ordering::is_gt)) {
        schema.insert("maximum".to_owned(), Value::Number(high));
    }
}

/// Returns the range of the type behind a format. `usize` has the range of 64-bit machines, so that a definition has
/// one hash everywhere. 128-bit integers have the range of the parser of arguments.
fn bounds(format: &str) -> Option<(Number, Number)> {
    Some(match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" | "int" => (i64::MIN.into(), i64::MAX.into()),
        "int128" => (i64::MIN.into(), u64::MAX.into()),
        "uint8" => (0.into(), u8::MAX.into()),
        "uint16" => (0.into(), u16::MAX.into()),
        "uint32" => (0.into(), u32::MAX.into()),
        "uint64" | "uint" | "uint128" => (0.into(), u64::MAX.into()),
        "float" => (Number::from_f64(f32::MIN.into())?, Number::from_f64(f32::MAX.into())?),
        _ => return None,
    })
}

/// Compares two JSON numbers, exactly when both are integers.
pub(crate) fn compare(a: &Value, b: &Number) -> Option<std::cmp::Ordering> {
    let a = a.as_number()?;
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}
