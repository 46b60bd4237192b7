//! Lists of capabilities: what a tool holds, taken out of what the runner bound.

use crate::capability::injected::Injected;
use crate::capability::{Cap, Requirement};
use crate::component::bindings::Bindings;

/// A tuple of `Cap<..>`, or `()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of capabilities",
    note = "write a tuple of `Cap<dyn Capability>`, for example `(Cap<dyn Clock>,)`, or `()`"
)]
pub trait CapabilityList: sealed::List + Sized + Send + 'static {
    /// What has to be bound before the tool can run.
    fn requirements() -> Vec<Requirement>;
    /// Takes the capabilities out of what the runner bound for one call.
    fn bind(bindings: &Bindings<'_>) -> Option<Self>;
}

/// Nobody else can name this trait, so only tuples, and what a function tool is lent, are lists.
pub(crate) mod sealed {
    pub trait List {}
}

/// A tuple of `Cap<..>`, taken out of the bindings whatever it holds: the bounds are asked elsewhere, once.
pub trait Lend: Sized + Send + 'static {
    /// The tuple, if all of it was bound.
    fn lend(bindings: &Bindings<'_>) -> Option<Self>;
}

macro_rules! capability_list {
    ($($name:ident)*) => {
        impl<$($name: Injected + ?Sized),*> sealed::List for ($(Cap<$name>,)*) {}

        impl<$($name: Injected + ?Sized),*> CapabilityList for ($(Cap<$name>,)*) {
            fn requirements() -> Vec<Requirement> {
                vec![$(Requirement::of::<$name>()),*]
            }

            fn bind(bindings: &Bindings<'_>) -> Option<Self> {
                Lend::lend(bindings)
            }
        }

        impl<$($name: ?Sized + Send + Sync + 'static),*> Lend for ($(Cap<$name>,)*) {
            #[allow(unused_variables, reason = "the empty tuple binds nothing")]
            fn lend(bindings: &Bindings<'_>) -> Option<Self> {
                Some(($(bindings.get::<$name>()?,)*))
            }
        }
    };
}

capability_list!();
capability_list!(A);
capability_list!(A B);
capability_list!(A B C);
capability_list!(A B C D);
capability_list!(A B C D E);
capability_list!(A B C D E F);
capability_list!(A B C D E F G);
capability_list!(A B C D E F G H);
