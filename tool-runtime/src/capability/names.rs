//! [`NameLookup`]: the application's names for values among the arguments.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::ToolError;

/// Looks up the name of a value among the arguments of a call that waits for a person: the title of the task behind an
/// id, for example.
///
/// Implementations need `#[async_trait]` of the `async-trait` crate. Bound to an argument with
/// [`RunnerBuilder::names`](crate::runner::RunnerBuilder::names), it runs when a call is suspended, for at most eight
/// values, all of them within two seconds. The name is stored with the waiting call and shown next to the value, as
/// looked up. It is not part of the arguments. A look-up that fails or takes too long does not stop the call; it delays
/// the call by two seconds at most. It runs again before the approved call begins: if the name is then a different one,
/// the approval does not count ([`DecisionError::World`](crate::call::DecisionError::World)).
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
    /// Returns the name; `None` if the value has none, or none that the principal may see. A person sees at most 80
    /// characters of it.
    ///
    /// # Errors
    /// The look-up failed. The person sees that the name is not available, and operators read the error.
    async fn name(&self, request: &NameRequest<'_>) -> Result<Option<String>, ToolError>;
}

/// A request for the name of a value, with the principal and the tenant that it is for.
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
    /// The principal that the run acts for.
    pub principal: Option<&'a str>,
    /// The tenant of the run.
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
