//! Checks a `default` against the schema it stands in, by hand where that is easy: compiling a validator for each
//! default would take longer than building the rest of the catalog.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::schema::{engine, formats};

/// Whether the value keeps to the schema.
pub(crate) fn fits(schema: &Map<String, Value>, value: &Value) -> bool {
    quick(schema, value).unwrap_or_else(|| {
        let mut schema = schema.clone();
        schema.remove("default");
        engine::is_valid(&Value::Object(schema), value)
    })
}

/// The answer when every keyword is a simple one.
fn quick(schema: &Map<String, Value>, value: &Value) -> Option<bool> {
    let mut good = true;
    for (keyword, rule) in schema {
        good &= match (keyword.as_str(), value) {
            ("default" | "description" | "title" | "deprecated" | "examples" | "$comment", _) => true,
            ("type", _) => match rule {
                Value::String(ty) => is_of(value, ty)?,
                Value::Array(types) => {
                    let fits: Option<Vec<bool>> = types.iter().map(|ty| is_of(value, ty.as_str()?)).collect();
                    fits?.contains(&true)
                }
                _ => return None,
            },
            ("enum", _) => rule.as_array()?.contains(value),
            ("minimum", Value::Number(_)) => compare(value, rule)? != Ordering::Less,
            ("maximum", Value::Number(_)) => compare(value, rule)? != Ordering::Greater,
            ("minLength", Value::String(text)) => text.chars().count() as u64 >= rule.as_u64()?,
            ("maxLength", Value::String(text)) => text.chars().count() as u64 <= rule.as_u64()?,
            ("minItems", Value::Array(items)) => items.len() as u64 >= rule.as_u64()?,
            ("maxItems", Value::Array(items)) => items.len() as u64 <= rule.as_u64()?,
            ("items", Value::Array(items)) => {
                let rule = rule.as_object()?;
                let fits: Option<Vec<bool>> = items.iter().map(|item| quick(rule, item)).collect();
                !fits?.contains(&false)
            }
            ("pattern" | "format" | "minLength" | "maxLength", Value::Null | Value::Bool(_) | Value::Number(_))
            | ("minimum" | "maximum" | "multipleOf", Value::Null | Value::Bool(_) | Value::String(_))
            | ("items" | "minItems" | "maxItems" | "uniqueItems", Value::Null)
            | ("properties" | "required" | "additionalProperties", Value::Null) => true,
            _ => return None,
        };
    }
    Some(good)
}

fn compare(value: &Value, rule: &Value) -> Option<Ordering> {
    formats::compare(value, rule.as_number()?)
}

fn is_of(value: &Value, ty: &str) -> Option<bool> {
    Some(match ty {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        // Whether `5.0` is an integer is for the validator to say.
        "integer" => match value {
            Value::Number(number) if number.is_f64() => return None,
            other => other.is_number(),
        },
        _ => return None,
    })
}
