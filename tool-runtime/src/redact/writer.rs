//! The filtering writer: a `serde::Serializer` that writes only the leaves that the plan (a compiled allowlist) names.

mod compound;
mod out;

use serde::ser::{self, Serialize};

use crate::call::RAW;
use crate::json;
use crate::redact::fault::Fault;
use crate::redact::fit::Unwritten;
use crate::redact::leaf::Scalar;
use crate::redact::plan::Plan;
use compound::{Compound, Members};
pub(super) use out::Out;

/// The name under which `serde_json` serialises arbitrary-precision numbers.
const NUMBER: &str = "$serde_json::private::Number";

/// A written value.
pub(super) struct Written {
    pub(super) text: String,
    /// The parts that were not written, sorted.
    pub(super) unwritten: Vec<Unwritten>,
}

/// A value of any type that serialises. As a trait object, it keeps the projection from being compiled for each type.
pub(super) trait Writable {
    fn write(&self, place: Cursor<'_, '_>) -> Result<Shown, Fault>;
}

impl<T: Serialize> Writable for T {
    fn write(&self, place: Cursor<'_, '_>) -> Result<Shown, Fault> {
        self.serialize(place)
    }
}

/// Writes a value under a plan into an empty string. If an array, a map or a string is much longer than `most`, only
/// its beginning is written, because more cannot fit.
pub(super) fn write(value: &dyn Writable, plan: &Plan, most: usize, text: String) -> Result<Written, Fault> {
    let mut out = Out::new(text, most);
    match value.write(Cursor { out: &mut out, plan, arrays: 0, depth: 0 })? {
        Shown::Yes => {}
        Shown::No(shape) => {
            out.truncate(0);
            out.text.push_str(shape);
        }
    }
    if !out.unwritten.is_empty() {
        // An array adds its entry after the entries of its items.
        out.unwritten.sort_unstable();
    }
    Ok(Written { text: out.text, unwritten: out.unwritten })
}

/// Whether any part of a value was written. `No` contains the empty value of the same shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Yes,
    No(&'static str),
}

/// The maximum nesting. Deeper values could overflow the stack.
const MAX_DEPTH: u8 = 128;

/// One place of the value, with its plan.
pub(super) struct Cursor<'o, 'p> {
    pub(super) out: &'o mut Out,
    pub(super) plan: &'p Plan,
    /// The number of open arrays around the value at this node of the plan.
    pub(super) arrays: u8,
    pub(super) depth: u8,
}

impl<'o, 'p> Cursor<'o, 'p> {
    /// Writes a scalar if the plan is a leaf. A scalar in place of an object is dropped or refused.
    fn scalar(self, scalar: Scalar, write: impl FnOnce(&mut Out)) -> Result<Shown, Fault> {
        match self.plan {
            Plan::Leaf(leaf) if leaf.allows(scalar, self.arrays > 0) => {
                write(self.out);
                Ok(Shown::Yes)
            }
            Plan::Object { arrays: Some(_), .. } if !matches!(scalar, Scalar::Null) => Err(Fault::NotSchema),
            Plan::Leaf(_) => Err(Fault::NotSchema),
            Plan::Object { .. } => Ok(Shown::No("null")),
        }
    }

    /// Returns the same place one level deeper, for a value inside a wrapper.
    fn deeper(self) -> Result<Self, Fault> {
        if self.depth >= MAX_DEPTH { Err(Fault::TooDeep) } else { Ok(Self { depth: self.depth + 1, ..self }) }
    }

    fn number(self, value: f64, text: &str) -> Result<Shown, Fault> {
        self.scalar(Scalar::Number(value), |out| out.text.push_str(text))
    }

    /// `shortest` is the same number, as an `f32` or an `f64`.
    fn float<F: Serialize>(self, value: f64, shortest: F) -> Result<Shown, Fault> {
        // Hidden leaves are checked, too, because an output that is not JSON is invalid as a whole.
        if !value.is_finite() {
            return Err(Fault::NotJson);
        }
        // `serde_json` writes the shortest text that reads as the number. A fixed buffer avoids the cost of formatting.
        let mut digits = [0; 32];
        let mut rest = digits.as_mut_slice();
        serde_json::to_writer(&mut rest, &shortest).map_err(|_| Fault::NotJson)?;
        let left = rest.len();
        let text = digits.get(..digits.len() - left).and_then(|digits| std::str::from_utf8(digits).ok());
        self.number(value, text.ok_or(Fault::NotJson)?)
    }

