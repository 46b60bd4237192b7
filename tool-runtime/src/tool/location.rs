//! [`Location`]: the place of a tool in its source.

use std::fmt;

/// The place of a tool in its author's source. Formats as `file:line:column`, like messages of the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Location {
    /// The crate, as Rust paths spell it.
    pub krate: &'static str,
    /// The module path, with the crate.
    pub module: &'static str,
    /// The path of the file, as the compiler received it.
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
