//! Trees into types: accepted and refused values, with the places of errors.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::read;
use crate::json::from_tree;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Outer<'a> {
    count: i32,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    inner: Option<Inner>,
    #[serde(default)]
    list_of: Vec<Inner>,
    #[serde(default)]
    map: BTreeMap<String, u8>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Inner {
    mode: Mode,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Fast,
    Slow,
    Custom { speed: f64 },
    Pair(u8, u8),
    Named(String),
}

#[test]
fn values_are_built() {
    let tree = read(
        r#"{"count": 5.0, "name": "x", "inner": {"mode": "fast"}, "listOf": [{"mode": {"custom": {"speed": 2}}}, {"mode": {"pair": [1, 2]}}, {"mode": {"named": "n"}}], "map": {"k": 1}}"#,
    );
    let outer: Outer<'_> = from_tree(&tree).unwrap();
    assert_eq!(outer.count, 5);
    assert!(matches!(outer.name, Cow::Borrowed("x")));
    assert_eq!(outer.inner, Some(Inner { mode: Mode::Fast }));
    let modes: Vec<_> = outer.list_of.into_iter().map(|inner| inner.mode).collect();
    assert_eq!(modes, [Mode::Custom { speed: 2.0 }, Mode::Pair(1, 2), Mode::Named("n".to_owned())]);
    let same: serde_json::Value = from_tree(&tree).unwrap();
    assert_eq!(same, tree.to_value());
    assert_eq!(from_tree::<(u8, Option<String>, ())>(&read("[1, null, null]")).unwrap(), (1, None, ()));
    assert_eq!(from_tree::<u64>(&read("18446744073709551615")).unwrap(), u64::MAX);
    assert_eq!(from_tree::<i128>(&read("-1")).unwrap(), -1);
    assert_eq!(from_tree::<Option<Option<u8>>>(&read("null")).unwrap(), None);
}

#[test]
fn what_does_not_fit_is_refused_at_its_place() {
    for (text, pointer, expected) in [
        (r#"{"name": "x"}"#, "", "the property `count`"),
        (r#"{"count": 1.5, "name": "x"}"#, "/count", "i32"),
        (r#"{"count": 3000000000, "name": "x"}"#, "/count", "i32"),
        (r#"{"count": "1", "name": "x"}"#, "/count", "i32"),
        (
            r#"{"count": 1, "name": "x", "secret": 1}"#,
            "",
            "only the properties `count`, `name`, `inner`, `listOf`, `map`",
        ),
        (r#"{"count": 1, "name": "x", "inner": ["fast"]}"#, "/inner", "struct Inner"),
        (
            r#"{"count": 1, "name": "x", "inner": {"mode": "secret"}}"#,
            "/inner/mode",
            "one of `fast`, `slow`, `custom`, `pair`, `named`",
        ),
        (r#"{"count": 1, "name": "x", "inner": {"mode": {"fast": null}}}"#, "/inner/mode", "a string"),
        (r#"{"count": 1, "name": "x", "inner": {"mode": "custom"}}"#, "/inner/mode", "struct variant"),
        (r#"{"count": 1, "name": "x", "inner": {"mode": {"fast": null, "slow": null}}}"#, "/inner/mode", "enum Mode"),
        (r#"{"count": 1, "name": "x", "listOf": [{"mode": "slow"}, {"mode": 7}]}"#, "/listOf/1/mode", "enum Mode"),
        (
            r#"{"count": 1, "name": "x", "listOf": [{"mode": {"custom": {"speed": "secret"}}}]}"#,
            "/listOf/0/mode/custom/speed",
            "f64",
        ),
        (r#"{"count": 1, "name": "x", "map": {"a/b~c": 300}}"#, "/map/a~1b~0c", "u8"),
        (r#"{"count": 1, "name": "x", "map": null}"#, "/map", "a map"),
        (r#"["a"]"#, "", "struct Outer"),
    ] {
        let tree = read(text);
        let error = from_tree::<Outer<'_>>(&tree).unwrap_err();
        assert_eq!((error.pointer().as_str(), error.expected()), (pointer, expected), "{text}");
        for shown in [error.to_string(), format!("{error:?}"), format!("{:?}", error.violation())] {
            assert!(!shown.contains("secret"), "{shown}");
        }
    }
    assert!(from_tree::<(u8, u8)>(&read("[1, 2, 3]")).is_err());
    assert!(from_tree::<(u8, u8)>(&read("[1]")).is_err());
}

#[test]
fn a_type_that_is_narrower_than_schemas_says_so_without_the_value() {
    #[derive(Debug, Deserialize)]
    struct When {
        #[expect(dead_code, reason = "only read")]
        date: jiff::civil::Date,
    }
    let tree = read(r#"{"date": "2023-02-30"}"#);
    let error = from_tree::<When>(&tree).unwrap_err();
    assert_eq!(error.pointer(), "/date");
    assert!(error.is_narrower() && error.detail().is_some());
    assert!(!error.to_string().contains("2023"));
    let tree = read(r#"{"date": 5}"#);
    assert!(!from_tree::<When>(&tree).unwrap_err().is_narrower());
}
