//! Cases of the default validator: accepted values, the places of violations, and that no message quotes a value.

mod agreement;

use serde_json::{Value, json};

use crate::call::Violation;
use crate::json::{Limits, Tree, parse_value};
use crate::schema::validator::{JsonSchemaValidator, Validator};

const WIDE: Limits = Limits { bytes: usize::MAX, depth: 128 };

fn violations(schema: &Value, text: &str) -> Vec<Violation> {
    let tree = parse_value(text, &WIDE).unwrap();
    JsonSchemaValidator.compile_value(schema).unwrap().check(&tree).err().unwrap_or_default()
}

/// Each violation as `pointer keyword: expected`, with ` (hint)` where there is one.
#[track_caller]
fn check(schema: &Value, text: &str, expected: &[&str]) {
    let found = violations(schema, text);
    let line = |one: &Violation| {
        let hint = one.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{} {}: {}{hint}", one.pointer, one.keyword, one.expected)
    };
    assert_eq!(found.iter().map(line).collect::<Vec<_>>(), expected, "{text}");
    assert!(found.iter().all(|one| !format!("{one:?}").contains("secret")), "{found:?}");
}

fn weather() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 2, "maxLength": 20},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 7},
            "due_date": {"type": "string", "format": "date"},
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true, "minItems": 1},
            "place": {
                "type": "object",
                "properties": {"lat": {"type": ["number", "null"]}},
                "required": ["lat"],
                "additionalProperties": false,
            },
        },
        "required": ["city"],
        "additionalProperties": false,
    })
}

