//! Tests of the parser, the tree, deserialising and canonical text.

mod canonical;
mod de;
mod numbers;
mod random;
mod suite;
mod tree;

use crate::json::{Limits, ParseErrorKind, Tree, parse_value};

const WIDE: Limits = Limits { bytes: usize::MAX, depth: usize::MAX };

/// Parses any value within the widest limits.
#[track_caller]
fn read(text: &str) -> Tree<'_> {
    parse_value(text, &WIDE).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[track_caller]
fn refusal(text: &str) -> ParseErrorKind {
    match parse_value(text, &WIDE) {
        Ok(_) => panic!("{text} was accepted"),
        Err(error) => error.kind,
    }
}
