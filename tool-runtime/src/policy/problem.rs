//! Errors of a policy: [`PolicyError`] when it is read, [`PolicyProblem`] against a catalog.

use crate::text::nearest;
use std::fmt;
use std::path::{Path, PathBuf};

/// A policy that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    kind: PolicyErrorKind,
    file: Option<PathBuf>,
    place: Option<(usize, usize)>,
    message: String,
}

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

impl PolicyError {
    pub(super) fn new(kind: PolicyErrorKind, place: Option<(usize, usize)>, message: String) -> Self {
        Self { kind, file: None, place, message }
    }

    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Line and column, both from 1.
    #[must_use]
    pub const fn place(&self) -> Option<(usize, usize)> {
        self.place
    }

    /// A stable word for each case.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self.kind {
            PolicyErrorKind::Missing => "policy_missing",
            PolicyErrorKind::Unreadable => "policy_unreadable",
            PolicyErrorKind::Format => "policy_format",
            PolicyErrorKind::NotUtf8 => "policy_not_utf8",
            PolicyErrorKind::Syntax => "policy_syntax",
            PolicyErrorKind::UnknownKey => "policy_unknown_key",
            PolicyErrorKind::WrongType => "policy_wrong_type",
            PolicyErrorKind::Value => "policy_value",
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.place) {
            (Some(file), Some((line, column))) => write!(f, "{}:{line}:{column}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some((line, column))) => write!(f, "policy, line {line}, column {column}: ")?,
            (None, None) => f.write_str("policy: ")?,
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for PolicyError {}

impl PolicyProblem {
    pub(crate) fn new(path: String, message: String) -> Self {
        Self { path, message, nearest: None }
    }

    /// Adds a problem for a name that does not exist.
    pub(super) fn unknown<'a>(
        of: &str,
        path: String,
        name: &str,
        is_known: bool,
        names: impl Iterator<Item = &'a str>,
        problems: &mut Vec<Self>,
    ) {
        if !is_known {
            let nearest = nearest(name, names).map(str::to_owned);
            problems.push(Self { nearest, ..Self::new(path, format!("there is no {of} `{name}`")) });
        }
    }
}

/// A place where a policy does not fit a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyProblem {
    /// Its place in the policy, for example `budgets.tools.core__add`.
    pub path: String,
    /// The problem and what to write instead.
    pub message: String,
    /// The nearest name that exists.
    pub nearest: Option<String>,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy, `{}`: {}", self.path, self.message)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}
