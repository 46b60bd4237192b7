//! The lowered schemas of arguments, which accept the same values as the parser.

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::json::Tree;
use crate::schema::compile_input;
use crate::schema::subset::is_subset;
use crate::schema::tests::input;
use crate::schema::validator::JsonSchemaValidator;

/// Wraps a type as the only argument of a tool.
#[derive(JsonSchema, Deserialize)]
#[expect(dead_code, reason = "only its schema is read")]
struct One<T> {
    value: T,
}

#[track_caller]
fn check<T: JsonSchema>(expected: Value) {
    let schema = input::<One<T>>().unwrap();
    assert_eq!(is_subset(&schema), Ok(()));
    assert_eq!(schema["properties"]["value"], expected);
}

#[derive(JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Bare {
    Todo,
    InProgress,
}

/// Unit of temperature.
#[derive(JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Documented {
    /// Degrees
    /// Celsius.
    Celsius,
    Kelvin,
    /// Degrees Fahrenheit.
    Fahrenheit,
}

#[derive(JsonSchema, Deserialize)]
#[expect(dead_code, reason = "only its schema is read")]
struct Place {
    name: String,
    unit: Option<Documented>,
}

#[derive(JsonSchema, Deserialize)]
#[expect(dead_code, reason = "only its schema is read")]
struct Id(uuid::Uuid);

#[derive(JsonSchema, Deserialize)]
struct Empty {}

const DOCS: &str = "Unit of temperature.\n\n- `celsius`: Degrees Celsius.\n- `fahrenheit`: Degrees Fahrenheit.";

fn place(ty: Value) -> Value {
    let unit = json!({
        "type": ["string", "null"], "enum": ["kelvin", "celsius", "fahrenheit", null], "description": DOCS,
    });
    json!({
        "type": ty, "properties": {"name": {"type": "string"}, "unit": unit}, "required": ["name"],
        "additionalProperties": false,
    })
}

#[test]
fn numbers_have_bounds_and_no_private_formats() {
    check::<u8>(json!({"type": "integer", "minimum": 0, "maximum": 255}));
    check::<i8>(json!({"type": "integer", "minimum": -128, "maximum": 127}));
    check::<u16>(json!({"type": "integer", "minimum": 0, "maximum": 65535}));
    check::<i16>(json!({"type": "integer", "minimum": -32768, "maximum": 32767}));
    check::<u32>(json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}));
    check::<i32>(json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX}));
    check::<u64>(json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}));
    check::<i64>(json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}));
    check::<usize>(json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}));
    check::<isize>(json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}));
    // JSON numbers are read up to 64 bits, so larger ones are text.
    let wide = |digits: &str, low: i64| json!({"type": ["integer", "string"], "pattern": digits, "minimum": low, "maximum": u64::MAX});
    check::<u128>(wide("^[0-9]{1,39}$", 0));
    check::<i128>(wide("^-?[0-9]{1,39}$", i64::MIN));
    check::<std::num::NonZeroU32>(json!({"type": "integer", "minimum": 1, "maximum": u32::MAX}));
    check::<f32>(json!({"type": "number", "minimum": f64::from(f32::MIN), "maximum": f64::from(f32::MAX)}));
    check::<f64>(json!({"type": "number"}));
    check::<Option<u32>>(json!({"type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX}));
}

#[test]
fn texts_keep_standard_formats() {
    check::<String>(json!({"type": "string"}));
    check::<char>(json!({"type": "string", "minLength": 1, "maxLength": 1}));
    check::<bool>(json!({"type": "boolean"}));
    check::<uuid::Uuid>(json!({"type": "string", "format": "uuid"}));
    check::<Id>(json!({"type": "string", "format": "uuid"}));
    check::<jiff::civil::Date>(json!({"type": "string", "format": "date"}));
    check::<jiff::Timestamp>(json!({"type": "string", "format": "date-time"}));
    check::<Option<jiff::civil::Date>>(json!({"type": ["string", "null"], "format": "date"}));
    // Formats of schemars alone are written as patterns.
    let local = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?$";
    check::<jiff::civil::DateTime>(json!({"type": "string", "pattern": local}));
    check::<std::net::Ipv4Addr>(json!({"type": "string", "format": "ipv4"}));
    check::<std::net::IpAddr>(json!({"type": "string", "pattern": "^[0-9A-Fa-f:.]{2,45}$"}));
}

#[test]
fn unit_enums_and_options_lower_without_alternatives() {
    check::<Bare>(json!({"type": "string", "enum": ["todo", "in_progress"]}));
    check::<Option<Bare>>(json!({"type": ["string", "null"], "enum": ["todo", "in_progress", null]}));
    check::<Option<Option<Bare>>>(json!({"type": ["string", "null"], "enum": ["todo", "in_progress", null]}));
    let documented = json!({"type": "string", "enum": ["kelvin", "celsius", "fahrenheit"], "description": DOCS});
    check::<Documented>(documented.clone());
    check::<Vec<Documented>>(json!({"type": "array", "items": documented}));
    check::<Option<Documented>>(json!({
        "type": ["string", "null"], "enum": ["kelvin", "celsius", "fahrenheit", null], "description": DOCS,
    }));
    check::<Option<Vec<Option<u8>>>>(json!({
        "type": ["array", "null"], "items": {"type": ["integer", "null"], "minimum": 0, "maximum": 255},
    }));
}

#[test]
fn objects_are_closed_at_every_depth() {
    check::<Place>(place(json!("object")));
    check::<Option<Place>>(place(json!(["object", "null"])));
    check::<Box<Place>>(place(json!("object")));
    check::<Vec<Place>>(json!({"type": "array", "items": place(json!("object"))}));
    check::<[Place; 2]>(json!({"type": "array", "items": place(json!("object")), "minItems": 2, "maxItems": 2}));
    check::<Empty>(json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}));
    check::<BTreeMap<String, Place>>(json!({"type": "object", "additionalProperties": place(json!("object"))}));
    check::<HashSet<String>>(json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}));
}

