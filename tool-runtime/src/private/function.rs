//! Function tools: the values that they borrow, and their form as components.
//!
//! Each bound on the types that a function borrows and returns is asserted in one place, so that a mistake is one
//! error.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::capability::{Capabilities, Requirement};
use crate::component::bindings::Bound;
use crate::component::list::sealed;
use crate::component::{Bindings, Call, CapabilityList, Precondition, ToolComponent, ToolOutput};
use crate::error::{IntoToolError, ToolError};
use crate::private::output::ToolReturn;

/// The struct of arguments that the macro generates for a function tool. Only the macro implements it.
pub trait FnTool: Sized + Send + 'static {
    /// The return type as written.
    type Return: ToolReturn<Error: IntoToolError>;
    /// The requirement of each borrowed parameter, in order.
    const REQUIREMENTS: &'static [fn() -> Requirement] = &[];

    /// Calls the author's function; `None` if a borrowed value is missing or has another type.
    fn call(self, borrowed: Borrowed<Self>) -> impl Future<Output = Option<Self::Return>> + Send;

    /// Whether the attribute has the key `precondition`.
    const STATES: bool = false;

    /// Calls the author's precondition.
    fn precondition(
        self,
        capabilities: Capabilities,
    ) -> impl Future<Output = Result<Precondition, ToolError>> + Send + 'static {
        let _ = capabilities;
        Precondition::silent()
    }
}

// The bound on the output is here and not in the trait, where its supertraits would be reported one by one.
impl<T: FnTool> ToolComponent for T
where
    <T::Return as ToolReturn>::Output: ToolOutput,
{
    type Capabilities = Borrowed<T>;
    type Output = <T::Return as ToolReturn>::Output;

    async fn run(self, borrowed: Borrowed<T>, _: &Call<Self>) -> Result<Self::Output, ToolError> {
        ended(self.call(borrowed).await)
    }

    fn precondition(
        self,
        capabilities: Capabilities,
    ) -> impl Future<Output = Result<Precondition, ToolError>> + Send + 'static {
        FnTool::precondition(self, capabilities)
    }
}

/// Compiled once for each return type, not for each function.
fn ended<R: ToolReturn<Error: IntoToolError>>(value: Option<R>) -> Result<R::Output, ToolError> {
    match value {
        Some(value) => returned(value),
        None => Err(ToolError::internal("a capability that the tool borrows is bound to another type")),
    }
}

/// Converts the return value of a function or a method of a tool.
///
/// # Errors
/// The error of the tool.
pub fn returned<R: ToolReturn<Error: IntoToolError>>(value: R) -> Result<R::Output, ToolError> {
    value.into_result().map_err(IntoToolError::into_tool_error)
}

/// The future of a function that is not `async`: polling it calls the function.
#[derive(Debug)]
pub struct Called<F>(Option<F>);

// `poll` moves the function out and never pins it.
impl<F> Unpin for Called<F> {}

impl<R, F: FnOnce() -> R> Future for Called<F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        self.0.take().map_or(Poll::Pending, |function| Poll::Ready(function()))
    }
}

/// Returns a future that calls a function that is not `async`. An `async` block would add a state machine for each
/// tool.
pub const fn call<R, F: FnOnce() -> R>(function: F) -> Called<F> {
    Called(Some(function))
}

/// The values that the function tool `T` borrows. They are not typed here, so that only
/// [`BorrowProbe`](super::BorrowProbe) reports a type that cannot be injected.
pub struct Borrowed<T> {
    values: Vec<Bound>,
    tool: PhantomData<fn() -> T>,
}

impl<T> Borrowed<T> {
    /// Returns the borrowed parameter at a position. `None` if there is none, or if it has another type.
    #[must_use]
    pub fn get<C: ?Sized + 'static>(&self, position: usize) -> Option<&C> {
        self.values.get(position)?.get::<Arc<C>>().map(|value| &**value)
    }
}

impl<T: FnTool> sealed::List for Borrowed<T> {}

impl<T: FnTool> CapabilityList for Borrowed<T> {
    const MAY_RECONCILE: bool = false;
    const MAY_STATE: bool = T::STATES;

    fn requirements() -> Vec<Requirement> {
        required(T::REQUIREMENTS)
    }

    fn bind(bindings: &Bindings<'_>) -> Option<Self> {
        Some(Self { values: bind(T::REQUIREMENTS, bindings)?, tool: PhantomData })
    }
}

// The bodies of `requirements` and `bind`, which are compiled once for all tools.

fn required(requirements: &[fn() -> Requirement]) -> Vec<Requirement> {
    requirements.iter().map(|requirement| requirement()).collect()
}

fn bind(requirements: &[fn() -> Requirement], bindings: &Bindings<'_>) -> Option<Vec<Bound>> {
    requirements.iter().map(|requirement| bindings.find(requirement().type_id)).collect()
}

impl<T> fmt::Debug for Borrowed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Borrowed(..)")
    }
}
