//! Rules that a schema cannot express: ids need evidence, and an update must name something to change.

mod evidence;

pub(crate) use evidence::EvidenceSet;
pub(super) use evidence::{ASK, WithoutEvidence, check_evidence, list_with};

use crate::call::Violation;
use crate::json::Tree;

/// Refuses arguments that contain none of the named ones. A `null` argument is treated as absent.
#[must_use]
pub(crate) fn check_require_any<S: AsRef<str>>(arguments: &Tree<'_>, names: &[S]) -> Option<Violation> {
    let given = |name: &S| arguments.get(name.as_ref()).is_some_and(|value| !value.is_null());
    if names.is_empty() || names.iter().any(given) {
        return None;
    }
    let names: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    Some(Violation::new("", "require_any", format!("at least one of {}", names.join(", "))))
}

#[cfg(test)]
mod tests;
