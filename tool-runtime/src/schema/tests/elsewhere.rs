//! Foreign schemas: some are accepted, others would cost too much or refer out of the document.

use serde_json::{Value, json};

use crate::schema::check_foreign;
use crate::schema::foreign::parse_foreign;
use crate::schema::validator::JsonSchemaValidator;

#[track_caller]
fn accept(schema: &Value) {
    if let Err(problems) = check_foreign(schema) {
        panic!("{schema}: {problems:#?}");
    }
}

#[track_caller]
fn refuse(schema: &Value, part: &str) {
    let problems = check_foreign(schema).unwrap_err();
    assert!(problems.iter().any(|problem| problem.message().contains(part)), "{problems:#?}");
}

#[test]
fn both_dialects_in_full() {
    accept(&json!(true));
    accept(&json!({}));
    accept(
        &json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}], "additionalItems": false}),
    );
    accept(
        &json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}], "items": false}),
    );
    accept(&json!({"oneOf": [{"type": "string"}, {"not": {"type": "null"}}], "if": {}, "then": {}, "else": false}));
    accept(&json!({"patternProperties": {"^x": {"type": "string"}}, "unevaluatedProperties": false}));
    accept(&json!({"x-anything": 1, "format": "made-up"}));
    refuse(&json!({"$schema": "http://json-schema.org/draft-04/schema#"}), "dialect");
    refuse(&json!({"$schema": "https://example.invalid/schema"}), "dialect");
    refuse(&json!("object"), "is an object");
}

#[test]
fn mistakes_that_stop_nothing_and_mistakes_that_do() {
    accept(
        &json!({"properties": {"a": {"type": "integer", "default": "five"}, "b": {"type": "number", "enum": ["x"]}}}),
    );
    for wrong in [
        json!({"type": "float"}),
        json!({"minLength": -1}),
        json!({"required": true}),
        json!({"exclusiveMinimum": true}),
        json!({"properties": []}),
        json!({"pattern": "("}),
        json!({"patternProperties": {"(": {}}}),
        json!({"$ref": 5}),
        json!({"properties": {"a": 5}}),
    ] {
        assert!(check_foreign(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn references_stay_inside() {
    let defs = json!({"A": {"$anchor": "here", "type": "string"}, "B": {"$id": "b.json", "$defs": {"C": {}}, "$ref": "#/$defs/C"}});
    for good in [
        "#/$defs/A",
        "#here",
        "b.json",
        "b.json#/$defs/C",
        "#/%24defs/A",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        accept(&json!({"$defs": defs, "properties": {"a": {"$ref": good}}}));
    }
    for bad in [
        "file:///etc/passwd",
        "https://example.invalid/a",
        "other.json",
        "#/$defs/Z",
        "#nowhere",
        "//host/a",
        "../b.json",
    ] {
        refuse(&json!({"$defs": defs, "properties": {"a": {"$ref": bad}}}), "leads out");
    }
    let rebased = json!({"$id": "http://example.invalid/a", "properties": {"a": {"$ref": "b"}}});
    refuse(&rebased, "leads out");
}

#[test]
fn recursion_ends_and_does_not_fan_out() {
    accept(&json!({"properties": {"children": {"items": {"$ref": "#"}}, "name": {"type": "string"}}}));
    accept(
        &json!({"$defs": {"T": {"properties": {"l": {"$ref": "#/$defs/T"}, "r": {"$ref": "#/$defs/T"}}}}, "$ref": "#/$defs/T"}),
    );
    accept(&json!({"$defs": {"J": {"anyOf": [
        {"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/J"}},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/J"}},
    ]}}, "$ref": "#/$defs/J"}));
    accept(&json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}}));
    for circle in [
        json!({"$ref": "#"}),
        json!({"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}, "$ref": "#/$defs/A"}),
        json!({"properties": {"x": {"not": {"$ref": "#/properties/x"}}}}),
    ] {
        refuse(&circle, "lead back to themselves");
    }
    for fan in [
        json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}),
        json!({"anyOf": [{"additionalProperties": {"$ref": "#"}}, {"properties": {"a": {"$ref": "#"}}}]}),
        json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"properties": {"a": {"$ref": "#"}}}]}}}),
    ] {
        refuse(&fan, "too long");
    }
}

