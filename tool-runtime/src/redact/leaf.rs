//! [`Leaf`]: the constraints of a schema on a scalar, which the writer checks.

use serde_json::Value;

/// The allowed forms of a leaf: a scalar, an array of scalars, or both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Leaf {
    scalar: Option<Kinds>,
    items: Option<Kinds>,
}

/// Types, and the bounds of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Kinds {
    types: u8,
    min: f64,
    max: f64,
}

const NULL: u8 = 1;
const BOOL: u8 = 2;
const INTEGER: u8 = 4;
const NUMBER: u8 = 8;
const STRING: u8 = 16;

impl Kinds {
    const ANY: Self =
        Self { types: NULL | BOOL | INTEGER | NUMBER | STRING, min: f64::NEG_INFINITY, max: f64::INFINITY };

    fn allows(&self, scalar: Scalar) -> bool {
        match scalar {
            Scalar::Null => self.types & NULL != 0,
            Scalar::Bool => self.types & BOOL != 0,
            Scalar::String => self.types & STRING != 0,
            Scalar::Number(number) => {
                let typed = self.types & NUMBER != 0 || (self.types & INTEGER != 0 && number.fract() == 0.0);
                typed && self.min <= number && number <= self.max
            }
        }
    }
}

/// A scalar that is about to be written.
#[derive(Clone, Copy)]
pub(super) enum Scalar {
    Null,
    Bool,
    String,
    Number(f64),
}

impl Leaf {
    /// Any scalar, or an array of them.
    pub(super) const ANY: Self = Self { scalar: Some(Kinds::ANY), items: Some(Kinds::ANY) };

    /// Reads `type`, `items`, `minimum` and `maximum` of a schema, and ignores its other keywords. `None` if there is
    /// no `type`, if a type is `object`, or if the items of an array cannot be read.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let names = match schema.get("type")? {
            Value::String(name) => vec![name.as_str()],
            Value::Array(names) => names.iter().map(Value::as_str).collect::<Option<_>>()?,
            _ => return None,
        };
        let bound = |key: &str, otherwise: f64| schema.get(key).and_then(Value::as_f64).unwrap_or(otherwise);
        let (min, max) = (bound("minimum", f64::NEG_INFINITY), bound("maximum", f64::INFINITY));
        let (mut types, mut items) = (0, None);
        for name in names {
            types |= match name {
                "null" => NULL,
                "boolean" => BOOL,
                "integer" => INTEGER,
                "number" => INTEGER | NUMBER,
                "string" => STRING,
                "array" => {
                    let inner = Self::of(schema.get("items")?)?;
                    items = inner.items.or(inner.scalar);
                    0
                }
                _ => return None,
            };
        }
        Some(Self { scalar: (types != 0).then_some(Kinds { types, min, max }), items })
    }

    /// Whether the type is unknown. Values of such a leaf are filtered and not refused.
    pub(super) fn is_any(&self) -> bool {
        *self == Self::ANY
    }

    pub(super) fn allows(&self, scalar: Scalar, in_array: bool) -> bool {
        let kinds = if in_array { self.items } else { self.scalar };
        kinds.is_some_and(|kinds| kinds.allows(scalar))
    }

    pub(super) const fn allows_array(&self) -> bool {
        self.items.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, good: &[Scalar], bad: &[Scalar]) {
        let leaf = Leaf::of(schema).unwrap();
        assert!(good.iter().all(|scalar| leaf.allows(*scalar, leaf.allows_array())), "{schema}");
        assert!(!bad.iter().any(|scalar| leaf.allows(*scalar, leaf.allows_array())), "{schema}");
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
