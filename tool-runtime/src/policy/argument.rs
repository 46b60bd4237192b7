//! [`ArgumentView`]: how a policy looks at the arguments of a call.

use serde_json::Value;

use crate::json::Tree;

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

impl ArgumentView for Tree<'_> {
    fn visit(&self, pointer: &str, each: &mut dyn FnMut(Scalar<'_>)) -> bool {
        match self.pointer(pointer) {
            None => return false,
            Some(Tree::Array(items)) => items.iter().for_each(|item| each(item.into())),
            Some(value) => each(value.into()),
        }
        true
    }
}

impl ArgumentView for Value {
    fn visit(&self, pointer: &str, each: &mut dyn FnMut(Scalar<'_>)) -> bool {
        Tree::from_value(self).visit(pointer, each)
    }
}

impl<'a> From<&'a Tree<'_>> for Scalar<'a> {
    fn from(tree: &'a Tree<'_>) -> Self {
        match tree {
            Tree::Null => Self::Null,
            Tree::Bool(flag) => Self::Bool(*flag),
            Tree::Int(number) => Self::Int(*number),
            Tree::UInt(number) => Self::UInt(*number),
            Tree::Float(number) => Self::Float(*number),
            Tree::String(text) => Self::String(text),
            Tree::Array(_) | Tree::Object(_) => Self::Other,
        }
    }
}
