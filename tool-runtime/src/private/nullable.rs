//! Arguments that distinguish `null` from absence.

use serde::{Deserialize, Deserializer};

/// Reads a value that is present: `null` becomes `Some(None)`. Absence is the default of the field.
///
/// # Errors
/// The value is not a `T`.
pub fn nullable<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Some)
}
