//! [`Piece`]: arguments, or a part of them, as a frame carries them (R7).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::assemble::Writer;

/// R7: one piece of arguments.
pub(crate) enum Piece<'a> {
    Nothing,
    Text(Cow<'a, str>),
    Object(&'a str),
}

impl<'a> Piece<'a> {
    pub(crate) fn read(raw: Option<&'a RawValue>) -> Self {
        let Some(raw) = raw.map(RawValue::get) else { return Self::Nothing };
        match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<Borrowed<'a>>(raw)
                .map_or(Self::Text(Cow::Borrowed(raw)), |text| Self::Text(text.0)),
            Some(b'{') => Self::Object(raw),
            // Another JSON type is kept as its text, so that the status can say what it is.
            _ => Self::Text(Cow::Borrowed(raw)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Text(text) => text.is_empty(),
            Self::Object(_) => false,
        }
    }

    /// S2: like [`Piece::add`], but in place of what came before.
    pub(crate) fn replace(&self, call: usize, turn: &mut Writer<'_>) {
        match self {
            Self::Text(text) => turn.replace_text(call, text),
            // Text of deltas stays when an object follows it: both are the same arguments.
            Self::Object(object) if !turn.has_arguments(call) => turn.object(call, object),
            Self::Nothing | Self::Object(_) => {}
        }
    }

    pub(crate) fn add(&self, call: usize, turn: &mut Writer<'_>) {
        match self {
            Self::Nothing => {}
            Self::Text(text) => turn.append_text(call, text),
            Self::Object(object) => turn.object(call, object),
        }
    }
}

// A newtype, because serde borrows into a `Cow` only where a field says so.
#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