/// `levels` definitions. Each contains the next one twice.
fn doubling(levels: usize, hold: fn(Value) -> Value) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        defs.insert(format!("D{level}"), hold(json!({"$ref": format!("#/$defs/D{}", level + 1)})));
    }
    defs.insert(format!("D{levels}"), json!({"type": "string"}));
    json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/D0"}}})
}

#[test]
fn expansion_is_counted_not_done() {
    accept(&doubling(4, |next| json!({"properties": {"l": next, "r": next}})));
    refuse(&doubling(24, |next| json!({"properties": {"l": next, "r": next}})), "expand to");
    refuse(&doubling(24, |next| json!({"allOf": [next, next]})), "expand to");
    refuse(&doubling(11, |next| json!({"allOf": [next, next]})), "too long");
    refuse(&doubling(300, |next| json!({"allOf": [next]})), "chain");
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({"items": inner}))
}

#[test]
fn size_and_depth() {
    accept(&nested(32));
    refuse(&nested(33), "deep");
    refuse(&nested(110), "deep");
    refuse(&json!({"description": "x".repeat(70_000)}), "bytes");
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    for (text, part) in [
        (deep.as_str(), "deep"),
        (&format!("{{\"description\": \"{}\"}}", "[".repeat(70_000)), "bytes"),
        ("{\"a\":", "line 1"),
        ("{\"a\":1,\"a\":2}", "line 1"),
    ] {
        assert!(parse_foreign(text).unwrap_err().message().contains(part));
    }
    assert_eq!(parse_foreign("{\"a\": \"[\\\"[\"}"), Ok(json!({"a": "[\"["})));
}

fn patterned(patterns: impl Iterator<Item = String>) -> Value {
    let properties = patterns.enumerate().map(|(at, pattern)| (format!("p{at}"), json!({"pattern": pattern})));
    json!({"type": "object", "properties": properties.collect::<serde_json::Map<_, _>>()})
}

#[test]
fn patterns_are_counted_and_share_one_size() {
    for usual in [r"^[^<>]{1,1000}$", r"^(\p{L}|[ '-]){1,50}$", r"^(?=.{1,64}$)[a-z0-9_-]+\d$"] {
        accept(&json!({"pattern": usual}));
    }
    accept(&patterned((0..64).map(|at| format!("^[a-z0-9_-]{{1,{}}}x?[0-9]{{2,20}}$", at + 40))));
    // Equal patterns are compiled once.
    accept(&patterned((0..200).map(|_| r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$".to_owned())));
    refuse(&patterned((0..65).map(|at| format!("^a{at}$"))), "over 64 different patterns");
    let named: serde_json::Map<_, _> = (0..65).map(|at| (format!("^a{at}$"), json!({}))).collect();
    refuse(&json!({"patternProperties": named}), "over 64 different patterns");
    // A reference may lead to a place where no schema is expected.
    let hidden: Vec<_> = (0..65).map(|at| json!({"pattern": format!("^a{at}$")})).collect();
    refuse(&json!({"x-own": hidden}), "over 64 different patterns");
    // Each pattern compiles to ten megabytes.
    refuse(&patterned((170..180).map(|times| format!(r"^h\p{{L}}{{{times}}}b$"))), "too large once compiled");
    let large = patterned((0..64).map(|at| format!(r"^a{at}\p{{L}}{{9}}$")));
    refuse(&large, "too large once compiled");
    // The schema of an authored tool may have such patterns.
    assert!(JsonSchemaValidator.compile_value(&large).is_ok());
}

#[test]
fn patterns_in_data_are_no_patterns() {
    let data = || (0..65).map(|at| json!({"pattern": format!("^a{at}$")})).collect::<Vec<_>>();
    let node = json!({"type": "object", "properties": {"below": {"$ref": "#"}, "kind": {"$ref": "#/$defs/k"}}});
    for keyword in ["enum", "examples", "const", "default"] {
        let mut schema = node.clone();
        schema["$defs"] = json!({"k": {keyword: data()}});
        accept(&schema);
        // A property of this name has a schema.
        let one_of = json!({keyword: {"oneOf": data()}});
        refuse(&json!({"type": "object", "properties": one_of}), "over 64 different patterns");
        // References lead into the data.
        for to in [format!("#/$defs/k/{keyword}/3"), format!("#/%24defs/k/{keyword}/3")] {
            schema["properties"]["other"] = json!({"$ref": to});
            refuse(&schema, "over 64 different patterns");
        }
    }
}
