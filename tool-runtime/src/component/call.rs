//! [`Call`]: the context of one call, with the type of its tool.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use crate::call::ToolContext;

/// The context of one call of the tool `T`. It can run that tool and no other, and dereferences to [`ToolContext`].
///
/// ```
/// use tool_runtime::{Call, ToolError, tool};
///
/// /// The run of this call.
/// #[tool(name = "core__run", effect = read_only, redact = ["$"])]
/// struct RunId {}
///
/// #[tool]
/// impl RunId {
///     async fn run(self, call: &Call<Self>) -> Result<String, ToolError> {
///         Ok(call.run_id().to_owned())
///     }
/// }
/// ```
pub struct Call<T> {
    context: ToolContext,
    tool: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    pub(crate) fn new(context: ToolContext) -> Self {
        Self { context, tool: PhantomData }
    }
}

impl<T> Deref for Call<T> {
    type Target = ToolContext;

    fn deref(&self) -> &ToolContext {
        &self.context
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.context.fmt(f)
    }
}
