//! [`CatalogError`]: everything that keeps tools from becoming a catalog, at once.

use std::fmt;

use crate::schema::SchemaProblem;
use crate::tool::{Location, ToolName};

/// One problem, with the places to edit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CatalogProblem {
    /// A stable word: `empty`, `name`, `collision`, `schema`, `redaction`, `effect`, `description`, `argument`.
    pub code: &'static str,
    /// What is wrong, and what to write.
    pub message: String,
    /// Where: both sites of a collision; none for dynamic tools.
    pub locations: Vec<Location>,
}

impl CatalogProblem {
    pub(super) fn new(code: &'static str, message: impl Into<String>, location: Option<Location>) -> Self {
        Self { code, message: message.into(), locations: location.into_iter().collect() }
    }

    pub(super) fn schema(name: &ToolName, of: &str, problem: &SchemaProblem, location: Option<Location>) -> Self {
        Self::new("schema", format!("`{name}`: schema of the {of}: {problem}"), location)
    }
}

impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.locations.iter().try_for_each(|location| write!(f, "\n  at {location}"))
    }
}

/// Why there is no catalog: all problems together.
#[derive(Debug, Clone)]
pub struct CatalogError {
    problems: Vec<CatalogProblem>,
}

impl CatalogError {
    pub(super) fn new(problems: Vec<CatalogProblem>) -> Self {
        Self { problems }
    }

    /// The problems, in the order of the tools' names.
    #[must_use]
    pub fn problems(&self) -> &[CatalogProblem] {
        &self.problems
    }

    /// The code of the first problem.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.problems.first().map_or("catalog", |problem| problem.code)
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.problems.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for CatalogError {}
