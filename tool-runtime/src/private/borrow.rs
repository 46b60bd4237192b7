//! Compile-time probe: whether a function tool may borrow a type, with a separate message for each mistake.

use std::marker::PhantomData;

use crate::capability::Requirement;
use crate::capability::injected::{Borrow, Injected, Within};

/// Probes a borrowed parameter `&C`. The functions repeat `C` as `T`, because the compiler prints errors under the type
/// arguments of a function.
#[derive(Debug)]
pub struct BorrowProbe<C: ?Sized>(PhantomData<fn(&C)>);

impl<C: Injected + ?Sized> BorrowProbe<C> {
    /// Returns the requirement of a parameter in a tool of the effect `E`.
    #[must_use]
    pub fn of_type<T, E>() -> Requirement
    where
        T: Injected + ?Sized,
        T::Effect: Within<E, T>,
        T::Borrowing: Borrow<T>,
    {
        Requirement::of::<T>()
    }

    /// Like [`of_type`](Self::of_type), for a parameter that is written `&dyn Trait`.
    #[must_use]
    pub fn of_trait<T, E>() -> Requirement
    where
        T: Injected + ?Sized,
        T::Effect: Within<E, T>,
        T::Borrowing: Borrow<T>,
    {
        Requirement::of::<T>()
    }
}

/// The functions for types that cannot be injected. Their bounds never hold, so each gives its own error.
pub trait NotInjected {
    /// Fails for a type that is not a trait object.
    #[must_use]
    fn of_type<T, E>() -> Requirement
    where
        T: Injected + ?Sized,
    {
        Requirement::of::<T>()
    }

    /// Fails for a trait object.
    #[must_use]
    fn of_trait<T, E>() -> Requirement
    where
        T: CapabilityTrait + ?Sized,
    {
        Requirement::of::<T>()
    }
}

impl<C: ?Sized> NotInjected for BorrowProbe<C> {}

/// A trait object with `#[capability]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a capability",
    label = "a trait without `#[capability]`",
    note = "write `#[capability(effect = ..)]` on the trait, so that tools may borrow it"
)]
pub trait CapabilityTrait: Injected {}

#[diagnostic::do_not_recommend]
impl<T: Injected + ?Sized> CapabilityTrait for T {}
