//! [`Cap`]: the wrapper around a capability, a connection or a context that the runner injects.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A capability that the runner injects into a struct tool. It dereferences to `T`. Only the runner can create it.
///
/// ```
/// use tool_runtime::{Call, Cap, ToolComponent, ToolError, capability, tool};
///
/// /// Reads the time.
/// #[capability(effect = read_only)]
/// trait Clock { fn now(&self) -> i64; }
///
/// /// Seconds since 1970.
/// #[tool(name = "core__now", effect = read_only, redact = ["$"])]
/// struct Now {}
///
/// impl ToolComponent for Now {
///     type Capabilities = (Cap<dyn Clock>,);
///     type Output = i64;
///
///     async fn run(self, (clock,): Self::Capabilities, _: &Call<Self>) -> Result<i64, ToolError> {
///         Ok(clock.now())
///     }
/// }
/// ```
pub struct Cap<T: ?Sized>(Arc<T>);

/// Wraps a bound value. This is not an associated function, because the compiler would suggest one to users.
pub(crate) fn bound<T: ?Sized>(value: Arc<T>) -> Cap<T> {
    Cap(value)
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
