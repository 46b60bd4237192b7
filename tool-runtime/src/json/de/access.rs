//! Gives `serde` the items, members and variants of a [`Tree`]. Each level adds its name to the pointer of an error.

use std::borrow::Cow;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer as _, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};

use crate::json::{DeError, Tree};

type Member<'t> = (Cow<'t, str>, Tree<'t>);

pub(super) struct Elements<'de, 't> {
    items: std::slice::Iter<'de, Tree<'t>>,
    at: usize,
}

impl<'de, 't> Elements<'de, 't> {
    pub(super) fn visit<V: Visitor<'de>>(items: &'de [Tree<'t>], visitor: V) -> Result<V::Value, DeError> {
        let mut elements = Elements { items: items.iter(), at: 0 };
        let value = visitor.visit_seq(&mut elements)?;
        // A tuple stops reading after its length, so remaining items are an error.
        if elements.items.len() > 0 { Err(DeError::invalid_length(items.len(), &"fewer items")) } else { Ok(value) }
    }
}

impl<'de> SeqAccess<'de> for &mut Elements<'de, '_> {
    type Error = DeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeError> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        seed.deserialize(item).map(Some).map_err(|error| error.within(&at.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

pub(super) struct Members<'de, 't> {
    members: std::slice::Iter<'de, Member<'t>>,
    value: Option<&'de Member<'t>>,
}

impl<'de, 't> Members<'de, 't> {
    pub(super) fn visit<V: Visitor<'de>>(members: &'de [Member<'t>], visitor: V) -> Result<V::Value, DeError> {
        let mut access = Members { members: members.iter(), value: None };
        let value = visitor.visit_map(&mut access)?;
        access.is_read(members.len())?;
        Ok(value)
    }

    // Not part of the function above, because that one is compiled for each type.
    fn is_read(&self, members: usize) -> Result<(), DeError> {
        if self.members.len() > 0 { Err(DeError::invalid_length(members, &"fewer properties")) } else { Ok(()) }
    }
}

impl<'de> MapAccess<'de> for &mut Members<'de, '_> {
    type Error = DeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DeError> {
        let Some(member) = self.members.next() else { return Ok(None) };
        self.value = Some(member);
        seed.deserialize(BorrowedStrDeserializer::new(&member.0)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DeError> {
        let Some((name, value)) = self.value.take() else {
            return Err(DeError::custom("a value was requested before its name"));
        };
        seed.deserialize(value).map_err(|error| error.within(name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// A variant with data: an object whose only member is the name of the variant.
pub(super) struct Variant<'de, 't> {
    pub(super) name: &'de str,
    pub(super) value: &'de Tree<'t>,
}

impl<'de> EnumAccess<'de> for Variant<'de, '_> {
    type Error = DeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), DeError> {
        Ok((seed.deserialize(BorrowedStrDeserializer::new(self.name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de, '_> {
    type Error = DeError;

    // Other formats accept `{"name": null}`, but the schema of a unit variant is a string.
    fn unit_variant(self) -> Result<(), DeError> {
        Err(DeError::invalid_type(Unexpected::Map, &"a string"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DeError> {
        seed.deserialize(self.value).map_err(|error| error.within(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DeError> {
        self.value.deserialize_any(visitor).map_err(|error| error.within(self.name))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, DeError> {
        self.value.deserialize_map(visitor).map_err(|error| error.within(self.name))
    }
}
