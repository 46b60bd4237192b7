//! [`Cap`]: the one wrapper around everything that is injected.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A capability as a tool holds it. Only the runner makes one.
pub struct Cap<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Cap<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Self(value)
    }
}

impl<T: ?Sized> Deref for Cap<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> fmt::Debug for Cap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cap(..)")
    }
}
