//! The kinds of problems that prevent the build of a catalog.

use crate::error::{BuildError, Problem};
use crate::tool::Location;

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatalogProblemKind {
    /// No tool was collected, or none of a crate or a namespace that a filter names.
    Empty,
    /// A name is not legal.
    Name,
    /// Two names are the same or look the same, or two sources of tools have the same prefix.
    Collision,
    /// A schema cannot be used.
    Schema,
    /// An allowlist does not fit its schema, names `$media` although the tool returns no files, or names `$error`
    /// although no MCP server publishes the tool.
    Redaction,
    /// A capability has a stronger effect than the tool declares.
    Effect,
    /// The description is empty.
    Description,
    /// A rule names an argument that does not exist, or the effect key (`once`) does not fit the tool or its arguments.
    Argument,
    /// The sentence for deciders (`summary`) cannot be written.
    Summary,
    /// An argument's evidence comes from a tool that does not exist or shows nothing, or the argument's type cannot
    /// have evidence.
    Evidence,
    /// The declaration does not fit the place where the tool is executed.
    Execution,
    /// A graph (an agent or a script that runs as a tool) names a tool that it cannot use, names no tool, or has no
    /// version.
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

    /// Returns a problem of this kind, with the places to edit.
    pub(crate) fn problem(self, message: impl Into<String>, locations: impl IntoIterator<Item = Location>) -> Problem {
        Problem::of(self.as_str(), message, locations)
    }
}

/// Gathers the problems of one tool.
pub(super) struct Problems<'p> {
    pub(super) tool: String,
    pub(super) location: Option<Location>,
    pub(super) found: &'p mut Vec<Problem>,
}

impl Problems<'_> {
    pub(super) fn add(&mut self, kind: CatalogProblemKind, message: &str) {
        self.found.push(kind.problem(format!("`{}`: {message}", self.tool), self.location));
    }

    pub(super) fn definition(&mut self, error: &BuildError) {
        for problem in error.problems() {
            match problem.code() {
                "name" => self.add(CatalogProblemKind::Name, problem.message()),
                _ => self.add(CatalogProblemKind::Schema, &format!("schema of the {problem}")),
            }
        }
    }
}
