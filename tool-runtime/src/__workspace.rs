//! What the corpora and fuzz targets of this workspace score directly. Not part of the API.

pub use crate::catalog::pick::Index;
pub use crate::hydrate::repair::BUILT_IN as REPAIRERS;
pub use crate::json::{Limits, ParseErrorKind, Tree, parse, parse_value};
pub use crate::redact::Projector;
pub use crate::schema::review::{review, review_text};
pub use crate::schema::subset::is_subset;

/// A tool that is looked at and never run, under the name of its definition, with or without a namespace.
pub fn foreign(tool: crate::registration::DynamicTool) -> crate::registration::DynamicTool {
    tool.foreign()
}

/// A text as the command line shows it on a terminal.
#[cfg(feature = "cli")]
#[must_use]
pub fn shown(text: &str) -> String {
    crate::cli::safe(text)
}

/// Hydrates the calls on standard input against the definitions of a file, as the command line does.
///
/// # Errors
/// The file or the input cannot be read.
#[cfg(feature = "cli")]
pub fn hydrate(tools: &std::path::Path) -> Result<(), String> {
    crate::cli::hydrate(tools, "-".as_ref()).map(drop).map_err(|failure| failure.message)
}