/// A struct tool's own words.
#[derive(JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is read")]
struct Update {
    task_id: uuid::Uuid,
    /// How warm.
    #[schemars(length(min = 1, max = 120))]
    title: Option<String>,
    /// Where.
    place: Option<Place>,
    /// In which unit.
    unit: Documented,
    #[serde(default = "seven")]
    #[schemars(range(min = 1, max = 7))]
    days: u32,
    #[schemars(range(min = 1))]
    size: Wrapped,
    #[serde(default)]
    note: Option<String>,
}

#[derive(JsonSchema, Deserialize)]
#[expect(dead_code, reason = "only its schema is read")]
struct Wrapped(u32);

fn seven() -> u32 {
    7
}

#[test]
fn attributes_and_docs_arrive() {
    let schema = compile_input(&Update::json_schema, &[]).unwrap();
    let text = schema.as_str();
    assert_eq!(
        text,
        concat!(
            r#"{"additionalProperties":false,"properties":{"#,
            r#""days":{"default":7,"maximum":7,"minimum":1,"type":"integer"},"#,
            r#""note":{"default":null,"type":["string","null"]},"#,
            r#""place":{"additionalProperties":false,"description":"Where.","properties":{"name":{"type":"string"},"#,
            r#""unit":{"description":"Unit of temperature.\n\n- `celsius`: Degrees Celsius.\n- `fahrenheit`: Degrees "#,
            r#"Fahrenheit.","enum":["kelvin","celsius","fahrenheit",null],"type":["string","null"]}},"#,
            r#""required":["name"],"type":["object","null"]},"#,
            r#""size":{"maximum":4294967295,"minimum":1,"type":"integer"},"#,
            r#""task_id":{"format":"uuid","type":"string"},"#,
            r#""title":{"description":"How warm.","maxLength":120,"minLength":1,"type":["string","null"]},"#,
            r#""unit":{"description":"In which unit.\n\n- `celsius`: Degrees Celsius.\n- `fahrenheit`: Degrees "#,
            r#"Fahrenheit.","enum":["kelvin","celsius","fahrenheit"],"type":"string"}},"#,
            r#""required":["task_id","unit","size"],"type":"object"}"#,
        )
    );
    assert_eq!(compile_input(&Update::json_schema, &[]).unwrap(), schema);
}

#[test]
fn schema_and_parser_agree() {
    let schema = input::<Update>().unwrap();
    let compiled = JsonSchemaValidator.compile_value(&schema).unwrap();
    let good = json!({"task_id": "0d9e4d5c-7a50-4b4e-9d2b-0f5f1b0a9f3e", "unit": "kelvin", "size": 1});
    for (change, fits) in [
        (json!({}), true),
        (json!({"title": null, "place": null, "note": null}), true),
        (json!({"place": {"name": "Oslo", "unit": null}}), true),
        (json!({"place": {"name": "Oslo", "unit": "celsius"}}), true),
        (json!({"place": {"name": "Oslo", "units": "celsius"}}), false),
        (json!({"place": {}}), false),
        (json!({"unit": null}), false),
        (json!({"unit": "rankine"}), false),
        (json!({"days": null}), false),
        (json!({"days": -1}), false),
        (json!({"size": 4_294_967_296_u64}), false),
        (json!({"task_id": 1}), false),
        (json!({"extra": 1}), false),
    ] {
        let mut arguments = good.clone();
        arguments.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let by_schema = compiled.check(&Tree::from_value(&arguments)).is_ok();
        assert_eq!(by_schema, fits, "schema: {change}");
        // serde accepts unknown fields in the nested struct; only the schema refuses them.
        let by_parser = serde_json::from_value::<Update>(arguments).is_ok();
        assert!(by_parser || !by_schema, "parser: {change}");
    }
}
