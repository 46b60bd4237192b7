//! Checks a `default` against its schema. Simple keywords are checked here, because compiling a validator for each
//! default would take longer than building the rest of the catalog.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::schema::{engine, formats};

/// Whether the value satisfies the schema.
pub(crate) fn fits(schema: &Map<String, Value>, value: &Value) -> bool {
    quick(schema, value).unwrap_or_else(|| {
        let mut schema = schema.clone();
        schema.remove("default");
        engine::is_valid(&Value::Object(schema), value)
    })
}

/// Checks a value if every keyword is a simple one; `None` otherwise.
fn quick(schema: &Map<String, Value>, value: &Value) -> Option<bool> {
    let mut good = true;
    for (keyword, rule) in schema {
        good &= ignores(keyword, value) || keeps(keyword, rule, value)?;
    }
    Some(good)
}

/// Whether a keyword ignores the value, because it only annotates or applies to values of another type.
fn ignores(keyword: &str, value: &Value) -> bool {
    match keyword {
        "default" | "description" | "title" | "deprecated" | "examples" | "$comment" => true,
        "minimum" | "maximum" | "multipleOf" => !value.is_number(),
        "minLength" | "maxLength" | "pattern" | "format" => !value.is_string(),
        "items" | "minItems" | "maxItems" | "uniqueItems" => !value.is_array(),
        "properties" | "required" | "additionalProperties" => !value.is_object(),
        _ => false,
    }
}

/// Whether the value satisfies one rule; `None` for rules that are not simple.
fn keeps(keyword: &str, rule: &Value, value: &Value) -> Option<bool> {
    Some(match (keyword, value) {
        ("type", _) => match rule {
            Value::String(ty) => is_of(value, ty)?,
            Value::Array(types) => {
                let fits: Option<Vec<bool>> = types.iter().map(|ty| is_of(value, ty.as_str()?)).collect();
                fits?.contains(&true)
            }
            _ => return None,
        },
        // The validator decides whether `1.0` equals `1`.
        ("enum", _) => rule.as_array()?.contains(value).then_some(true)?,
        ("minimum", _) => compare(value, rule)? != Ordering::Less,
        ("maximum", _) => compare(value, rule)? != Ordering::Greater,
        ("minLength", Value::String(text)) => text.chars().count() as u64 >= rule.as_u64()?,
        ("maxLength", Value::String(text)) => text.chars().count() as u64 <= rule.as_u64()?,
        ("minItems", Value::Array(items)) => items.len() as u64 >= rule.as_u64()?,
        ("maxItems", Value::Array(items)) => items.len() as u64 <= rule.as_u64()?,
        ("items", Value::Array(items)) => {
            let rule = rule.as_object()?;
            let fits: Option<Vec<bool>> = items.iter().map(|item| quick(rule, item)).collect();
            !fits?.contains(&false)
        }
        _ => return None,
    })
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
        // The validator decides whether `5.0` is an integer.
        "integer" => match value {
            Value::Number(number) if number.is_f64() => return None,
            other => other.is_number(),
        },
        _ => return None,
    })
}
