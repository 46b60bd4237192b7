//! Texts of a pattern or a format, as strategies of proptest.

use proptest::prelude::{BoxedStrategy, Strategy as _};
use proptest::string::string_regex;
use serde_json::Value;

/// The pattern with classes of ASCII, as validators read `\d` and `\w`.
pub(super) fn ascii(pattern: &str) -> String {
    let (mut written, mut letters) = (String::new(), pattern.chars());
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            written.push(letter);
            continue;
        }
        match letters.next() {
            Some('d') => written.push_str("[0-9]"),
            Some('D') => written.push_str("[^0-9]"),
            Some('w') => written.push_str("[A-Za-z0-9_]"),
            Some('W') => written.push_str("[^A-Za-z0-9_]"),
            escaped => written.extend([Some('\\'), escaped].into_iter().flatten()),
        }
    }
    written
}

/// Formats of which there are many values.
pub(super) fn formatted(format: &str) -> Option<BoxedStrategy<Value>> {
    let pattern = match format {
        "uuid" => "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        "date" => "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])",
        "date-time" => "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
        "email" => "[a-z]{1,8}@[a-z]{1,8}\\.example",
        "ipv4" => "(1[0-9]{2}|[1-9])\\.(1[0-9]{2}|[0-9])\\.(1[0-9]{2}|[0-9])\\.(1[0-9]{2}|[0-9])",
        "uri" | "iri" => "https://[a-z]{1,8}\\.example/[a-z0-9]{0,8}",
        "hostname" => "[a-z]{1,8}\\.example",
        _ => return None,
    };
    string_regex(pattern).ok().map(|texts| texts.prop_map(Value::from).boxed())
}

/// Values of the formats that JSON Schema defines.
pub(super) fn examples(format: &str) -> Option<Vec<&'static str>> {
    Some(match format {
        "date" | "date-time" | "email" | "hostname" | "ipv4" | "iri" | "uri" | "uuid" => Vec::new(),
        "time" => vec!["12:30:00Z", "00:00:00+02:00"],
        "duration" => vec!["PT15M", "P1D", "PT1H30M"],
        "idn-email" => vec!["ada@example.org"],
        "idn-hostname" => vec!["example.org"],
        "ipv6" => vec!["::1", "2001:db8::1"],
        "iri-reference" | "uri-reference" => vec!["/a/b", "c?d=1"],
        "uri-template" => vec!["/a/{b}"],
        "json-pointer" => vec!["", "/a/0"],
        "relative-json-pointer" => vec!["0", "1/a"],
        "regex" => vec!["^a+$", "[0-9]"],
        _ => return None,
    })
}
