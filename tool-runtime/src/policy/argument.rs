//! [`ArgumentView`]: how a policy looks at the arguments of a call.

use serde_json::Value;

/// What a policy may look at. Implemented by whatever holds frozen arguments.
pub trait ArgumentView {
    /// Calls `each` with the scalar at a JSON Pointer, or with every item of the array there; `false` when there
    /// is nothing.
    fn visit(&self, pointer: &str, each: &mut dyn FnMut(Scalar<'_>)) -> bool;
}

/// A scalar argument, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer up to `i64::MAX`.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(&'a str),
    /// An object, or an array within an array.
    Other,
}

impl ArgumentView for Value {
    fn visit(&self, pointer: &str, each: &mut dyn FnMut(Scalar<'_>)) -> bool {
        match self.pointer(pointer) {
            None => return false,
            Some(Self::Array(items)) => items.iter().for_each(|item| each(scalar(item))),
            Some(value) => each(scalar(value)),
        }
        true
    }
}

fn scalar(value: &Value) -> Scalar<'_> {
    match value {
        Value::Null => Scalar::Null,
        Value::Bool(flag) => Scalar::Bool(*flag),
        Value::String(text) => Scalar::String(text),
        Value::Number(number) => number.as_i64().map_or_else(
            || number.as_u64().map_or_else(|| number.as_f64().map_or(Scalar::Other, Scalar::Float), Scalar::UInt),
            Scalar::Int,
        ),
        Value::Array(_) | Value::Object(_) => Scalar::Other,
    }
}
