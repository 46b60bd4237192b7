//! [`NameLookup`]: the application's readable names for argument values, such as ids.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::ToolError;

/// Looks up a readable name for an argument value of a call that waits for a person: for example, the title of a task
/// for the task's id.
///
/// Implementations need `#[async_trait]` of the `async-trait` crate. Bind the look-up to an argument with
/// [`RunnerBuilder::names`](crate::runner::RunnerBuilder::names). It runs when a call is suspended, for at most eight
/// values, with a limit of two seconds for all of them. The name is stored with the waiting call and shown next to the
/// value; it does not become part of the arguments. A failed or slow look-up does not stop the call, and delays it by
/// two seconds at most. The look-up runs again before the approved call begins. If the name has changed, the approval
/// does not count ([`DecisionError::World`](crate::call::DecisionError::World)).
///
/// The arguments come from a model. Return only names that the principal and the tenant of the request may see, and
/// change nothing.
///
/// ```
/// use async_trait::async_trait;
/// use tool_runtime::ToolError;
/// use tool_runtime::capability::{NameLookup, NameRequest};
///
/// struct Tasks;
///
/// #[async_trait]
/// impl NameLookup for Tasks {
///     async fn name(&self, request: &NameRequest<'_>) -> Result<Option<String>, ToolError> {
///         let known = request.tenant == Some("acme") && request.value == "t-1";
///         Ok(known.then(|| "Buy milk".to_owned()))
///     }
/// }
/// ```
#[async_trait]
pub trait NameLookup: Send + Sync {
    /// Returns the name, of which a person sees at most 80 characters. `None` if the value has no name that the
    /// principal may see.
    ///
    /// # Errors
    /// The look-up failed. The person sees that the name is not available, and operators read the error.
    async fn name(&self, request: &NameRequest<'_>) -> Result<Option<String>, ToolError>;
}

/// A request for the readable name of an argument value, with the principal and the tenant of the run.
///
/// [`NameLookup`] has an example.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct NameRequest<'a> {
    /// The tool of the call.
    pub tool: &'a str,
    /// The argument, as the schema names it.
    pub argument: &'a str,
    /// The value: a string as it is, a number as JSON writes it.
    pub value: &'a str,
    /// The principal that the run acts for; `None` if the run names none.
    pub principal: Option<&'a str>,
    /// The tenant of the run; `None` if the run names none.
    pub tenant: Option<&'a str>,
}

// The value comes from the arguments.
impl fmt::Debug for NameRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameRequest")
            .field("tool", &self.tool)
            .field("argument", &self.argument)
            .field("principal", &self.principal)
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl<L: NameLookup + ?Sized> NameLookup for Arc<L> {
    async fn name(&self, request: &NameRequest<'_>) -> Result<Option<String>, ToolError> {
        (**self).name(request).await
    }
}
