//! The masked form of frozen arguments, for records, events and approvals.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::json::{self, Tree};
use crate::redact;

/// The arguments with the sensitive ones masked. Without sensitive ones it is the frozen text itself.
pub(super) fn masked(tree: &Tree<'_>, frozen: &str, sensitive: &[String]) -> Arc<RawValue> {
    if sensitive.is_empty()
        && let Some(raw) = json::raw(frozen)
    {
        return raw.into();
    }
    redact::mask_arguments(tree, sensitive).into()
}
