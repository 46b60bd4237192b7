//! The errors of reading a policy, and messages about names in it that do not exist.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::error::{BuildError, Problem};
use crate::text::nearest;

/// The reason why a policy cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolicyErrorKind {
    /// The file does not exist.
    Missing,
    /// The file cannot be read.
    Unreadable,
    /// The file's name ends in neither `.toml` nor `.json`, or the policy is TOML in a build without the feature
    /// `toml`.
    Format,
    /// The text is not UTF-8.
    NotUtf8,
    /// The text is not TOML or not JSON.
    Syntax,
    /// A key is unknown.
    UnknownKey,
    /// A value has the wrong type.
    WrongType,
    /// A value has the right type, but is invalid.
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

    /// Returns the error of this kind. `place` is a line and a column.
    pub(super) fn error(self, place: Option<(usize, usize)>, message: String) -> BuildError {
        Problem::unread(self.code(), place, message).into()
    }
}

/// Returns the message about a tool that does not exist, and the nearest name. If the namespace has no tools, the first
/// message about it adds the likely cause: the program uses nothing of the crate with the tools, so it is not linked.
pub(super) fn missing_tool<'a>(
    name: &str,
    tools: impl Iterator<Item = &'a str>,
    unlinked: &mut BTreeSet<String>,
) -> (String, Option<String>) {
    let tools: Vec<_> = tools.collect();
    let mut message = format!("there is no tool `{name}`");
    let nearest = nearest(name, tools.iter().copied()).map(str::to_owned);
    if let Some((namespace, _)) = name.split_once("__")
        && nearest.is_none()
        && !tools.iter().any(|tool| tool.split_once("__").is_some_and(|(other, _)| other == namespace))
        && unlinked.insert(namespace.to_owned())
    {
        let _ = write!(
            message,
            "; no tool of the namespace `{namespace}` is linked: write `use my_tools as _;` for the crate that has them"
        );
    }
    (message, nearest)
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
