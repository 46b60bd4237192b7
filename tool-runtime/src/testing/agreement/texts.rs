//! Proptest strategies for the texts of a pattern or a format.

use std::fmt::Write as _;

use proptest::prelude::{BoxedStrategy, Strategy as _};
use proptest::string::{RegexGeneratorStrategy, string_regex};
use serde_json::Value;

use crate::schema::formats;

/// Returns texts that match a pattern.
///
/// `None` if no text can be generated, for example for a pattern with look-around.
pub(super) fn of_pattern(pattern: &str, least: u64, most: u64) -> Option<RegexGeneratorStrategy<String>> {
    // The pattern of a 128-bit integer. With all of its 39 digits, a number may exceed 128 bits.
    if let Some(digits) = pattern.strip_suffix("{1,39}$") {
        return string_regex(&format!("{}{{1,38}}", digits.trim_start_matches('^'))).ok();
    }
    match formats::named_by(pattern).and_then(pattern_of) {
        Some(accepted) => string_regex(accepted).ok(),
        None => string_regex(&unanchored(pattern, least, most.min(LONGEST))).ok(),
    }
}

/// The maximum number of times that `*` and `+` repeat.
const LONGEST: u64 = 200;

/// Rewrites a pattern for the generator: removes the anchors of its alternatives, writes `\d` and `\w` as validators
/// read them, and gives `*` and `+` bounds that reach the wanted length. A pattern without an end anchor is continued.
fn unanchored(pattern: &str, least: u64, most: u64) -> String {
    let most = if least > 8 { most } else { 8 };
    // The lengths of nested repetitions multiply.
    let groups = pattern.matches(")*").count() + pattern.matches(")+").count();
    let most = if groups > 1 { (most >> (3 * groups.min(21))).max(1) } else { most };
    let (mut written, mut letters) = (String::new(), pattern.chars().peekable());
    let (mut depth, mut is_class) = (0_u32, false);
    let (mut is_first, mut is_ended) = (true, false);
    while let Some(letter) = letters.next() {
        let is_begun = std::mem::replace(&mut is_first, false);
        match letter {
            '\\' => match letters.next() {
                Some('d') => written.push_str("[0-9]"),
                Some('D') => written.push_str("[^0-9]"),
                Some('w') => written.push_str("[A-Za-z0-9_]"),
                Some('W') => written.push_str("[^A-Za-z0-9_]"),
                escaped => written.extend([Some('\\'), escaped].into_iter().flatten()),
            },
            '[' => {
                is_class = true;
                written.push(letter);
            }
            ']' => {
                is_class = false;
                written.push(letter);
            }
            _ if is_class => written.push(letter),
            '^' if depth == 0 && is_begun => {}
            '$' if depth == 0 && matches!(letters.peek(), None | Some('|')) => is_ended = true,
            '*' | '+' if letters.peek() != Some(&'?') => {
                let _ = write!(written, "{{{},{most}}}", u8::from(letter == '+'));
            }
            _ => {
                match letter {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    '|' if depth == 0 => (is_first, is_ended) = (true, false),
                    _ => {}
                }
                written.push(letter);
            }
        }
    }
    let continued = least.min(LONGEST);
    if is_ended || continued == 0 { written } else { format!("(?:{written})[a-z]{{0,{continued}}}") }
}

/// Returns texts of a format; `None` for an unknown format.
pub(super) fn of_format(format: &str) -> Option<BoxedStrategy<Value>> {
    string_regex(pattern_of(format)?).ok().map(|texts| texts.prop_map(Value::from).boxed())
}

/// Returns a pattern whose texts are valid for every Rust type that publishes this format.
fn pattern_of(format: &str) -> Option<&'static str> {
    Some(match format {
        "uuid" => "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        "date" => "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])",
        "date-time" => "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
        "email" => "[a-z]{1,8}@[a-z]{1,8}\\.example",
        "ipv4" => "(1[0-9]{2}|[1-9])\\.(1[0-9]{2}|[0-9])\\.(1[0-9]{2}|[0-9])\\.(1[0-9]{2}|[0-9])",
        "uri" | "iri" => "https://[a-z]{1,8}\\.example/[a-z0-9]{0,8}",
        "hostname" => "[a-z]{1,8}\\.example",
        "time" => "12:30:00Z|00:00:00\\+02:00",
        "duration" => "P1D|PT[1-9][0-9]?[HM]|PT1H30M",
        "idn-email" => "ada@example\\.org",
        "idn-hostname" => "example\\.org",
        "ipv6" => "::1|2001:db8::[1-9]",
        "iri-reference" | "uri-reference" => "/a/b|c\\?d=1",
        "uri-template" => "/a/\\{b\\}",
        "json-pointer" => "|/a/0",
        "relative-json-pointer" => "0|1/a",
        "regex" => "\\^a\\+\\$|\\[0-9\\]",
        "partial-date-time" => {
            "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?"
        }
        "partial-time" => "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,9})?)?",
        "zoned-date-time" => {
            "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\+00:00)?\\[UTC\\]"
        }
        "ip" => "(1[0-9]{2}|[1-9])\\.[0-9]\\.[0-9]\\.[1-9]|2001:db8::[1-9a-f][0-9a-f]{0,3}",
        _ => return None,
    })
}
