//! Types that cannot be arguments. Each problem has its place and a correction.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::tests::{input, output};

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is read")]
struct One<T> {
    value: T,
}

/// The problems of a type as the argument `value`, as `pointer: part of the message`.
#[track_caller]
fn check<T: JsonSchema>(expected: &[(&str, &str)]) {
    let problems = input::<One<T>>().unwrap_err();
    let mut found: Vec<_> = problems.iter().map(|problem| (problem.path(), problem.message())).collect();
    // Their order is that of a map of `serde_json`, which depends on the features that other crates enable.
    found.sort_unstable();
    assert_eq!(found.len(), expected.len(), "{problems:#?}");
    for ((pointer, message), (expected_pointer, part)) in found.iter().zip(expected) {
        assert_eq!(pointer, expected_pointer, "{problems:#?}");
        assert!(message.contains(part), "{message}");
    }
    assert!(problems.iter().all(|problem| problem.remedy().is_some_and(|remedy| !remedy.is_empty())));
}

#[derive(JsonSchema, Serialize)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is read")]
struct Ping {
    pong: Option<Box<Pong>>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is read")]
struct Pong {
    ping: Option<Box<Ping>>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is read")]
enum External {
    Unit,
    Data { a: u8 },
}

#[derive(JsonSchema)]
#[serde(tag = "kind")]
#[expect(dead_code, reason = "only its schema is read")]
enum Internal {
    A { a: u8 },
    B { b: u8 },
}

#[derive(JsonSchema)]
#[serde(tag = "kind", content = "data")]
#[expect(dead_code, reason = "only its schema is read")]
enum Adjacent {
    A(u8),
    B(String),
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is read")]
enum Untagged {
    Number(u8),
    Text(String),
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is read")]
struct Flat {
    a: u8,
    #[serde(flatten)]
    rest: BTreeMap<String, u8>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is read")]
struct Nested {
    list: Vec<Option<(u8, u8)>>,
    map: HashMap<u32, String>,
    any: Value,
}

#[test]
fn data_without_a_plain_schema() {
    check::<External>(&[("/properties/value", "enum with data")]);
    check::<Option<Internal>>(&[("/properties/value", "enum with data")]);
    check::<Adjacent>(&[("/properties/value", "enum with data")]);
    check::<Untagged>(&[("/properties/value", "enum with data")]);
    check::<Result<u8, u8>>(&[("/properties/value", "enum with data")]);
    check::<(u8, String)>(&[("/properties/value", "tuple")]);
    check::<BTreeMap<i32, String>>(&[("/properties/value", "integer keys")]);
    check::<BTreeMap<String, Value>>(&[("/properties/value/additionalProperties", "says nothing")]);
    check::<serde_json::Map<String, Value>>(&[("/properties/value/additionalProperties", "says nothing")]);
    check::<Value>(&[("/properties/value", "says nothing")]);
    check::<Option<Value>>(&[("/properties/value", "says nothing")]);
    check::<Vec<Value>>(&[("/properties/value/items", "says nothing")]);
    check::<std::num::NonZeroI32>(&[("/properties/value", "`not`")]);
    check::<Flat>(&[("/properties/value", "a map next to them")]);
}

#[test]
fn all_problems_at_once() {
    check::<Nested>(&[
        ("/properties/value/properties/any", "says nothing"),
        ("/properties/value/properties/list/items", "tuple"),
        ("/properties/value/properties/map", "integer keys"),
    ]);
}

#[test]
fn recursion() {
    check::<Tree>(&[("/properties/value/properties/children/items", "`Tree` contains itself")]);
    check::<Ping>(&[("/properties/value/properties/pong/anyOf/0/properties/ping/anyOf/0", "`Ping` contains itself")]);
    assert!(input::<Tree>().unwrap_err()[0].message().contains("contains itself"));
    assert!(output::<Vec<Tree>>().unwrap_err()[0].message().contains("contains itself"));
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is read")]
struct Fork<T> {
    left: T,
    right: T,
}

type Fork4<T> = Fork<Fork<Fork<Fork<T>>>>;

#[test]
fn exponential_types() {
    check::<Fork4<Fork4<Fork4<Fork4<u8>>>>>(&[("", "expand to")]);
    let problems = output::<Fork4<Fork4<Fork4<Fork4<u8>>>>>().unwrap_err();
    assert!(problems[0].message().contains("expand to"), "{problems:#?}");
    assert!(input::<Fork4<u8>>().is_ok());
}

#[derive(JsonSchema, Deserialize)]
#[expect(dead_code, reason = "only its schema is read")]
struct Defaults {
    #[serde(default)]
    #[schemars(range(min = 1))]
    low: u32,
    #[serde(default)]
    #[schemars(length(min = 1))]
    empty: String,
    #[serde(default)]
    #[schemars(regex(pattern = "^a+$"))]
    pattern: String,
    #[serde(default)]
    fine: Vec<u8>,
    #[schemars(regex(pattern = "("))]
    broken: String,
    #[schemars(range(min = 7, max = 1))]
    reversed: u32,
}

#[test]
fn rules_that_contradict_themselves() {
    check::<Defaults>(&[
        ("/properties/value/properties/broken", "the pattern `(` is not a regular expression"),
        ("/properties/value/properties/empty/default", "breaks its own schema"),
        ("/properties/value/properties/low/default", "breaks its own schema"),
        ("/properties/value/properties/pattern/default", "breaks its own schema"),
        ("/properties/value/properties/reversed", "no value fits"),
    ]);
}

#[test]
fn arguments_are_an_object() {
    for problems in [input::<String>(), input::<Option<One<u8>>>(), input::<Vec<u8>>(), input::<Value>()] {
        assert!(problems.unwrap_err()[0].message().contains("not an object"));
    }
    assert!(input::<External>().is_err());
}
