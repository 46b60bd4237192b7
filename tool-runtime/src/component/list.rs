//! The lists of capabilities that a tool takes from the bindings of a call.

use crate::capability::injected::{Injected, each_tuple};
use crate::capability::{Cap, Requirement};
use crate::component::bindings::Bindings;

/// The capabilities of a tool: a tuple of `Cap<..>`, or `()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of capabilities",
    label = "not a tuple of `Cap<..>`",
    note = "write a tuple of `Cap<dyn Capability>`, for example `(Cap<dyn Clock>,)`, or `()`; a trait with a kind is `Cap<Connection<dyn Calendar>>`"
)]
pub trait CapabilityList: sealed::List + Sized + Send + 'static {
    /// Whether a tool with this list can reconcile a call, that is, look up an outcome that was not recorded. Function
    /// tools cannot, so that code is not compiled for them.
    const MAY_RECONCILE: bool = true;
    /// Whether a tool with this list can have a precondition. A function tool has one only if its attribute names one.
    const MAY_STATE: bool = true;

    /// Returns the values that must be bound before the tool can run.
    fn requirements() -> Vec<Requirement>;
    /// Takes the capabilities from the bindings of one call; `None` if one of them is not bound.
    fn bind(bindings: &Bindings<'_>) -> Option<Self>;
}

/// No other crate can name this trait, so only tuples and the borrowed values of function tools are lists.
pub(crate) mod sealed {
    pub trait List {}
}

macro_rules! capability_list {
    ($($name:ident)*) => {
        impl<$($name: Injected + ?Sized),*> sealed::List for ($(Cap<$name>,)*) {}

        impl<$($name: Injected + ?Sized),*> CapabilityList for ($(Cap<$name>,)*) {
            fn requirements() -> Vec<Requirement> {
                vec![$(Requirement::of::<$name>()),*]
            }

            #[allow(unused_variables, reason = "the empty tuple binds nothing")]
            fn bind(bindings: &Bindings<'_>) -> Option<Self> {
                Some(($(bindings.get::<$name>()?,)*))
            }
        }
    };
}

each_tuple!(capability_list);
