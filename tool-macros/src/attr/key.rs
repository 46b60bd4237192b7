//! [`Key`]: one key of an attribute, which may be absent, unreadable or present.

use proc_macro2::Ident;

use crate::attr::{Piece, duplicate_key};
use crate::errors::Errors;

/// One key. A key with an unreadable value is not reported as missing, because its mistake has already been reported.
#[derive(Default)]
pub(crate) enum Key<T> {
    #[default]
    Absent,
    Unreadable,
    Given(Ident, T),
}

impl<T> Key<T> {
    /// Reads the key from a piece of the attribute. Reports a second piece with the same key.
    pub(crate) fn read(
        &mut self,
        piece: &Piece,
        errors: &mut Errors,
        value: impl FnOnce(&Piece, &mut Errors) -> Option<T>,
    ) {
        if !self.is_absent() {
            return duplicate_key(piece, errors);
        }
        *self = match value(piece, errors) {
            Some(value) => Self::Given(piece.key.clone(), value),
            None => Self::Unreadable,
        };
    }

    /// Marks a key that was written with a typo, so that it is not also reported as missing.
    pub(crate) fn misspelt(&mut self) {
        if self.is_absent() {
            *self = Self::Unreadable;
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    pub(crate) fn value(&self) -> Option<&T> {
        self.given().map(|(_, value)| value)
    }

    pub(crate) fn key(&self) -> Option<&Ident> {
        self.given().map(|(key, _)| key)
    }

    pub(crate) fn given(&self) -> Option<(&Ident, &T)> {
        match self {
            Self::Given(key, value) => Some((key, value)),
            Self::Absent | Self::Unreadable => None,
        }
    }

    pub(crate) fn into_value(self) -> Option<T> {
        match self {
            Self::Given(_, value) => Some(value),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

impl Key<()> {
    /// Reads a key without a value.
    pub(crate) fn flag(&mut self, piece: &Piece, errors: &mut Errors) {
        self.read(piece, errors, |piece, errors| piece.flag(errors).then_some(()));
    }
}
