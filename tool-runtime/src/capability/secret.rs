//! [`Secret`]: a value that cannot be serialised, described by a schema, or printed.

use std::fmt;

/// A credential or another value that must stay inside the process.
///
/// It implements neither `Serialize` nor `JsonSchema`, so a tool whose output contains a secret does not compile. Its
/// `Debug` output does not contain the value.
///
/// ```
/// use tool_runtime::Secret;
///
/// let token = Secret::new("hunter2".to_owned());
/// assert_eq!(format!("{token:?}"), "Secret(..)");
/// assert_eq!(token.expose(), "hunter2");
/// ```
#[derive(Clone)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value, for the adapter that needs it.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
