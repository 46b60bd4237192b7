//! Proptest strategies for the numbers and texts of a schema.

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Strategy as _};
use proptest::sample::select;
use proptest::strategy::Union;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value};

use crate::testing::agreement::texts::{of_format, of_pattern};

/// The maximum number of characters beyond the minimum length.
pub(super) const SPREAD: u64 = 6;

/// The length, in characters, from which a text repeats a shorter one.
const LONG: usize = 200;

/// The maximum number of characters in the smallest value of a schema.
const MAX_CHARACTERS: u64 = 1_000_000;

/// A strategy for the values, or the reason why there are none.
type Made = Result<BoxedStrategy<Value>, &'static str>;

pub(super) fn integer(schema: &Map<String, Value>) -> Made {
    let bound = |name: &str, round: fn(f64) -> f64| schema.get(name).and_then(|bound| whole(bound, round));
    let above = bound("exclusiveMinimum", f64::floor).map(|bound| bound.saturating_add(1));
    let below = bound("exclusiveMaximum", f64::ceil).map(|bound| bound.saturating_sub(1));
    let low = bound("minimum", f64::ceil).max(above).unwrap_or(i64::MIN.into());
    let high = least(bound("maximum", f64::floor), below).unwrap_or(i64::MAX.into());
    // JSON integers have 64 bits here, with or without a sign.
    let (low, high) = (low.max(i64::MIN.into()), high.min(u64::MAX.into()));
    let step = step(schema).unwrap_or(1).max(1);
    let (first, last) = (low.div_euclid(step) + i128::from(low.rem_euclid(step) != 0), high.div_euclid(step));
    if first > last {
        return Err("no integer is within the bounds");
    }
    Ok((first..=last).prop_map(move |times| as_value(times * step)).boxed())
}

pub(super) fn number(schema: &Map<String, Value>) -> Made {
    if step(schema).is_some() {
        return integer(schema);
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (low, above) = (bound("minimum"), bound("exclusiveMinimum"));
    let (high, below) = (bound("maximum"), bound("exclusiveMaximum"));
    let low = low.into_iter().chain(above).reduce(f64::max);
    let high = high.into_iter().chain(below).reduce(f64::min);
    let (low, high) = match (low, high) {
        (Some(low), Some(high)) => (low, high),
        (Some(low), None) => (low, low.abs().mul_add(2.0, low + 1_000.0).min(f64::MAX)),
        (None, Some(high)) => (high.abs().mul_add(-2.0, high - 1_000.0).max(f64::MIN), high),
        (None, None) => (-1_000.0, 1_000.0),
    };
    let is_point = low >= high && (above == Some(low) || below == Some(high));
    if low > high || is_point {
        return Err("no number is within the bounds");
    }
    match schema.get("multipleOf").and_then(Value::as_f64) {
        Some(step) if step > 0.0 => {
            #[allow(clippy::cast_possible_truncation, reason = "it saturates, and the validator judges the value")]
            let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
            #[allow(clippy::cast_precision_loss, reason = "the validator judges the value")]
            Ok((first..=last.max(first)).prop_map(move |times| Value::from(times as f64 * step)).boxed())
        }
        _ if (high - low).is_finite() => Ok((low..=high).prop_map(Value::from).boxed()),
        _ => Ok((0.0..=1.0).prop_map(move |share| Value::from(low * (1.0 - share) + high * share)).boxed()),
    }
}

/// Returns the texts of a schema. `times` is the number of such texts in the smallest value of the whole schema.
pub(super) fn text(schema: &Map<String, Value>, times: u64) -> Made {
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    let low = bound("minLength").unwrap_or(0);
    let longest = bound("maxLength").unwrap_or(u64::MAX);
    let high = longest.min(low.saturating_add(SPREAD));
    if low > high {
        return Err("no text has such a length");
    }
    if low.saturating_mul(times) > MAX_CHARACTERS {
        return Err("the smallest value is too large to be tried");
    }
    let mut made = Vec::new();
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let fits = move |text: &String| {
            let length = text.chars().count() as u64;
            low <= length && length <= longest
        };
        let Some(texts) = of_pattern(pattern, low, high) else {
            return Err("no text can be made for its `pattern`");
        };
        let texts = texts.prop_filter("its length", fits).prop_map(Value::from).boxed();
        if texts.new_tree(&mut TestRunner::deterministic()).is_err() {
            return Err("no text of its `pattern` has such a length");
        }
        made.push(texts);
    }
    // Validators ignore formats that JSON Schema does not define.
    if let Some(examples) = schema.get("format").and_then(Value::as_str).and_then(of_format) {
        made.push(examples);
    }
    if !made.is_empty() {
        return Ok(Union::new(made).boxed());
    }
    let letters = Union::new_weighted(vec![
        (12, proptest::char::range('a', 'z').boxed()),
        (2, select(vec!['A', '7', ' ', '-', '"', '\\', '/', '~', '\n', 'é', '漢', '🦀']).boxed()),
    ]);
    let (low, high) = (usize::try_from(low).unwrap_or(0), usize::try_from(high).unwrap_or(0));
    // A long text repeats a short one, because generating each letter is slow.
    let short = vec(letters, low.min(LONG)..=high.min(LONG + low % LONG));
    let text = move |letters: Vec<char>| {
        let length = if low > LONG { low } else { letters.len() };
        letters.iter().cycle().take(length).collect::<String>().into()
    };
    Ok(short.prop_map(text).boxed())
}

fn least(one: Option<i128>, other: Option<i128>) -> Option<i128> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Returns a bound as a whole number. `round` rounds a fraction to the inside of the range.
fn whole(value: &Value, round: fn(f64) -> f64) -> Option<i128> {
    let number = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    #[allow(clippy::cast_possible_truncation, reason = "a bound beyond 128 bits saturates")]
    number.or_else(|| value.as_f64().map(|number| round(number) as i128))
}

/// Returns `multipleOf` if it is a whole number.
fn step(schema: &Map<String, Value>) -> Option<i128> {
    let step = schema.get("multipleOf").filter(|step| step.as_f64().is_some_and(|step| step.fract() == 0.0))?;
    whole(step, f64::floor)
}

fn as_value(value: i128) -> Value {
    i64::try_from(value).map(Value::from).or_else(|_| u64::try_from(value).map(Value::from)).unwrap_or_default()
}
