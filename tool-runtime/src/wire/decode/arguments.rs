//! [`Piece`]: the arguments of a call, or a piece of them, in one frame (rule R7 of `wire`).

use std::borrow::Cow;

use crate::wire::decode::cursor::{Invalid, Json};
use crate::wire::decode::fields::Field;
use crate::wire::decode::turn::Writer;

/// One piece of arguments (R7).
#[derive(Default)]
pub(crate) enum Piece<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Object(&'a str),
}

impl<'a> Field<'a> for Piece<'a> {
    fn read(&mut self, json: &mut Json<'a>) -> Result<(), Invalid> {
        *self = match json.peek() {
            b'"' => {
                let start = json.clone();
                json.string().map(Self::Text).or_else(|_| {
                    // Half a surrogate pair: no Rust string can hold it, so the JSON text is kept; it will not parse.
                    *json = start;
                    json.raw().map(|raw| Self::Text(Cow::Borrowed(raw)))
                })?
            }
            b'{' => json.raw().map(Self::Object)?,
            b'n' => {
                json.skip()?;
                Self::Nothing
            }
            // Other JSON types are kept as their text, so that the status can name them.
            _ => Self::Text(Cow::Borrowed(json.raw()?)),
        };
        Ok(())
    }
}

impl Piece<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Text(text) => text.is_empty(),
            Self::Object(_) => false,
        }
    }

    /// Whether this piece begins an object.
    pub(crate) fn begins(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Text(text) => text.trim_start().starts_with('{'),
            Self::Object(_) => true,
        }
    }

    /// Like [`Piece::add`], but replaces the earlier pieces (S2).
    pub(crate) fn replace(&self, call: usize, turn: &mut Writer<'_>) {
        match self {
            Self::Text(text) => turn.replace_text(call, text),
            // If deltas sent the arguments as text, the object that follows repeats them.
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
