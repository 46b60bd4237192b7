//! Implements the traits of the validator library for the borrowed tree.

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object};
use serde_json::{Number, Value};

use crate::json::Tree;

/// The type that makes [`Tree`] known to the validator library as a representation of JSON.
pub(super) struct TreeJson;

impl Json for TreeJson {
    type Node<'a> = &'a Tree<'a>;
    type PreparedKey = String;
    type StringBuffer = Tree<'static>;

    // A look-up visits all members, so one pass for several names is cheaper for an object of usual size.
    const KEYS_PER_LOOKUP: usize = 4;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Tree<'static>, string: &str, f: impl FnOnce(Self::Node<'_>) -> T) -> T {
        *buffer = Tree::String(Cow::Owned(string.to_owned()));
        f(buffer)
    }
}

type Members<'a> = &'a [(Cow<'a, str>, Tree<'a>)];

impl<'a> Node<'a, TreeJson> for &'a Tree<'a> {
    type Object = Members<'a>;
    type Array = &'a [Tree<'a>];
    type Number = TreeNumber;

    fn as_object(&self) -> Option<Members<'a>> {
        (*self).as_object()
    }

    fn as_array(&self) -> Option<&'a [Tree<'a>]> {
        (*self).as_array()
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        (*self).as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<TreeNumber> {
        match self {
            Tree::Int(number) => Some(TreeNumber::Int(*number)),
            Tree::UInt(number) => Some(TreeNumber::UInt(*number)),
            Tree::Float(number) => Some(TreeNumber::Float(*number)),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self {
            Tree::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        (*self).is_null()
    }

    fn is_number(&self) -> bool {
        matches!(self, Tree::Int(_) | Tree::UInt(_) | Tree::Float(_))
    }

    fn is_string(&self) -> bool {
        matches!(self, Tree::String(_))
    }

    fn json_type(&self) -> JsonType {
        match self {
            Tree::Null => JsonType::Null,
            Tree::Bool(_) => JsonType::Boolean,
            Tree::Int(_) | Tree::UInt(_) | Tree::Float(_) => JsonType::Number,
            Tree::String(_) => JsonType::String,
            Tree::Array(_) => JsonType::Array,
            Tree::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        (*self).as_str().map(|text| text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        equals(self, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned((*self).to_value())
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref::<Tree<'a>>(self).addr()))
    }
}

fn equals(tree: &Tree<'_>, expected: &Value) -> bool {
    match (tree, expected) {
        (Tree::Null, Value::Null) => true,
        (Tree::Bool(one), Value::Bool(two)) => one == two,
        (Tree::String(one), Value::String(two)) => one == two,
        // `5.0` in a schema equals the integer 5 in arguments.
        (Tree::Int(_) | Tree::UInt(_) | Tree::Float(_), Value::Number(_)) => *tree == Tree::from_value(expected),
        (Tree::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| equals(one, two))
        }
        (Tree::Object(one), Value::Object(two)) => {
            one.len() == two.len() && one.iter().all(|(name, one)| two.get(&**name).is_some_and(|two| equals(one, two)))
        }
        _ => false,
    }
}

impl<'a> Object<'a, TreeJson> for Members<'a> {
    type Node = &'a Tree<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn get(&self, key: &String) -> Option<&'a Tree<'a>> {
        self.iter().find(|(name, _)| name == key.as_str()).map(|(_, value)| value)
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter(self.iter())
    }
}

pub(super) struct MembersIter<'a>(std::slice::Iter<'a, (Cow<'a, str>, Tree<'a>)>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, &'a Tree<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (&**name, value))
    }
}

impl<'a> Array<'a, TreeJson> for &'a [Tree<'a>] {
    type Node = &'a Tree<'a>;
    type ElementsIter = std::slice::Iter<'a, Tree<'a>>;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn elements(&self) -> Self::ElementsIter {
        self.iter()
    }
}

/// A number of a tree.
#[derive(Clone, Copy)]
pub(super) enum TreeNumber {
    Int(i64),
    UInt(u64),
    Float(f64),
}

impl JsonNumber for TreeNumber {
    fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::Int(number) => u64::try_from(number).ok(),
            Self::UInt(number) => Some(number),
            Self::Float(_) => None,
        }
    }

    fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::Int(number) => Some(number),
            Self::UInt(_) | Self::Float(_) => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the library requires an `f64` here")]
    fn as_f64(&self) -> Option<f64> {
        Some(match *self {
            Self::Int(number) => number as f64,
            Self::UInt(number) => number as f64,
            Self::Float(number) => number,
        })
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Owned(match self {
            Self::Int(number) => number.to_string(),
            Self::UInt(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
        })
    }

    fn to_number(&self) -> Cow<'_, Number> {
        Cow::Owned(match *self {
            Self::Int(number) => number.into(),
            Self::UInt(number) => number.into(),
            Self::Float(number) => Number::from_f64(number).unwrap_or_else(|| 0.into()),
        })
    }

    // The parser makes a float only of a number that is not an exact integer, and no integer type accepts a float.
    fn is_integer(&self) -> bool {
        !matches!(self, Self::Float(_))
    }

    fn is_written_as_integer(&self) -> bool {
        self.is_integer()
    }
}
