//! [`Piece`]: arguments, or a piece of them, as a frame carries them (R7).

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
                    // Half a surrogate pair: no string can hold it, so the text is kept as written and does not parse.
                    *json = start;
                    json.raw().map(|raw| Self::Text(Cow::Borrowed(raw)))
                })?
            }
            b'{' => json.raw().map(Self::Object)?,
            b'n' => {
                json.skip()?;
                Self::Nothing
            }
            // Another JSON type is kept as its text, so that the status can name it.
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

    /// Whether arguments begin with it.
    pub(crate) fn begins(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Text(text) => text.trim_start().starts_with('{'),
            Self::Object(_) => true,
        }
    }

    /// Like [`Piece::add`], but replaces what came before (S2).
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
