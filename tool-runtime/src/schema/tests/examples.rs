//! Six ordinary tools, with schemas that models are known to call well.
//!
//! The compiled schemas differ from the published ones in two intended ways: an optional argument may be `null`, and an
//! integer has the bounds of its type.

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::schema::compile_input;
use crate::schema::publish_require_any;

macro_rules! tools {
    ($($(#[$meta:meta])* struct $name:ident { $($fields:tt)* })*) => {
        $($(#[$meta])* #[derive(JsonSchema)] #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only its schema is read")] struct $name { $($fields)* })*
    };
}

tools! {
    struct Time {
        /// IANA time zone name, for example Europe/Oslo. UTC when left out.
        timezone: Option<String>,
    }
    struct Forecast {
        #[schemars(length(min = 1))]
        city: String,
        unit: Unit,
        #[schemars(range(min = 1, max = 7))]
        days: Option<u8>,
    }
    struct UpdateTask {
        task_id: uuid::Uuid,
        state: Option<State>,
        #[schemars(length(min = 1, max = 120))]
        title: Option<String>,
        due_date: Option<jiff::civil::Date>,
    }
    struct Search {
        #[schemars(length(min = 1))]
        query: String,
        #[schemars(range(min = 1, max = 50))]
        limit: Option<u32>,
    }
    struct SendEmail {
        #[schemars(length(min = 1, max = 10), inner(email))]
        to: Vec<String>,
        subject: String,
        body: String,
    }
    struct ReadFile {
        #[schemars(length(min = 1))]
        path: String,
        #[schemars(range(min = 1))]
        max_bytes: Option<u64>,
    }
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is read")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is read")]
enum State {
    Todo,
    InProgress,
    Blocked,
    Done,
}

#[track_caller]
fn check<T: JsonSchema>(require_any: &[&str], expected: Value) {
    let schema = compile_input(&T::json_schema, &[]).unwrap();
    assert_eq!(publish_require_any(&schema, require_any).to_value(), expected);
}

#[test]
fn ordinary_tools() {
    check::<Time>(
        &[],
        json!({
            "type": "object", "required": [], "additionalProperties": false,
            "properties": {"timezone": {
                "type": ["string", "null"],
                "description": "IANA time zone name, for example Europe/Oslo. UTC when left out.",
            }},
        }),
    );
    check::<Forecast>(
        &[],
        json!({
            "type": "object", "required": ["city", "unit"], "additionalProperties": false,
            "properties": {
                "city": {"type": "string", "minLength": 1},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 7},
            },
        }),
    );
    check::<UpdateTask>(
        &["state", "title", "due_date"],
        json!({
            "type": "object", "required": ["task_id"], "additionalProperties": false, "minProperties": 2,
            "properties": {
                "task_id": {"type": "string", "format": "uuid"},
                "state": {"type": ["string", "null"], "enum": ["todo", "in_progress", "blocked", "done", null]},
                "title": {"type": ["string", "null"], "minLength": 1, "maxLength": 120},
                "due_date": {"type": ["string", "null"], "format": "date"},
            },
        }),
    );
    check::<Search>(
        &[],
        json!({
            "type": "object", "required": ["query"], "additionalProperties": false,
            "properties": {
                "query": {"type": "string", "minLength": 1},
                "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 50},
            },
        }),
    );
    check::<SendEmail>(
        &[],
        json!({
            "type": "object", "required": ["to", "subject", "body"], "additionalProperties": false,
            "properties": {
                "to": {"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 1, "maxItems": 10},
                "subject": {"type": "string"},
                "body": {"type": "string"},
            },
        }),
    );
    check::<ReadFile>(
        &[],
        json!({
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "max_bytes": {"type": ["integer", "null"], "minimum": 1, "maximum": u64::MAX},
            },
        }),
    );
}
