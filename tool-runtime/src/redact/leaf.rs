//! [`Leaf`]: what a schema says of a scalar, so that it is checked while it is written.

use serde_json::Value;

/// The types that a leaf may have, and the bounds of its numbers. An array of scalars has them for its elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Leaf {
    kinds: u8,
    min: f64,
    max: f64,
}

const NULL: u8 = 1;
const BOOL: u8 = 2;
const INTEGER: u8 = 4;
const NUMBER: u8 = 8;
const STRING: u8 = 16;

/// A scalar on its way out.
#[derive(Clone, Copy)]
pub(super) enum Scalar {
    Null,
    Bool,
    String,
    Number(f64),
}

impl Leaf {
    /// Nothing is known.
    pub(super) const ANY: Self =
        Self { kinds: NULL | BOOL | INTEGER | NUMBER | STRING, min: f64::NEG_INFINITY, max: f64::INFINITY };

    /// What the schema says; nothing when it says it in another way than by a type and two bounds.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let types = match schema.get("type")? {
            Value::String(name) => vec![name.as_str()],
            Value::Array(names) => names.iter().map(Value::as_str).collect::<Option<_>>()?,
            _ => return None,
        };
        let mut leaf = Self { kinds: 0, ..Self::ANY };
        for name in types {
            leaf.kinds |= match name {
                "null" => NULL,
                "boolean" => BOOL,
                "integer" => INTEGER,
                "number" => INTEGER | NUMBER,
                "string" => STRING,
                "array" => {
                    // The elements are written under the same plan as the array.
                    let items = Self::of(schema.get("items")?)?;
                    (leaf.min, leaf.max) = (items.min, items.max);
                    items.kinds
                }
                _ => return None,
            };
        }
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        (leaf.min, leaf.max) = (bound("minimum").unwrap_or(leaf.min), bound("maximum").unwrap_or(leaf.max));
        Some(leaf)
    }

    pub(super) fn allows(&self, scalar: Scalar) -> bool {
        match scalar {
            Scalar::Null => self.kinds & NULL != 0,
            Scalar::Bool => self.kinds & BOOL != 0,
            Scalar::String => self.kinds & STRING != 0,
            Scalar::Number(number) => {
                let typed = self.kinds & NUMBER != 0 || (self.kinds & INTEGER != 0 && number.fract() == 0.0);
                typed && self.min <= number && number <= self.max
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, good: &[Scalar], bad: &[Scalar]) {
        let leaf = Leaf::of(schema).unwrap();
        assert!(good.iter().all(|scalar| leaf.allows(*scalar)), "{schema}");
        assert!(!bad.iter().any(|scalar| leaf.allows(*scalar)), "{schema}");
    }

    #[test]
    fn types_and_bounds_are_held() {
        use Scalar::{Bool, Null, Number, String};
        check(&json!({"type": "string"}), &[String], &[Null, Bool, Number(1.0)]);
        check(&json!({"type": ["boolean", "null"]}), &[Null, Bool], &[String, Number(0.0)]);
        let byte = json!({"type": "integer", "minimum": 0, "maximum": 255});
        check(&byte, &[Number(0.0), Number(255.0)], &[Number(-1.0), Number(256.0), Number(1.5), String]);
        check(&json!({"type": "array", "items": byte}), &[Number(7.0)], &[Number(256.0), String]);
        check(&json!({"type": "number", "maximum": 1}), &[Number(0.5), Number(-1e300)], &[Number(1.5), Null]);
        check(&json!({"type": "integer", "maximum": u64::MAX}), &[Number(18_446_744_073_709_551_615.0)], &[]);
    }

    #[test]
    fn what_is_said_otherwise_is_left_to_the_schema() {
        for schema in [json!({}), json!(true), json!({"type": "object"}), json!({"anyOf": [{"type": "null"}]})] {
            assert_eq!(Leaf::of(&schema), None, "{schema}");
        }
    }
}
