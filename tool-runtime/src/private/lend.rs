//! What a function tool borrows: a tuple for the values, a list of functions for the requirements.
//!
//! The tuple asks nothing of what it holds. The list asks, once for each parameter and at its type, so that a
//! parameter that cannot be borrowed is one error.

use std::marker::PhantomData;

use crate::capability::{Bindings, Injected, Requirement, Within};
use crate::tool::{CapabilityList, Lend};

/// What the runtime lends to the function tool `T`.
#[derive(Debug)]
pub struct Borrowed<L, T> {
    /// A tuple of `Cap<..>`, in the order of the parameters.
    pub list: L,
    tool: PhantomData<fn() -> T>,
}

/// The requirements of a function tool.
pub trait Borrows {
    /// One for each borrowed parameter, in order.
    const REQUIREMENTS: &'static [fn() -> Requirement];
}

impl<L: Lend + Send + 'static, T: Borrows + 'static> CapabilityList for Borrowed<L, T> {
    fn requirements() -> Vec<Requirement> {
        T::REQUIREMENTS.iter().map(|requirement| requirement()).collect()
    }

    fn bind(bindings: &Bindings<'_>) -> Option<Self> {
        Some(Self { list: L::lend(bindings)?, tool: PhantomData })
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