#[test]
fn violations_say_where_and_what_would_be_right() {
    let check = |text, expected: &[&str]| check(&weather(), text, expected);
    check(r#"{"city": "Oslo", "days": 7.0, "unit": "celsius", "tags": ["a"], "place": {"lat": null}}"#, &[]);
    check(r#"{"city": 5}"#, &["/city type: a string"]);
    check(r#"{"city": "s"}"#, &["/city minLength: at least 2 characters"]);
    check(r#"{"city": "secretsecretsecretsecret"}"#, &["/city maxLength: at most 20 characters"]);
    check("{}", &[" required: the property `city`"]);
    check(r#"{"city": "Oslo", "unit": "secret"}"#, &[r#"/unit enum: one of "celsius", "fahrenheit""#]);
    check(r#"{"city": "Oslo", "days": 0}"#, &["/days minimum: at least 1"]);
    check(r#"{"city": "Oslo", "days": 8}"#, &["/days maximum: at most 7"]);
    check(r#"{"city": "Oslo", "days": 1.5}"#, &["/days type: an integer"]);
    check(r#"{"city": "Oslo", "days": 1e17}"#, &["/days type: an integer", "/days maximum: at most 7"]);
    check(r#"{"city": "Oslo", "due_date": "06/secret"}"#, &["/due_date format: text of the format date"]);
    check(r#"{"city": "Oslo", "tags": []}"#, &["/tags minItems: at least 1 item"]);
    check(r#"{"city": "Oslo", "tags": ["a", "b", "a"]}"#, &["/tags uniqueItems: items that are all different"]);
    check(r#"{"city": "Oslo", "tags": ["a", 1, null]}"#, &["/tags/1 type: a string", "/tags/2 type: a string"]);
    check(r#"{"city": "Oslo", "place": {"lat": "secret"}}"#, &["/place/lat type: null or a number"]);
    check(r#"{"city": "Oslo", "place": {}}"#, &["/place required: the property `lat`"]);
    check("[]", &[" type: an object"]);
}

#[test]
fn wrong_names_are_answered_with_the_right_one() {
    let check = |text, expected: &[&str]| check(&weather(), text, expected);
    let known = "only the properties `city`, `days`, `due_date`, `place`, `tags`, `unit`";
    check(r#"{"city": "Oslo", "secret": 1}"#, &[&format!(" additionalProperties: {known}")]);
    check(
        r#"{"city": "Oslo", "dueDate": 1}"#,
        &[&format!(" additionalProperties: {known} (did you mean `due_date`?)")],
    );
    check(
        r#"{"ctiy": "Oslo", "unitt": 1}"#,
        &[
            &format!(" additionalProperties: {known} (did you mean `city`, `unit`?)"),
            " required: the property `city` (write the name exactly as `city`)",
        ],
    );
    check(
        r#"{"city": "Oslo", "place": {"latt": 1, "secret": 2}}"#,
        &[
            "/place additionalProperties: only the properties `lat` (did you mean `lat`?)",
            "/place required: the property `lat` (write the name exactly as `lat`)",
        ],
    );
    let open = json!({"properties": {"location": {}}, "required": ["location"]});
    super::tests::check(
        &open,
        r#"{"Location": 1}"#,
        &[" required: the property `location` (write the name exactly as `location`)"],
    );
    super::tests::check(&open, r#"{"other": 1}"#, &[" required: the property `location`"]);
}

#[test]
fn other_keywords_are_told_in_words() {
    for (schema, text, expected) in [
        (json!({"const": {"a": 1}}), "2", r#" const: {"a":1}"#),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "1", " anyOf: a string, or null"),
        (json!({"oneOf": [{"minimum": 5}, {"type": "string"}]}), "1", " oneOf: at least 5, or a string"),
        (
            json!({"anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "null"}}}]}),
            r#"{"b": 1}"#,
            " anyOf: one of the allowed forms",
        ),
        (json!({"oneOf": [{}, {}]}), "1", " oneOf: exactly one of the allowed forms"),
        (json!({"not": {"type": "integer"}}), "1", " not: a value that the schema does not exclude"),
        (json!({"pattern": "^a+$"}), "\"secret\"", " pattern: text that matches ^a+$"),
        (json!({"multipleOf": 0.5}), "0.75", " multipleOf: a multiple of 0.5"),
        (json!({"exclusiveMinimum": 5}), "5.0", " exclusiveMinimum: more than 5"),
        (json!({"exclusiveMaximum": 5}), "5", " exclusiveMaximum: less than 5"),
        (json!({"maxItems": 1}), "[1,2]", " maxItems: at most 1 item"),
        (json!({"minProperties": 2}), "{}", " minProperties: at least 2 properties"),
        (json!({"maxProperties": 1}), r#"{"a":1,"b":2}"#, " maxProperties: at most 1 property"),
        (json!({"contains": {"type": "null"}}), "[1]", " contains: an array with an item of the required kind"),
        (
            json!({"propertyNames": {"maxLength": 3}}),
            r#"{"secret":1}"#,
            " propertyNames: property names that are at most 3 characters",
        ),
        (json!({"properties": {"a": false}}), r#"{"a":1}"#, "/a falseSchema: nothing here"),
        (
            json!({"unevaluatedProperties": false, "properties": {"a": {}}}),
            r#"{"secret":1}"#,
            " unevaluatedProperties: only the properties `a`",
        ),
        (json!({"enum": [1, "x", null]}), "2", r#" enum: one of 1, "x", null"#),
        (json!({"enum": ["x"]}), "2", r#" enum: "x""#),
        (json!({"format": "uuid"}), "\"secret\"", " format: text of the format uuid"),
        (json!({"format": "email"}), "\"secret\"", " format: text of the format email"),
        (json!({"format": "date-time"}), "\"2024-02-30T00:00:00Z\"", " format: text of the format date-time"),
    ] {
        check(&schema, text, &[expected]);
    }
}

#[test]
fn numbers_are_compared_as_numbers() {
    for (schema, taken, refused) in [
        (json!({"const": 1.0}), &["1", "1.0", "10e-1"][..], &["true", "\"1\"", "2"][..]),
        (
            json!({"enum": [9_007_199_254_740_993_u64]}),
            &["9007199254740993"],
            &["9007199254740992", "9007199254740994"],
        ),
        (json!({"type": "integer"}), &["5.0", "-0", "1e2", "18446744073709551615"], &["5.5", "1e17", "1e300", "\"5\""]),
        (json!({"type": "number"}), &["5.0", "-0", "1e17", "0.1"], &["\"5\"", "null"]),
        (json!({"maximum": u64::MAX}), &["18446744073709551615"], &["1e20"]),
        (json!({"minimum": 9_007_199_254_740_993_u64}), &["9007199254740993"], &["9007199254740992"]),
        (json!({"const": [{"a": [0]}]}), &[r#"[{"a":[0.0]}]"#], &[r#"[{"a":[false]}]"#, r#"[{"a":[0],"b":1}]"#]),
        (json!({"uniqueItems": true}), &["[1, true, \"1\", [1]]"], &["[1, 1.0]", r#"[{"a":1,"b":2},{"b":2,"a":1}]"#]),
    ] {
        for (text, valid) in taken.iter().map(|text| (text, true)).chain(refused.iter().map(|text| (text, false))) {
            assert_eq!(violations(&schema, text).is_empty(), valid, "{schema} {text}");
        }
    }
}

#[test]
fn nothing_is_fetched_and_patterns_are_bounded() {
    for reference in ["https://example.com/schema.json", "file:///etc/passwd", "other.json", "#/$defs/missing"] {
        assert!(JsonSchemaValidator.compile_value(&json!({"$ref": reference})).is_err(), "{reference}");
    }
    assert!(JsonSchemaValidator.compile_value(&json!({"type": "strnig"})).is_err());
    assert!(JsonSchemaValidator.compile_value(&json!({"pattern": "("})).is_err());
    let long = format!("\"{}!\"", "a".repeat(5_000));
    for pattern in ["^(a+)+$", "^(?=a)(a+)+$", "^(a|a)*\\1$"] {
        assert_eq!(violations(&json!({"pattern": pattern}), &long).len(), 1, "{pattern}");
    }
    assert!(violations(&json!({"pattern": "^(?!b)a$"}), "\"a\"").is_empty());
}

#[test]
fn many_violations_are_capped_and_recursion_ends() {
    let items = format!("[{}1]", "1,".repeat(10_000));
    assert_eq!(violations(&json!({"items": {"type": "string"}}), &items).len(), 100);
    let recursive = json!({"$ref": "#/$defs/t", "$defs": {"t": {"items": {"$ref": "#/$defs/t"}, "type": "array"}}});
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(127), "]".repeat(127));
    assert!(violations(&recursive, &deep("")).is_empty());
    assert_eq!(violations(&recursive, &deep("1")).len(), 1);
}

#[test]
fn a_replacement_is_asked_like_the_default() {
    let validator: &dyn Validator = &JsonSchemaValidator;
    assert_eq!(validator.name(), "jsonschema");
    // Records contain this version, so it must be the version of the library that runs.
    let manifest = include_str!("../../../../Cargo.toml");
    assert!(manifest.contains(&format!("jsonschema = {{ version = \"{}\"", validator.version())));
    let compiled = validator.compile(&crate::tool::Schema::from_text("true")).unwrap();
    assert!(compiled.check(&Tree::Null).is_ok());
}
