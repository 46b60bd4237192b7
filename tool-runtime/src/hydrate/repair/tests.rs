//! Cases of the built-in repairers.

use crate::hydrate::repair::{attempt, built_in};
use crate::json::{Limits, digest, parse};

#[track_caller]
fn check(name: &str, text: &str, expected: Option<&str>) {
    let (_, repair) = built_in().find(|(known, _)| *known == name).unwrap();
    assert_eq!(repair(text).as_deref(), expected, "{text}");
    if let Some(expected) = expected {
        assert!(parse(expected, &Limits::default()).is_ok(), "{expected}");
    }
}

#[test]
fn fences_are_taken_off() {
    let check = |text, expected| check("fenced_json", text, expected);
    check("```json\n{\"a\": 1}\n```", Some(r#"{"a": 1}"#));
    check("\n```\n{\"a\": \"`\"}\n```  ", Some(r#"{"a": "`"}"#));
    check("```json\n{\"a\": 1}", None);
    check("here: ```json\n{}\n```", None);
    check("```json\n{}\n```\n```json\n{}\n```", None);
    check("{}", None);
}

#[test]
fn one_level_of_quoting_is_taken_off() {
    let check = |text, expected| check("double_encoded", text, expected);
    check(r#""{\"a\": \"b\"}""#, Some(r#"{"a": "b"}"#));
    check(r#""\"{}\"""#, None);
    check(r#""hello""#, None);
    check("{}", None);
}

#[test]
fn trailing_commas_and_junk_are_dropped() {
    let check = |text, expected| check("trailing_junk", text, expected);
    check(r#"{"a": [1, 2,], "b": {"c": 1,} ,}"#, Some(r#"{"a": [1, 2], "b": {"c": 1} }"#));
    check(r#"{"a": ",}"}"#, None);
    check(r#"{"a": ",}",}"#, Some(r#"{"a": ",}"}"#));
    check(r#"{"a": "\","} and so on"#, Some(r#"{"a": "\","}"#));
    check(r#"{"a": 1}}"#, Some(r#"{"a": 1}"#));
    check(r#"{"a": 1"#, None);
    check(r#"{"a": "x"#, None);
    check("}{", None);
    check("words {}", None);
}

#[test]
fn single_quotes_become_double_where_no_quote_is_inside() {
    let check = |text, expected| check("single_quotes", text, expected);
    check("{'a': 'b', 'c': [1, 'd'], \"e\": \"it's\"}", Some(r#"{"a": "b", "c": [1, "d"], "e": "it's"}"#));
    check("{'a': 'é'}", Some(r#"{"a": "é"}"#));
    check("{'a': 'it's'}", None);
    check("{'a': 'say \"x\"'}", None);
    check("{'a': 'b\\'}", None);
    check("{'a': 'b", None);
    check("{\"a\": 1}", None);
    check("'a'", None);
}

#[test]
fn there_is_one_attempt_and_it_is_documented() {
    let text = "```json\n{'a': 1}\n```";
    let repaired = attempt(built_in(), text).unwrap();
    assert_eq!((repaired.repairer.as_str(), repaired.text.as_str()), ("fenced_json", "{'a': 1}"));
    assert_eq!((repaired.before, repaired.after), (digest(text), digest("{'a': 1}")));
    assert!(!format!("{repaired:?}").contains("'a'"));
    assert!(attempt(built_in(), "{\"a\": 1}").is_none());
    assert!(attempt(built_in(), "{\"a\": ").is_none());
}
