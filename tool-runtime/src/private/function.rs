//! A function tool: what it borrows, and how it becomes a component.
//!
//! The bounds on what a function borrows and returns are asked in one place each, so that a mistake is one error.

use std::future::Future;
use std::marker::PhantomData;

use crate::__private1::output::ToolReturn;
use crate::capability::Requirement;
use crate::capability::injected::{Injected, Within};
use crate::component::list::{self, Lend};
use crate::component::{Bindings, Call, CapabilityList, ToolComponent, ToolOutput};
use crate::error::{IntoToolError, ToolError};

/// The hidden arguments of a function tool. Written by the macro only.
pub trait FnTool: Sized + Send + 'static {
    /// A tuple of `Cap<..>`, in the order of the borrowed parameters.
    type Lent: Lend;
    /// The return type as written.
    type Return: ToolReturn<Error: IntoToolError>;
    /// One for each borrowed parameter, in order.
    const REQUIREMENTS: &'static [fn() -> Requirement];

    /// Calls the author's function.
    fn call(self, lent: Self::Lent) -> impl Future<Output = Self::Return> + Send;
}

// The bound on the output stands here and not in the trait, where its supertraits would be reported one by one.
impl<T: FnTool> ToolComponent for T
where
    <T::Return as ToolReturn>::Output: ToolOutput,
{
    type Capabilities = Borrowed<T>;
    type Output = <T::Return as ToolReturn>::Output;

    async fn run(self, borrowed: Borrowed<T>, _: &Call<Self>) -> Result<Self::Output, ToolError> {
        self.call(borrowed.lent).await.into_result().map_err(IntoToolError::into_tool_error)
    }
}

/// What the runtime lends to the function tool `T`.
pub struct Borrowed<T: FnTool> {
    lent: T::Lent,
    tool: PhantomData<fn() -> T>,
}

impl<T: FnTool> list::sealed::List for Borrowed<T> {}

impl<T: FnTool> CapabilityList for Borrowed<T> {
    fn requirements() -> Vec<Requirement> {
        T::REQUIREMENTS.iter().map(|requirement| requirement()).collect()
    }

    fn bind(bindings: &Bindings<'_>) -> Option<Self> {
        Some(Self { lent: T::Lent::lend(bindings)?, tool: PhantomData })
    }
}

impl<T: FnTool> std::fmt::Debug for Borrowed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Borrowed(..)")
    }
}

/// The requirement of a parameter `&C` in a tool of the effect `E`.
#[must_use]
pub fn requirement<C, E>() -> Requirement
where
    C: Injected + ?Sized,
    C::Effect: Within<E, C>,
{
    Requirement::of::<C>()
}