    fn array(self) -> Result<Compound<'o, 'p>, Fault> {
        match self.plan {
            Plan::Leaf(leaf) if !leaf.allows_array() => Err(Fault::NotSchema),
            Plan::Object { arrays: Some(arrays), .. } if self.arrays >= *arrays => Err(Fault::NotSchema),
            _ => Ok(Compound::array(self.deeper()?)),
        }
    }

    fn object(self) -> Result<Members<'o, 'p>, Fault> {
        match self.plan {
            Plan::Leaf(leaf) if !leaf.is_any() => Err(Fault::NotSchema),
            Plan::Object { arrays: Some(arrays), .. } if self.arrays < *arrays => Err(Fault::NotSchema),
            _ => Ok(Members::new(self.deeper()?)),
        }
    }

    /// Parses JSON text inside a value, and filters it like any other value.
    pub(super) fn raw(self, text: &str) -> Result<Shown, Fault> {
        json::parse_value(text, &json::Limits::UNBOUNDED).map_err(|_| Fault::NotJson)?.serialize(self)
    }

    /// Writes `{"variant": value}`.
    fn variant<T: Serialize + ?Sized>(self, variant: &'static str, value: &T) -> Result<Shown, Fault> {
        let mut members = self.object()?;
        members.member(variant, value)?;
        members.close()
    }
}

macro_rules! numbers {
    ($($method:ident: $ty:ty),*) => {
        $(#[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "a bound is compared, not a digit")]
        fn $method(self, value: $ty) -> Result<Shown, Fault> {
            self.number(value as f64, itoa::Buffer::new().format(value))
        })*
    };
}

impl<'o, 'p> ser::Serializer for Cursor<'o, 'p> {
    type Ok = Shown;
    type Error = Fault;
    type SerializeSeq = Compound<'o, 'p>;
    type SerializeTuple = Compound<'o, 'p>;
    type SerializeTupleStruct = Compound<'o, 'p>;
    type SerializeTupleVariant = Compound<'o, 'p>;
    type SerializeMap = Members<'o, 'p>;
    type SerializeStruct = Members<'o, 'p>;
    type SerializeStructVariant = Members<'o, 'p>;

    numbers!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128
    );

    fn serialize_bool(self, value: bool) -> Result<Shown, Fault> {
        self.scalar(Scalar::Bool, |out| out.text.push_str(if value { "true" } else { "false" }))
    }

    fn serialize_f32(self, value: f32) -> Result<Shown, Fault> {
        // Writes the shortest text that reads as this `f32`, not the digits of its `f64`.
        self.float(value.into(), value)
    }

    fn serialize_f64(self, value: f64) -> Result<Shown, Fault> {
        self.float(value, value)
    }

    fn serialize_char(self, value: char) -> Result<Shown, Fault> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<Shown, Fault> {
        self.scalar(Scalar::String, |out| out.string(value))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Shown, Fault> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<Shown, Fault> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Shown, Fault> {
        value.serialize(self.deeper()?)
    }

    fn serialize_unit(self) -> Result<Shown, Fault> {
        self.scalar(Scalar::Null, |out| out.text.push_str("null"))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Shown, Fault> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Shown, Fault> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Shown, Fault> {
        value.serialize(self.deeper()?)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Shown, Fault> {
        self.variant(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'o, 'p>, Fault> {
        self.array()
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'o, 'p>, Fault> {
        self.array()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'o, 'p>, Fault> {
        self.array()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'o, 'p>, Fault> {
        Ok(Compound::variant(self.deeper()?, variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'o, 'p>, Fault> {
        self.object()
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'o, 'p>, Fault> {
        if name == RAW || name == NUMBER { Ok(Members::text(self)) } else { self.object() }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'o, 'p>, Fault> {
        Ok(Members::variant(self.deeper()?, variant))
    }
}
