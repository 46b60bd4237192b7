//! Schema and type agree: a type is built from exactly the values that its schema accepts.
//!
//! The generated values include values on which serde and a schema differ by default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{DeError, ParseError, from_tree, parse};
use crate::schema::compile_input;
use crate::schema::validator::{JsonSchemaValidator, Validator};

use super::WIDE;

/// Everything at once.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only built")]
struct Everything {
    count: i64,
    small: u8,
    big: u64,
    signed: i32,
    ratio: f64,
    flag: bool,
    name: String,
    mode: Mode,
    maybe: Option<i16>,
    #[serde(default)]
    defaulted: u32,
    inner: Inner,
    list: Vec<Inner>,
    letters: Vec<String>,
    renamed: Option<Mode>,
}

/// How.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Quickly.
    Fast,
    /// Slowly.
    VerySlow,
}

/// Inside.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only built")]
struct Inner {
    x: i32,
    label: Option<String>,
}

/// A valid value for each field.
const RIGHT: [(&str, &str); 14] = [
    ("count", "1"),
    ("small", "2"),
    ("big", "3"),
    ("signed", "-4"),
    ("ratio", "0.5"),
    ("flag", "true"),
    ("name", "\"n\""),
    ("mode", "\"fast\""),
    ("maybe", "null"),
    ("defaulted", "7"),
    ("inner", "{\"x\": 1}"),
    ("list", "[]"),
    ("letters", "[\"a\"]"),
    ("renamed", "\"very_slow\""),
];

const VALUES: [&str; 46] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "5.0",
    "1e2",
    "1.5",
    "1e-400",
    "127",
    "128",
    "255",
    "256",
    "-32769",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e17",
    "1e300",
    "1e400",
    "\"\"",
    "\"1\"",
    "\"fast\"",
    "\"Fast\"",
    "\"very_slow\"",
    "{\"fast\": null}",
    "{}",
    "{\"x\": 2.0}",
    "{\"x\": 1, \"y\": 2}",
    "{\"x\": 1, \"x\": 2}",
    "[5]",
    "[]",
    "[\"a\", \"b\"]",
    "[{\"x\": 5, \"label\": null}, {\"x\": \"5\"}]",
    "[[1, null]]",
];

#[derive(Debug, PartialEq)]
enum Answer {
    Unread(ParseError),
    Refused,
    Built,
}

fn answer(compiled: &dyn crate::schema::validator::Compiled, text: &str) -> Answer {
    let tree = match parse(text, &WIDE) {
        Ok(tree) => tree,
        Err(error) => return Answer::Unread(error),
    };
    let checked = compiled.check(&tree);
    let built: Result<Everything, DeError> = from_tree(&tree);
    match (checked, built) {
        (Ok(()), Ok(_)) => Answer::Built,
        (Err(_), Err(_)) => Answer::Refused,
        (Ok(()), Err(error)) => panic!("the schema accepts a value that the type refuses: {text}: {error}"),
        (Err(violations), Ok(_)) => panic!("the type accepts a value that the schema refuses: {text}: {violations:?}"),
    }
}

fn text(fields: &[(&str, &str)]) -> String {
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    format!("{{{}}}", fields.join(", "))
}

fn compiled() -> std::sync::Arc<dyn crate::schema::validator::Compiled> {
    let schema = compile_input(&Everything::json_schema, &[]).unwrap();
    JsonSchemaValidator.compile(&schema).unwrap()
}

#[test]
fn every_field_with_every_value() {
    let compiled = compiled();
    let mut built = 0;
    for (field, _) in RIGHT {
        for value in VALUES {
            let fields: Vec<_> =
                RIGHT.into_iter().map(|(name, right)| (name, if name == field { value } else { right })).collect();
            built += usize::from(answer(&*compiled, &text(&fields)) == Answer::Built);
        }
    }
    assert!(built > 100, "{built}");
}

#[test]
fn every_field_missing_doubled_or_misspelt() {
    let compiled = compiled();
    for (at, (field, value)) in RIGHT.into_iter().enumerate() {
        let without: Vec<_> = RIGHT.into_iter().filter(|(name, _)| *name != field).collect();
        let optional = ["maybe", "defaulted", "renamed"].contains(&field);
        let expected = if optional { Answer::Built } else { Answer::Refused };
        assert_eq!(answer(&*compiled, &text(&without)), expected, "{field}");
        let mut doubled = RIGHT.to_vec();
        doubled.insert(at, (field, value));
        assert!(matches!(answer(&*compiled, &text(&doubled)), Answer::Unread(_)), "{field}");
        let upper = field.to_uppercase();
        let mut misspelt = without;
        misspelt.push((&upper, value));
        assert_eq!(answer(&*compiled, &text(&misspelt)), Answer::Refused, "{field}");
    }
}

#[test]
fn known_disagreements_have_one_answer() {
    let compiled = compiled();
    for (field, value, built) in [
        ("inner", "[5]", false),
        ("inner", "[5, null]", false),
        ("mode", "{\"fast\": null}", false),
        ("count", "5.0", true),
        ("count", "1e2", true),
        ("small", "5.0", true),
        ("count", "9223372036854775808", false),
        ("big", "9223372036854775808", true),
        ("count", "1e17", false),
        ("big", "1e17", false),
        ("ratio", "1e17", true),
        ("ratio", "5", true),
        ("signed", "2147483648", false),
        ("maybe", "null", true),
        ("defaulted", "null", false),
    ] {
        let fields: Vec<_> =
            RIGHT.into_iter().map(|(name, right)| (name, if name == field { value } else { right })).collect();
        let expected = if built { Answer::Built } else { Answer::Refused };
        assert_eq!(answer(&*compiled, &text(&fields)), expected, "{field} {value}");
    }
    let doubled = r#"{"count": 1, "count": 1}"#;
    assert!(matches!(answer(&*compiled, doubled), Answer::Unread(_)));
}
