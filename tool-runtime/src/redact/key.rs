//! Member names: strings, and the scalars that `serde_json` accepts as map keys.

use serde::ser::{self, Impossible, Serialize};

use crate::redact::fault::Fault;

/// A serializer that returns a map key as text.
pub(super) struct Key;

macro_rules! display {
    ($($method:ident: $ty:ty),*) => {
        $(fn $method(self, value: $ty) -> Result<String, Fault> {
            Ok(value.to_string())
        })*
    };
}

macro_rules! refused {
    ($($method:ident($($ty:ty),*) -> $ok:ty;)*) => {
        $(fn $method(self, $(_: $ty),*) -> Result<$ok, Fault> {
            Err(Fault::NotJson)
        })*
    };
}

type No = Impossible<String, Fault>;

impl ser::Serializer for Key {
    type Ok = String;
    type Error = Fault;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = No;
    type SerializeStructVariant = No;

    display!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_char: char, serialize_str: &str
    );

    refused! {
        serialize_f32(f32) -> String;
        serialize_f64(f64) -> String;
        serialize_bytes(&[u8]) -> String;
        serialize_none() -> String;
        serialize_unit() -> String;
        serialize_unit_struct(&'static str) -> String;
        serialize_seq(Option<usize>) -> No;
        serialize_tuple(usize) -> No;
        serialize_tuple_struct(&'static str, usize) -> No;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> No;
        serialize_map(Option<usize>) -> No;
        serialize_struct(&'static str, usize) -> No;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> No;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<String, Fault> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<String, Fault> {
        Ok(variant.to_owned())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<String, Fault> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String, Fault> {
        Err(Fault::NotJson)
    }
}
