//! Where in an author's sources a tool is written.

use std::fmt;

/// The source location of a registration, as compiler messages write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The crate, as Rust paths spell it.
    pub krate: &'static str,
    /// The module path, the crate included.
    pub module: &'static str,
    /// The file, relative as the compiler was given it.
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
