//! The problems of a policy: when it is read, and against a catalog.

use crate::error::{BuildError, Problem};
use crate::text::nearest;

/// Why a policy cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyErrorKind {
    /// The file does not exist.
    Missing,
    /// The file cannot be read.
    Unreadable,
    /// The file's name ends in neither `.toml` nor `.json`.
    Format,
    /// The text is not UTF-8.
    NotUtf8,
    /// The text is not TOML or not JSON.
    Syntax,
    /// A key that policies do not have.
    UnknownKey,
    /// A value of another type.
    WrongType,
    /// A value of the right type that makes no sense there.
    Value,
}

impl PolicyErrorKind {
    const fn code(self) -> &'static str {
        match self {
            Self::Missing => "policy_missing",
            Self::Unreadable => "policy_unreadable",
            Self::Format => "policy_format",
            Self::NotUtf8 => "policy_not_utf8",
            Self::Syntax => "policy_syntax",
            Self::UnknownKey => "policy_unknown_key",
            Self::WrongType => "policy_wrong_type",
            Self::Value => "policy_value",
        }
    }

    /// The error of this kind, with its line and column.
    pub(super) fn error(self, place: Option<(usize, usize)>, message: String) -> BuildError {
        Problem::unread(self.code(), place, message).into()
    }
}

/// Adds a problem for a name that does not exist.
pub(super) fn unknown<'a>(
    of: &str,
    path: String,
    name: &str,
    is_known: bool,
    names: impl Iterator<Item = &'a str>,
    problems: &mut Vec<Problem>,
) {
    if !is_known {
        let nearest = nearest(name, names).map(str::to_owned);
        problems.push(Problem::policy(path, format!("there is no {of} `{name}`")).with_nearest(nearest));
    }
}
