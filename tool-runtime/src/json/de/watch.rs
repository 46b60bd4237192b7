//! Records the names that derived `serde` types use while they parse. A test compares these names with the schema.

use std::cell::{Cell, RefCell};
use std::ptr;

use crate::json::Tree;

/// The names of one struct or enum, and the address of the value that it parsed.
pub(crate) struct Stated {
    pub(crate) value: usize,
    pub(crate) names: &'static [&'static str],
    pub(crate) is_enum: bool,
}

thread_local! {
    static STATED: Cell<Option<Vec<Stated>>> = const { Cell::new(None) };
}

/// Runs `parse`, and collects the names that are used on this thread during the call.
pub(crate) fn during<T>(into: &RefCell<Vec<Stated>>, parse: impl FnOnce() -> T) -> T {
    STATED.set(Some(Vec::new()));
    let parsed = parse();
    into.replace(STATED.take().unwrap_or_default());
    parsed
}

pub(super) fn note(value: &Tree<'_>, names: &'static [&'static str], is_enum: bool) {
    if let Some(mut stated) = STATED.take() {
        stated.push(Stated { value: ptr::from_ref(value).addr(), names, is_enum });
        STATED.set(Some(stated));
    }
}
