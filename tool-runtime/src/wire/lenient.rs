//! Field types that read what fits and skip what does not: a provider's odd field never loses a frame.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
/// The most entries of one list of a frame; more is no response that a model makes.
const MAX_LIST: usize = 1 << 16;

macro_rules! skip_scalars {
    ($value:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any JSON")
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}
macro_rules! skip_numbers {
    ($value:expr) => {
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}
macro_rules! skip_text {
    ($value:expr) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}
macro_rules! skip_list {
    ($value:expr) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}
macro_rules! skip_object {
    ($value:expr) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}

/// A string; everything else, and the empty string, is absent (R2).
#[derive(Default)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    /// The text, empty when it is absent.
    pub(crate) fn get(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text<'de>;
            skip_scalars!(Text::default());
            skip_numbers!(Text::default());
            skip_list!(Text::default());
            skip_object!(Text::default());
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// An integer; everything else is absent.
#[derive(Default, Clone, Copy)]
pub(crate) struct Integer(pub(crate) Option<i64>);

impl Integer {
    /// The integer as a count; nothing below zero.
    pub(crate) fn count(self) -> Option<u64> {
        self.0.and_then(|number| u64::try_from(number).ok())
    }
}

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Integer;
            skip_scalars!(Integer(None));
            skip_text!(Integer(None));
            skip_list!(Integer(None));
            skip_object!(Integer(None));
            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Integer(Some(number)))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Integer(i64::try_from(number).ok()))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// An object of a known shape; everything else is absent.
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = Object<T>;
            skip_scalars!(Object(None));
            skip_numbers!(Object(None));
            skip_text!(Object(None));
            skip_list!(Object(None));
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|object| Object(Some(object)))
            }
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

/// A list of objects; other entries are left out. One entry needs no allocation, and most lists have one.
pub(crate) struct List<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> List<T> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = T> {
        self.first.into_iter().chain(self.rest)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = List<T>;
            skip_scalars!(List::default());
            skip_numbers!(List::default());
            skip_text!(List::default());
            skip_object!(List::default());
            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut list = List::default();
                while let Some(Object(entry)) = entries.next_element::<Object<T>>()? {
                    let Some(entry) = entry else { continue };
                    if list.first.is_none() {
                        list.first = Some(entry);
                    } else if list.rest.len() < MAX_LIST {
                        list.rest.push(entry);
                    } else {
                        return Err(A::Error::custom("too many entries"));
                    }
                }
                Ok(list)
            }
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

/// Text that comes as a string or as a list of parts; parts of other types than text are left out.
#[derive(Default)]
pub(crate) struct Content<'a>(Cow<'a, str>);

impl Content<'_> {
    pub(crate) fn get(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct Part<'a> {
            #[serde(borrow, rename = "type")]
            kind: Text<'a>,
            #[serde(borrow)]
            text: Text<'a>,
        }
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Content<'de>;
            skip_scalars!(Content::default());
            skip_numbers!(Content::default());
            skip_object!(Content::default());
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut joined = String::new();
                while let Some(Object(part)) = parts.next_element::<Object<Part<'de>>>()? {
                    if let Some(part) = part.filter(|part| matches!(part.kind.get(), "" | "text" | "output_text")) {
                        joined.push_str(part.text.get());
                    }
                }
                Ok(Content(Cow::Owned(joined)))
            }
        }
        deserializer.deserialize_any(Read)
    }
}
