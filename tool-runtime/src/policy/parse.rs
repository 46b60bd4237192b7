//! Deserializers for the fields of a policy: exact tool names, unique keys, tables, limits above zero.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::call::Decider;
use crate::tool::ToolName;

/// A set of exact tool names.
pub(super) fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    struct Names;
    impl<'de> Visitor<'de> for Names {
        type Value = BTreeSet<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of tool names, for example [\"core__add\"]")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut names = BTreeSet::new();
            while let Some(Name(name)) = items.next_element()? {
                names.insert(name);
            }
            Ok(names)
        }
    }
    deserializer.deserialize_seq(Names)
}

/// A map whose keys are exact tool names.
pub(super) fn named_map<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, V>, D::Error> {
    let map: BTreeMap<Name, Table<V>> = unique_map(deserializer)?;
    Ok(map.into_iter().map(|(Name(name), Table(value))| (name, value)).collect())
}

/// A map of tables.
pub(super) fn table_map<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    let map: BTreeMap<K, Table<V>> = unique_map(deserializer)?;
    Ok(map.into_iter().map(|(key, Table(value))| (key, value)).collect())
}

/// A map of maps of tables.
pub(super) fn table_maps<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, BTreeMap<String, V>>, D::Error> {
    struct Tables<V>(BTreeMap<String, V>);
    impl<'de, V: Deserialize<'de>> Deserialize<'de> for Tables<V> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            table_map(deserializer).map(Self)
        }
    }
    let map: BTreeMap<String, Tables<V>> = unique_map(deserializer)?;
    Ok(map.into_iter().map(|(key, Tables(tables))| (key, tables)).collect())
}

/// An optional set of exact tool names. An absent set differs from an empty one.
pub(super) fn some_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeSet<String>>, D::Error> {
    names(deserializer).map(Some)
}

/// An optional set of principals, each with a name that a [`Decider`] can have.
pub(super) fn principals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeSet<String>>, D::Error> {
    let principals: BTreeSet<Principal> = BTreeSet::deserialize(deserializer)?;
    Ok(Some(principals.into_iter().map(|Principal(name)| name).collect()))
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct Principal(String);

impl TryFrom<String> for Principal {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        if Decider::new(name.as_str()).is_named() {
            return Ok(Self(name));
        }
        Err(
            "a principal's name is not empty, has no invisible characters, and neither begins nor ends with white space",
        )
    }
}

/// A map that refuses duplicate keys. In JSON, the last one would silently replace the others.
pub(super) fn unique_map<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    struct Unique<K, V>(PhantomData<(K, V)>);
    impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Unique<K, V> {
        type Value = BTreeMap<K, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = entries.next_entry()? {
                if map.insert(key, value).is_some() {
                    return Err(A::Error::custom("this key is written twice; remove one"));
                }
            }
            Ok(map)
        }
    }
    deserializer.deserialize_map(Unique(PhantomData))
}

/// A non-zero size or count.
pub(super) fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    match usize::deserialize(deserializer)? {
        0 => Err(D::Error::custom("0 would refuse everything; write 1 or more, or leave the key out")),
        number => Ok(number),
    }
}

/// An optional non-zero limit.
pub(super) fn limit<'de, D: Deserializer<'de>, N>(deserializer: D) -> Result<Option<N>, D::Error>
where
    N: Deserialize<'de> + Default + PartialEq,
{
    match N::deserialize(deserializer)? {
        number if number == N::default() => {
            Err(D::Error::custom("0 would refuse everything; write 1 or more, or leave the key out"))
        }
        number => Ok(Some(number)),
    }
}

/// An optional cost, finite and not negative.
pub(super) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match f64::deserialize(deserializer)? {
        number if number.is_finite() && number >= 0.0 => Ok(Some(number)),
        _ => Err(D::Error::custom("write a finite amount of 0 or more")),
    }
}

/// A table. A derived `Deserialize` would also accept an array and read the fields by their position.
pub(super) struct Table<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        table(deserializer).map(Self)
    }
}

/// Like [`table`], but optional. An absent table differs from an empty one.
pub(super) fn some_table<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    table(deserializer).map(Some)
}

/// Reads a field as a [`Table`].
pub(super) fn table<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Fields<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table")
        }

        fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(entries))
        }
    }
    deserializer.deserialize_map(Fields(PhantomData))
}

/// An exact tool name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The visitor checks the name, so that the error points at the name and not at the list around it.
        struct Exact;
        impl Visitor<'_> for Exact {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a tool")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
                if name.contains(['*', '?']) {
                    return Err(E::custom("a policy names tools exactly; write each name instead of a wildcard"));
                }
                ToolName::foreign(name).map_err(E::custom)?;
                Ok(Name(name.to_owned()))
            }
        }
        deserializer.deserialize_str(Exact)
    }
}
