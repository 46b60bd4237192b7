//! [`Location`]: where a tool is written.

use std::fmt;

/// Where a tool is written in its author's sources. Formats as `file:line:column`, as in messages of the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Location {
    /// The crate, as Rust paths spell it.
    pub krate: &'static str,
    /// The module path, with the crate.
    pub module: &'static str,
    /// The file, as its path was given to the compiler.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
