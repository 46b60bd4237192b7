//! Deserialises a [`Tree`] into any type. It refuses values that a schema refuses: an array is not a struct, and `null`
//! is not a unit variant.

mod access;
mod error;
#[cfg(feature = "testing")]
pub(crate) mod watch;

pub(crate) use error::DeError;
pub(crate) use error::DeErrorKind;

use serde::de::{Deserialize, Deserializer, Error as _, IntoDeserializer as _, Unexpected, Visitor};

use crate::json::Tree;
use access::{Elements, Members, Variant};

/// Builds a value from a tree. Its strings may be borrowed from the tree.
///
/// # Errors
///
/// [`DeError`], with the JSON Pointer of the value that does not fit.
pub(crate) fn from_tree<'de, T: Deserialize<'de>>(tree: &'de Tree<'_>) -> Result<T, DeError> {
    T::deserialize(tree)
}

impl<'de> Tree<'_> {
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(flag) => Unexpected::Bool(*flag),
            Self::Int(number) => Unexpected::Signed(*number),
            Self::UInt(number) => Unexpected::Unsigned(*number),
            Self::Float(number) => Unexpected::Float(*number),
            Self::String(text) => Unexpected::Str(text),
            Self::Array(_) => Unexpected::Seq,
            Self::Object(_) => Unexpected::Map,
        }
    }

    fn mismatch<V: Visitor<'de>>(&self, visitor: &V) -> DeError {
        DeError::invalid_type(self.unexpected(), visitor)
    }
}

impl<'de> Deserializer<'de> for &'de Tree<'_> {
    type Error = DeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match self {
            Tree::Null => visitor.visit_unit(),
            Tree::Bool(flag) => visitor.visit_bool(*flag),
            Tree::Int(number) => visitor.visit_i64(*number),
            Tree::UInt(number) => visitor.visit_u64(*number),
            Tree::Float(number) => visitor.visit_f64(*number),
            Tree::String(text) => visitor.visit_borrowed_str(text),
            Tree::Array(items) => Elements::visit(items, visitor),
            Tree::Object(members) => Members::visit(members, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, DeError> {
        visitor.visit_newtype_struct(self)
    }

    // A derived struct would also accept an array, but its schema requires an object.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        #[cfg(feature = "testing")]
        watch::note(self, names, false);
        let _ = names;
        self.deserialize_map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match self {
            Tree::Object(members) => Members::visit(members, visitor),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        #[cfg(feature = "testing")]
        watch::note(self, names, true);
        let _ = names;
        match self {
            Tree::String(name) => visitor.visit_enum((**name).into_deserializer()),
            Tree::Object(members) => match members.as_slice() {
                [(name, value)] => visitor.visit_enum(Variant { name, value }),
                _ => Err(self.mismatch(&visitor)),
            },
            _ => Err(self.mismatch(&visitor)),
        }
    }

    // Integers beyond 64 bits arrive as strings.
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match self {
            Tree::String(digits) => match digits.parse() {
                Ok(number) => visitor.visit_i128(number),
                Err(_) => Err(DeError::invalid_value(self.unexpected(), &"an integer of 128 bits")),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match self {
            Tree::String(digits) => match digits.parse() {
                Ok(number) => visitor.visit_u128(number),
                Err(_) => Err(DeError::invalid_value(self.unexpected(), &"an integer of 128 bits, 0 or more")),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct identifier
    }
}
