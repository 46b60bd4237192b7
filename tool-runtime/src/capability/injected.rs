//! The traits that decide which types a tool may borrow, and under which effect.

use std::any::TypeId;
use std::sync::Arc;

use crate::capability::Cap;
use crate::capability::recording::{Recorder, recording};
use crate::capability::requirement::{InjectedFrom, Requirement};
use crate::tool::level::{EffectLevel, ExternalSideEffect, ReadOnly, StateChange};

/// A type that a tool may borrow: a `#[capability]` trait object, a [`Connection`](crate::Connection) or the
/// [`ToolContext`](crate::ToolContext). Only the macro and this crate implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a capability",
    label = "a tool cannot borrow this",
    note = "arguments from the model are owned: write `String` for `&str`, `T` for `&T`; the runtime injects `&dyn Trait` of a trait with `#[capability(effect = ..)]`, `&Connection<dyn Trait>` and `&ToolContext`"
)]
pub trait Injected: Send + Sync + 'static {
    /// The effect of the capability.
    type Effect: EffectLevel;
    /// How a tool borrows it: [`Directly`], or [`ThroughConnection`] for a trait with a kind.
    type Borrowing;
    /// The name in messages.
    const NAME: &'static str;

    /// Returns the source from which the runner takes the value.
    #[must_use]
    fn source() -> InjectedFrom {
        InjectedFrom::Capability
    }

    /// Returns an adapter that records each method call and forwards it. `None` if the macro does not know all methods.
    #[must_use]
    fn recording(_: Arc<Self>, _: &Recorder) -> Option<Arc<Self>> {
        None
    }
}

impl Requirement {
    /// Returns the requirement of a borrowed `T`.
    #[must_use]
    pub fn of<T: Injected + ?Sized>() -> Self {
        Self {
            type_id: TypeId::of::<T>(),
            name: T::NAME,
            effect: T::Effect::EFFECT,
            source: T::source(),
            recording: recording::<T>,
        }
    }
}

/// The borrowing mode of a type that a function tool borrows as `&T` and a struct tool holds as `Cap<T>`.
#[derive(Debug)]
pub enum Directly {}

/// The borrowing mode of a trait with a kind, which a tool borrows as `&Connection<T>`.
#[derive(Debug)]
pub enum ThroughConnection {}

/// An [`Injected::Borrowing`] mode (`Self`) in which a tool may borrow `C` itself.
#[diagnostic::on_unimplemented(
    message = "`{C}` has a kind, so it is borrowed through a connection",
    label = "needs an account, which a connection represents",
    note = "write `&Connection<dyn Trait>` for `&dyn Trait`, or `Cap<Connection<dyn Trait>>` in a `type Capabilities`; a `ConnectionBroker` opens the connection for each call"
)]
pub trait Borrow<C: ?Sized>: sealed::Borrow {}

impl<C: ?Sized> Borrow<C> for Directly {}

/// An [`Injected::Borrowing`] mode (`Self`) in which an application may bind an adapter to `C`.
#[diagnostic::on_unimplemented(
    message = "`{C}` has a kind: its adapters are opened for each call",
    label = "cannot be bound once for all calls",
    note = "return `ConnectionHandle::new::<{C}>(adapter)` from a `ConnectionBroker`, and name the account with `RunOptions::connection`"
)]
pub trait Bind<C: ?Sized>: sealed::Borrow {}

impl<C: ?Sized> Bind<C> for Directly {}

/// An effect (`Self`) of the capability `C` that does not exceed the effect `E` of the tool.
#[diagnostic::on_unimplemented(
    message = "the capability `{C}` reaches `{Self}`, but the tool is declared `{E}`",
    label = "stronger than the declared effect of the tool",
    note = "declare the stronger effect on the tool (`effect = ..`), or take a capability that reaches no further than `{E}`"
)]
pub trait Within<E, C: ?Sized>: sealed::Order<E, C> {}

impl<C: ?Sized> Within<ReadOnly, C> for ReadOnly {}
impl<C: ?Sized> Within<StateChange, C> for ReadOnly {}
impl<C: ?Sized> Within<StateChange, C> for StateChange {}
impl<C: ?Sized> Within<ExternalSideEffect, C> for ReadOnly {}
impl<C: ?Sized> Within<ExternalSideEffect, C> for StateChange {}
impl<C: ?Sized> Within<ExternalSideEffect, C> for ExternalSideEffect {}

/// An effect (`Self`) of the capability `C` that only reads, so that a precondition may use it.
#[diagnostic::on_unimplemented(
    message = "the precondition borrows `{C}`, which reaches `{Self}`",
    label = "does more than read",
    note = "a precondition is taken before anyone has approved the call, so it only reads: borrow a capability that declares `effect = read_only`; a function tool names what its precondition takes: `precondition = path(argument, capability)`"
)]
pub trait OnlyReads<C: ?Sized>: sealed::Order<ReadOnly, C> {}

impl<C: ?Sized> OnlyReads<C> for ReadOnly {}

/// A [`Cap`], or a tuple of them, that a tool with the effect `E` may hold.
pub trait AllowedIn<E> {}

impl<C: ?Sized + Injected, E> AllowedIn<E> for Cap<C>
where
    C::Effect: Within<E, C>,
    C::Borrowing: Borrow<C>,
{
}

/// Calls a macro once for each length of a capability tuple, with the names of the type parameters.
macro_rules! each_tuple {
    ($macro:ident) => {
        $macro!();
        $macro!(A);
        $macro!(A B);
        $macro!(A B C);
        $macro!(A B C D);
        $macro!(A B C D E);
        $macro!(A B C D E F);
        $macro!(A B C D E F G);
        $macro!(A B C D E F G H);
    };
}

pub(crate) use each_tuple;

macro_rules! allowed_in {
    ($($name:ident)*) => {
        impl<Effect, $($name: AllowedIn<Effect>),*> AllowedIn<Effect> for ($($name,)*) {}
    };
}

each_tuple!(allowed_in);

/// The supertraits of the traits above. Other crates cannot name them, so they cannot implement those traits.
mod sealed {
    use super::{Directly, ExternalSideEffect, ReadOnly, StateChange};

    pub trait Borrow {}

    impl Borrow for Directly {}

    pub trait Order<E, C: ?Sized> {}

    impl<C: ?Sized> Order<ReadOnly, C> for ReadOnly {}
    impl<C: ?Sized> Order<StateChange, C> for ReadOnly {}
    impl<C: ?Sized> Order<StateChange, C> for StateChange {}
    impl<C: ?Sized> Order<ExternalSideEffect, C> for ReadOnly {}
    impl<C: ?Sized> Order<ExternalSideEffect, C> for StateChange {}
    impl<C: ?Sized> Order<ExternalSideEffect, C> for ExternalSideEffect {}
}
