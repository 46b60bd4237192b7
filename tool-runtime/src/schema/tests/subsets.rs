//! The check of the subset. Keywords count only at schema positions.

use serde_json::{Value, json};

use crate::error::Problem;
use crate::schema::subset::is_subset;

#[track_caller]
fn check(schema: &Value, expected: &[&str]) {
    let problems = is_subset(schema).err().unwrap_or_default();
    let found: Vec<_> = problems.iter().map(Problem::path).collect();
    assert_eq!(found, expected, "{problems:#?}");
}

#[test]
fn data_that_looks_like_a_keyword() {
    check(&json!({"properties": {"anyOf": {"type": "string"}, "not": {}, "$ref": {"type": "string"}}}), &[]);
    check(
        &json!({"enum": [{"oneOf": 1}], "const": {"not": {}}, "default": {"if": {}}, "examples": [{"then": 1}]}),
        &[],
    );
    check(&json!({"dependencies": {"a": ["not"]}, "required": ["anyOf"]}), &[]);
    check(&json!({"properties": {"properties": {"properties": {"allOf": {"type": "string"}}}}}), &[]);
}

#[test]
fn keywords() {
    for keyword in ["oneOf", "anyOf", "allOf", "not", "if", "then", "else", "patternProperties"] {
        check(&json!({keyword: {}}), &[""]);
        check(&json!({"properties": {"a": {keyword: []}}}), &["/properties/a"]);
    }
    for place in [
        "items",
        "additionalProperties",
        "additionalItems",
        "contains",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    ] {
        check(&json!({place: {"not": {}}}), &[&format!("/{place}")]);
    }
    for place in ["$defs", "definitions", "dependentSchemas", "dependencies", "properties"] {
        check(&json!({place: {"a/b~c": {"not": {}}}}), &[&format!("/{place}/a~1b~0c")]);
    }
    for place in ["items", "prefixItems"] {
        check(&json!({place: [{}, {"not": {}}]}), &[&format!("/{place}/1")]);
    }
    check(&json!(true), &[""]);
}

#[test]
fn references() {
    let to = |reference: &str| {
        json!({
            "properties": {"a": {"$ref": reference}}, "$defs": {"A": {"type": "string"}, "B": true},
            "definitions": {"C": {"$ref": "#/$defs/A"}},
        })
    };
    for good in ["#/$defs/A", "#/$defs/B", "#/definitions/C"] {
        check(&to(good), &[]);
    }
    for bad in
        ["#", "#/$defs/Z", "#/properties/a", "#/$defs/A/items", "other.json", "file:///a", "#A", "", "#/$defs/%41"]
    {
        check(&to(bad), &["/properties/a"]);
    }
    check(&json!({"$ref": 1}), &[""]);
    let circle =
        json!({"$defs": {"A": {"properties": {"b": {"$ref": "#/$defs/B"}}}, "B": {"items": {"$ref": "#/$defs/A"}}}});
    assert!(is_subset(&circle).unwrap_err()[0].message().contains("back to itself"));
    let diamond = json!({
        "properties": {"l": {"$ref": "#/$defs/A"}, "r": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"type": "string"}},
    });
    check(&diamond, &[]);
}
