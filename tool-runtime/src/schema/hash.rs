//! The hash of a definition, for lock files and records.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::capability::{InjectedFrom, Requirement};
use crate::json::{canonical, digest};
use crate::text::lex::outside_strings;
use crate::tool::{Hash, ToolSpec};

/// The number of digits up to which a double holds every integer exactly.
const EXACT_DIGITS: usize = 15;

/// Returns the SHA-256 over the canonical JSON (RFC 8785) of a definition without its title and the hash itself, and of
/// the tool's requirements. It covers every protective rule, but no limits.
pub(crate) fn definition_hash(spec: &ToolSpec, borrowed: &[Requirement]) -> Hash {
    let text = |value: &Value| canonical::rfc8785(value);
    // `summary`, `also` and `once` are left out if a tool does not have them.
    let summary = match spec.summary.as_slice() {
        [] => String::new(),
        sentences => {
            let sentences: Value = sentences.iter().map(|sentence| Value::from(&**sentence)).collect();
            format!(r#""summary":{},"#, text(&sentences))
        }
    };
    let also = match spec.also.as_slice() {
        [] => String::new(),
        words => format!(r#""also":{},"#, text(&words.iter().map(|word| Value::from(&**word)).collect())),
    };
    let once = match &spec.once {
        Some(once) => format!(r#""once":{},"#, text(&json!(once))),
        None => String::new(),
    };
    // Schemas are canonical texts already, except for numbers; parsing them again would be most of the work. The
    // members are in the order of RFC 8785.
    digest(format!(
        concat!(
            r#"{{{also}"borrows":{},"description":{},"effect":{},"evidence":{},"execution":{},"idempotent":{},"#,
            r#""input_schema":{},"name":{},"no_schema":{},{once}"output_schema":{},"redaction":{},"require_any":{},"#,
            r#""sensitive":{},{summary}"tags":{}}}"#
        ),
        text(&borrows(borrowed)),
        text(&Value::from(&*spec.description)),
        text(&Value::from(spec.effect.as_str())),
        text(&json!(spec.evidence)),
        text(&Value::from(spec.execution.as_str())),
        spec.idempotent,
        doubles(spec.input_schema.as_str()),
        text(&Value::from(spec.name.as_str())),
        text(&spec.no_schema.map_or(Value::Null, |mode| mode.as_str().into())),
        doubles(spec.output_schema.as_str()),
        text(&json!({
            "allow": spec.redaction.allow,
            "model": spec.redaction.model,
            "prepare": spec.redaction.prepare,
        })),
        text(&json!(spec.require_any)),
        text(&json!(spec.sensitive)),
        text(&spec.tags.iter().map(|tag| Value::from(&**tag)).collect()),
        also = also,
        once = once,
        summary = summary,
    ))
}

/// Returns the hash of a definition as its server published it, with every key.
pub(crate) fn pin(definition: &Value) -> Hash {
    digest(canonical::to_text(definition))
}

/// Returns the capabilities and connections that a tool borrows, with their effects, independent of the order of
/// parameters.
fn borrows(requirements: &[Requirement]) -> Value {
    let mut found: Vec<_> = requirements
        .iter()
        .filter_map(|one| match one.source {
            // Every tool may read the context of its own call.
            InjectedFrom::Context => None,
            InjectedFrom::Capability => Some((one.name, one.effect.as_str(), None)),
            InjectedFrom::Connection(kind) => Some((one.name, one.effect.as_str(), Some(kind))),
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(name, effect, kind)| json!({"effect": effect, "kind": kind, "name": name})).collect()
}

/// Converts canonical text with exact integers into the text of RFC 8785, which rounds long integers.
fn doubles(text: &str) -> Cow<'_, str> {
    // Few schemas have a long integer, and reading each byte of a schema costs more than hashing it. A long integer has
    // a digit at one of the sampled places.
    let step = EXACT_DIGITS + 1;
    if !text.bytes().skip(EXACT_DIGITS).step_by(step).any(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(text);
    }
    let mut rounded = String::new();
    let (mut copied, mut read) = (0, 0);
    for (at, byte) in outside_strings(text) {
        if at < read || !matches!(byte, b'-' | b'0'..=b'9') {
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        let length = rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e')).count();
        let literal = rest.get(..length).unwrap_or_default();
        read = at + length;
        let long = length > EXACT_DIGITS && !literal.contains(['.', 'e']);
        if let (true, Ok(double)) = (long, literal.parse::<f64>()) {
            rounded.push_str(text.get(copied..at).unwrap_or_default());
            rounded.push_str(&canonical::rfc8785(&Value::from(double)));
            copied = read;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    rounded.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(rounded)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{canonical, doubles};

    #[test]
    fn numbers_become_doubles_and_nothing_else_changes() {
        for value in [
            json!({"maximum": u64::MAX, "minimum": i64::MIN, "a": [-1, 0, 7], "b": 9_007_199_254_740_993_u64}),
            json!({"a": f64::from(f32::MAX), "b": 1e-7, "c": 0.5, "d": 123_456_789_012_345_680_000.0}),
            json!({"12345678901234567890": "12345678901234567890", "a\"\\": "\\\"1234567890123456789\n\u{1}å"}),
            json!(true),
            json!(12_345_678_901_234_567_u64),
            json!(-1_234_567_890_123_456_i64),
            Value::Null,
        ] {
            assert_eq!(doubles(&canonical::to_text(&value)), canonical::rfc8785(&value));
        }
        // At every offset.
        for before in 0..40 {
            for number in [u64::MAX, 9_007_199_254_740_993] {
                let value = json!({"a": "x".repeat(before), "b": number});
                assert_eq!(doubles(&canonical::to_text(&value)), canonical::rfc8785(&value));
            }
        }
    }
}
