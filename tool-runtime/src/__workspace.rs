//! What the corpora and fuzz targets of this workspace score directly. Not part of the API.

pub use crate::catalog::pick::Index;
pub use crate::hydrate::repair::BUILT_IN as REPAIRERS;
pub use crate::json::{Limits, ParseErrorKind, Tree, parse, parse_value};
pub use crate::redact::Projector;
pub use crate::schema::review::{review, review_text};
pub use crate::schema::subset::is_subset;
use crate::store::verify::VerifyError;

/// A tool that is looked at and never run, under the name of its definition, with or without a namespace.
pub fn foreign(tool: crate::registration::DynamicTool) -> crate::registration::DynamicTool {
    tool.foreign()
}

/// Verifies everything that a store holds, with anchors that were exported from it. Returns how many records, runs,
/// anchors, and runs with records after their last anchor it has.
///
/// # Errors
/// Each finding: its code, and the place of a record in the chain of its run. A store that cannot be reached is one
/// finding with the code of its error.
pub async fn verify(
    store: &dyn crate::store::Store,
    exported: &[crate::store::Anchor],
) -> Result<[u64; 4], Vec<(&'static str, Option<u64>)>> {
    match crate::store::verify::verify(store, exported, |_| {}).await {
        Ok(checked) => Ok([checked.records, checked.runs, checked.anchors, checked.unanchored]),
        Err(VerifyError::Found(found)) => {
            Err(found.iter().map(|found| (found.code(), found.record().map(|(_, place)| place))).collect())
        }
        Err(VerifyError::Store(error)) => Err(vec![(error.code(), None)]),
    }
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
