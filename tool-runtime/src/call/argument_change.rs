//! [`ArgumentChange`]: what differs between two readings of one call's arguments.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One place where the arguments of a call changed, as a person may see it: a sensitive value is masked on both sides.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ArgumentChange {
    /// The place, as a JSON Pointer.
    pub pointer: String,
    /// What was there; `None` if it was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Arc<RawValue>>,
    /// What is there now; `None` if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Arc<RawValue>>,
}

impl ArgumentChange {
    pub(crate) const fn new(pointer: String, before: Option<Arc<RawValue>>, after: Option<Arc<RawValue>>) -> Self {
        Self { pointer, before, after }
    }
}

/// As a line for a person: `/pages: (left out) -> 1`.
impl fmt::Display for ArgumentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Arc<RawValue>>| value.as_ref().map_or("(left out)".to_owned(), ToString::to_string);
        write!(f, "{}: {} -> {}", self.pointer, shown(&self.before), shown(&self.after))
    }
}

// Values of arguments stay out of logs.
impl fmt::Debug for ArgumentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentChange").field("pointer", &self.pointer).finish_non_exhaustive()
    }
}
