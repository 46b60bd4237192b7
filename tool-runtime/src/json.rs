//! Strict JSON: a text is parsed once into a borrowed tree, and validation and deserialisation read that tree.
//!
//! The meaning of a number does not depend on cargo features of `serde_json` that other crates enable.

pub(crate) mod canonical;
pub(crate) mod de;
mod duplicates;
mod error;
mod limits;
mod number;
mod parse;
mod quote;
mod ser;
mod string;
mod tree;

pub(crate) use canonical::digest;
pub(crate) use de::DeErrorKind;
pub(crate) use de::{DeError, from_tree};
pub(crate) use error::ParseError;
pub use error::ParseErrorKind;
pub use limits::Limits;
pub(crate) use limits::MAX_DEPTH;
pub use parse::{parse, parse_value};
pub(crate) use parse::{parse_line, parse_record};
pub(crate) use quote::quote;
pub use tree::Tree;
pub(crate) use tree::is_deeper;

#[cfg(test)]
mod tests;
