//! Types that can be outputs but not arguments: all types that serialise and do not recurse.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::json::Tree;
use crate::schema::tests::output;
use crate::schema::validator::JsonSchemaValidator;

#[derive(JsonSchema, Serialize)]
struct Leaf {
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(default)]
    written: bool,
}

#[derive(JsonSchema, Serialize)]
enum Found {
    Nothing,
    /// One.
    Single(Leaf),
    Many {
        items: Vec<Leaf>,
    },
}

#[derive(JsonSchema, Serialize)]
struct Answer {
    found: Found,
    pair: (u8, String),
    by_number: BTreeMap<u32, Leaf>,
    by_name: BTreeMap<String, Leaf>,
    anything: Value,
    maybe: Option<Leaf>,
    perhaps: Option<Found>,
    flat: Option<Flat>,
    scale: Option<Scale>,
}

#[derive(JsonSchema, Serialize)]
struct Flat {
    name: String,
    #[serde(flatten)]
    found: Found,
}

#[derive(JsonSchema, Serialize)]
enum Scale {
    /// Degrees Celsius.
    Celsius,
    Kelvin,
}

#[test]
fn outputs_are_looser() {
    let leaf = || Leaf { id: 7, note: None, written: false };
    let answer = |found| Answer {
        found,
        pair: (1, "a".to_owned()),
        by_number: BTreeMap::from([(1, leaf())]),
        by_name: BTreeMap::from([("a".to_owned(), leaf())]),
        anything: json!([{"$ref": 1}]),
        maybe: None,
        perhaps: None,
        flat: None,
        scale: None,
    };
    let schema = output::<Answer>().unwrap();
    let text = schema.to_string();
    assert!(!text.contains("\"$ref\"") && !text.contains("$defs") && !text.contains("\"format\""), "{text}");
    let compiled = JsonSchemaValidator.compile_value(&schema).unwrap();
    let full = Answer {
        maybe: Some(leaf()),
        perhaps: Some(Found::Single(leaf())),
        flat: Some(Flat { name: "a".to_owned(), found: Found::Single(leaf()) }),
        scale: Some(Scale::Celsius),
        ..answer(Found::Nothing)
    };
    let value = serde_json::to_value(full).unwrap();
    assert_eq!(compiled.check(&Tree::from_value(&value)), Ok(()), "{value}");
    for found in [Found::Nothing, Found::Single(leaf()), Found::Many { items: vec![leaf()] }] {
        let value = serde_json::to_value(answer(found)).unwrap();
        assert_eq!(compiled.check(&Tree::from_value(&value)), Ok(()), "{value}");
    }
    assert_eq!(schema["properties"]["maybe"]["type"], json!(["object", "null"]));
    assert_eq!(schema["properties"]["scale"]["enum"], json!(["Kelvin", "Celsius", null]));
    let scale = json!({"found": "Nothing", "scale": Scale::Kelvin});
    assert!(compiled.check(&Tree::from_value(&scale)).is_err(), "the rest is missing");
    let wrong = json!({"found": "Nothing", "perhaps": "Everything"});
    assert!(compiled.check(&Tree::from_value(&wrong)).is_err());
    assert_eq!(schema["properties"]["maybe"]["required"], json!(["id", "written"]));
}

#[test]
fn whole_outputs() {
    assert_eq!(output::<String>().unwrap(), json!({"type": "string"}));
    assert_eq!(output::<i64>().unwrap(), json!({"type": "integer"}));
    assert_eq!(output::<()>().unwrap(), json!({"type": "null"}));
    assert_eq!(output::<Vec<u8>>().unwrap()["items"]["maximum"], json!(255));
    assert_eq!(output::<Value>().unwrap(), json!(true));
    assert_eq!(output::<Option<Value>>().unwrap(), json!(true));
}
