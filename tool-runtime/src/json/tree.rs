//! [`Tree`]: a JSON value that borrows its strings from the parsed text.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::json::{MAX_DEPTH, ParseErrorKind, number};
use crate::text::pointer;

/// A JSON value. Strings without escapes are borrowed; objects keep the order of their members.
///
/// Two objects are equal if their members are, in any order. `Debug` never shows the value.
///
/// ```
/// use tool_runtime::schema::validator::Tree;
///
/// let tree = Tree::Object(vec![("a".into(), Tree::Array(vec![Tree::Int(1), Tree::Int(2)]))]);
/// assert_eq!(tree.pointer("/a/1"), Some(&Tree::Int(2)));
/// ```
#[derive(Clone, Default)]
pub enum Tree<'a> {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer, or a number without a fraction up to 2^53, in any notation.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// Any other number; always finite.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Tree<'a>>),
    /// An object; no name occurs twice.
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
}

impl<'a> Tree<'a> {
    /// Borrows a value that is known not to be nested deeply: a schema, or a value that was parsed from text.
    pub(crate) fn from_value(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => number::from_number(number),
            Value::String(text) => Self::String(Cow::Borrowed(text)),
            Value::Array(items) => Self::Array(items.iter().map(Self::from_value).collect()),
            Value::Object(members) => Self::Object(
                members.iter().map(|(name, value)| (Cow::Borrowed(&**name), Self::from_value(value))).collect(),
            ),
        }
    }

    /// Returns a copy as a [`serde_json::Value`].
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(number) => Value::Number((*number).into()),
            Self::UInt(number) => Value::Number((*number).into()),
            Self::Float(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
            Self::String(text) => Value::String(text.as_ref().to_owned()),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(members) => Value::Object(
                members.iter().map(|(name, value)| (name.as_ref().to_owned(), value.to_value())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// Converts into a tree that owns its strings.
    #[must_use]
    pub fn into_owned(self) -> Tree<'static> {
        match self {
            Self::Null => Tree::Null,
            Self::Bool(flag) => Tree::Bool(flag),
            Self::Int(number) => Tree::Int(number),
            Self::UInt(number) => Tree::UInt(number),
            Self::Float(number) => Tree::Float(number),
            Self::String(text) => Tree::String(Cow::Owned(text.into_owned())),
            Self::Array(items) => Tree::Array(items.into_iter().map(Tree::into_owned).collect()),
            Self::Object(members) => Tree::Object(
                members.into_iter().map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned())).collect(),
            ),
        }
    }

    /// Returns the member with this name; `None` if there is none or this is not an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Like [`get`](Self::get), but mutable.
    #[must_use]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Object(members) => members.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the value at a JSON Pointer (RFC 6901); `None` if there is no such value.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        pointer::split(pointer)?.try_fold(self, |tree, segment| match tree {
            Self::Array(items) => items.get(pointer::index(&segment)?),
            _ => tree.get(&segment),
        })
    }

    /// Returns the string; `None` for other values.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the items of an array; `None` for other values.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the members of an object; `None` for other values.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns whether this is `null`.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// Borrows a value. Its numbers follow the same rules as those in text.
impl<'a> TryFrom<&'a Value> for Tree<'a> {
    /// The value is nested deeper than 128 levels.
    type Error = ParseErrorKind;

    fn try_from(value: &'a Value) -> Result<Self, ParseErrorKind> {
        if is_deeper(value, MAX_DEPTH) {
            return Err(ParseErrorKind::Depth { limit: MAX_DEPTH });
        }
        Ok(Self::from_value(value))
    }
}

/// Whether arrays and objects are nested deeper than `levels`. It stops at that depth.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(members) => levels == 0 || members.values().any(|member| is_deeper(member, levels - 1)),
        _ => false,
    }
}

impl PartialEq for Tree<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::Int(one), Self::Int(two)) => one == two,
            (Self::UInt(one), Self::UInt(two)) => one == two,
            (Self::Float(one), Self::Float(two)) => one == two,
            (Self::String(one), Self::String(two)) => one == two,
            (Self::Array(one), Self::Array(two)) => one == two,
            (Self::Object(one), Self::Object(two)) => {
                one.len() == two.len() && one.iter().all(|(name, value)| other.get(name) == Some(value))
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tree(..)")
    }
}
