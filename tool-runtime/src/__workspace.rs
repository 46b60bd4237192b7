//! Items that the corpora and fuzz targets of this workspace use directly. Not part of the API.

pub use crate::hydrate::repair::BUILT_IN as REPAIRERS;
pub use crate::json::{Limits, ParseErrorKind, Tree, parse, parse_value};
pub use crate::redact::Projector;
pub use crate::schema::review::{review, review_text};
pub use crate::schema::subset::is_subset;
