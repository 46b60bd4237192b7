//! Conversion between JSON and the values of scripts. A number that the language cannot represent exactly is refused,
//! never changed.

use rhai::{Dynamic, Map};
use serde_json::{Number, Value};

use crate::agent::code::script_error::ScriptError;
use crate::json::{self, Limits, Tree};

/// The maximum nesting of a script's value.
const DEPTH: usize = 32;

const NUMBER: ScriptError = ScriptError::new("script_number", "A number has no exact value in a script");
const VALUE: ScriptError =
    ScriptError::new("script_value", "A value of the script has no JSON, or is nested too deeply");

/// Reads JSON.
pub(super) fn read(text: &str) -> Result<Dynamic, ScriptError> {
    if !numbers(text).all(is_exact) {
        return Err(NUMBER);
    }
    let limits = Limits { bytes: usize::MAX, depth: DEPTH };
    let tree = json::parse_value(text, &limits).map_err(|_| VALUE)?;
    value_of(&tree)
}

fn value_of(tree: &Tree<'_>) -> Result<Dynamic, ScriptError> {
    Ok(match tree {
        Tree::Null => Dynamic::UNIT,
        Tree::Bool(flag) => (*flag).into(),
        Tree::Int(number) => (*number).into(),
        Tree::UInt(_) => return Err(NUMBER),
        Tree::Float(number) => (*number).into(),
        Tree::String(text) => (&**text).into(),
        Tree::Array(items) => Dynamic::from_array(items.iter().map(value_of).collect::<Result<_, _>>()?),
        Tree::Object(members) => {
            let member =
                |(name, value): &(std::borrow::Cow<'_, str>, Tree<'_>)| Ok(((&**name).into(), value_of(value)?));
            Dynamic::from_map(members.iter().map(member).collect::<Result<Map, ScriptError>>()?)
        }
    })
}

/// Writes a value as JSON.
pub(super) fn write(value: &Dynamic) -> Result<Value, ScriptError> {
    written(value, DEPTH)
}

fn written(value: &Dynamic, depth: usize) -> Result<Value, ScriptError> {
    let depth = depth.checked_sub(1).ok_or(VALUE)?;
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = value.as_bool() {
        return Ok(flag.into());
    }
    if let Ok(number) = value.as_int() {
        return Ok(number.into());
    }
    if let Ok(number) = value.as_float() {
        return Number::from_f64(number).filter(|_| is_decimal(number)).map(Value::Number).ok_or(NUMBER);
    }
    if let Ok(letter) = value.as_char() {
        return Ok(letter.to_string().into());
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        return Ok(text.as_str().into());
    }
    if let Ok(items) = value.as_array_ref() {
        return items.iter().map(|item| written(item, depth)).collect::<Result<_, _>>().map(Value::Array);
    }
    if let Ok(members) = value.as_map_ref() {
        let mut object = serde_json::Map::new();
        for (name, value) in members.iter() {
            object.insert(name.to_string(), written(value, depth)?);
        }
        return Ok(Value::Object(object));
    }
    Err(VALUE)
}

/// Returns the numbers of a JSON text, as they are written.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find(|letter: char| letter == '"' || letter == '-' || letter.is_ascii_digit())?;
            rest = rest.get(at..)?;
            if let Some(string) = rest.strip_prefix('"') {
                rest = after_string(string);
                continue;
            }
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '.' | '+' | '-'));
            let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            return Some(number);
        }
    })
}

fn after_string(text: &str) -> &str {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| match byte {
        _ if is_escaped => {
            is_escaped = false;
            false
        }
        b'\\' => {
            is_escaped = true;
            false
        }
        byte => byte == b'"',
    });
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

/// Whether the language represents the number exactly as it is written.
fn is_exact(number: &str) -> bool {
    if !number.contains(['.', 'e', 'E']) {
        return number.parse::<i64>().is_ok();
    }
    let Ok(float) = number.parse::<f64>() else { return false };
    is_decimal(float) && decimal(number) == decimal(&format!("{float:e}"))
}

/// Whether the number is below 2^63, so that the language cannot have made it from an integer that is too large.
fn is_decimal(number: f64) -> bool {
    number.abs() < 9_223_372_036_854_775_808.0
}

/// Returns the sign, the digits without zeros at either end, and the power of ten of the last digit.
fn decimal(number: &str) -> Option<(bool, String, i64)> {
    let (is_negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number),
    };
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let dropped = i64::try_from(digits.len() - kept.len()).ok()?;
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return Some((false, String::new(), 0));
    }
    let exponent = exponent.parse::<i64>().ok()?.checked_add(dropped)?;
    Some((is_negative, kept.to_owned(), exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects")]
mod tests {
    use super::*;

    /// Numbers that the language represents exactly come back unchanged; all others are refused.
    #[test]
    fn numbers_keep_their_value() {
        for text in ["0", "-1", "9223372036854775807", "-9223372036854775808", "0.1", "1.5e18", "123456.789", "5e-324"]
        {
            let written = write(&read(text).unwrap()).unwrap().to_string();
            assert_eq!(decimal(&written), decimal(text), "{text} is {written}");
        }
        for text in [
            "9223372036854775808",
            "18446744073709551615",
            "9.3e18",
            "1.5e300",
            "1e400",
            "0.1000000000000000055",
            "123456789012345678.5",
        ] {
            assert_eq!(read(text).err(), Some(NUMBER), "{text}");
        }
        assert_eq!(read(r#"{"a":["\"9223372036854775808",18446744073709551615]}"#).err(), Some(NUMBER));
        assert!(read(r#"{"a":["9223372036854775808 \" 1e999"]}"#).is_ok());
    }

    #[test]
    fn what_has_no_json_is_refused() {
        for number in [f64::NAN, f64::INFINITY, 9_223_372_036_854_775_808.0, -1e19] {
            assert_eq!(write(&Dynamic::from_float(number)).err(), Some(NUMBER));
        }
        assert_eq!(write(&Dynamic::from(0..1_i64)).err(), Some(VALUE));
        let deep = (0..=DEPTH).fold(Dynamic::UNIT, |inner, _| Dynamic::from_array(vec![inner]));
        assert_eq!(write(&deep).err(), Some(VALUE));
        assert_eq!(read(&format!("{}{}", "[".repeat(DEPTH + 1), "]".repeat(DEPTH + 1))).err(), Some(VALUE));
    }
}
