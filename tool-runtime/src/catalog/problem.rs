//! [`CatalogError`]: all the problems that prevent a catalog.

use std::fmt;

use crate::registration::DefinitionError;
use crate::tool::Location;

/// One problem, with the places to edit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CatalogProblem {
    pub(crate) kind: CatalogProblemKind,
    /// The problem, and what to write instead.
    pub message: String,
    /// The places: both sites of a collision; empty for dynamic tools.
    pub locations: Vec<Location>,
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatalogProblemKind {
    /// No tool was collected, or none of a crate that a filter names.
    Empty,
    /// A name is not legal.
    Name,
    /// Two names are the same, or look the same.
    Collision,
    /// A schema cannot be used.
    Schema,
    /// An allowlist does not fit its schema.
    Redaction,
    /// A capability reaches further than the tool declares.
    Effect,
    /// The description is empty.
    Description,
    /// A rule names an argument that does not exist.
    Argument,
    /// A sentence for the person who decides cannot be written.
    Summary,
    /// An argument's evidence comes from a tool that does not exist.
    Evidence,
    /// A tool that a server executes is declared as one of the client.
    Execution,
    /// A graph names a tool that it cannot have, or none.
    Graph,
}

impl CatalogProblemKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Name => "name",
            Self::Collision => "collision",
            Self::Schema => "schema",
            Self::Redaction => "redaction",
            Self::Effect => "effect",
            Self::Description => "description",
            Self::Argument => "argument",
            Self::Summary => "summary",
            Self::Evidence => "evidence",
            Self::Execution => "execution",
            Self::Graph => "graph",
        }
    }
}

impl CatalogProblem {
    pub(crate) fn new(kind: CatalogProblemKind, message: impl Into<String>, location: Option<Location>) -> Self {
        Self { kind, message: message.into(), locations: location.into_iter().collect() }
    }

    /// Returns the stable word for the kind of the problem: `empty`, `name`, `collision`, `schema`, `redaction`,
    /// `effect`, `description`, `argument`, `summary`, `evidence`, `execution` or `graph`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.kind.as_str()
    }
}

impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.locations.iter().try_for_each(|location| write!(f, "\n  at {location}"))
    }
}

/// Gathers the problems of one tool.
pub(super) struct Problems<'p> {
    pub(super) tool: String,
    pub(super) location: Option<Location>,
    pub(super) found: &'p mut Vec<CatalogProblem>,
}

impl Problems<'_> {
    pub(super) fn add(&mut self, kind: CatalogProblemKind, message: &str) {
        self.found.push(CatalogProblem::new(kind, format!("`{}`: {message}", self.tool), self.location));
    }

    pub(super) fn definition(&mut self, error: DefinitionError) {
        if let Some(name) = error.name {
            self.add(CatalogProblemKind::Name, &name.to_string());
        }
        for (of, found) in [("arguments", error.input), ("output", error.output)] {
            for problem in found {
                self.add(CatalogProblemKind::Schema, &format!("schema of the {of}: {problem}"));
            }
        }
    }
}

/// Why no catalog was built: all problems together.
#[derive(Debug, Clone)]
pub struct CatalogError {
    problems: Vec<CatalogProblem>,
}

impl CatalogError {
    pub(crate) fn new(problems: Vec<CatalogProblem>) -> Self {
        Self { problems }
    }

    /// The problems, in the order of the tools' names.
    #[must_use]
    pub fn problems(&self) -> &[CatalogProblem] {
        &self.problems
    }

    /// The stable word for the kind of the first problem.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.problems.first().map_or("catalog", CatalogProblem::code)
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.problems.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for CatalogError {}
