//! What the corpora and fuzz targets of this workspace score directly. Not part of the API.

pub use crate::json::{Limits, ParseErrorKind, Tree, parse, parse_value};
pub use crate::redact::Projector;
pub use crate::schema::{is_subset, review, review_text};
