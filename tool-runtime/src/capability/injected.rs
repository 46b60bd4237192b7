//! The traits that decide what a tool may borrow, and under which effect.

use crate::capability::Cap;
use crate::capability::requirement::Source;
use crate::tool::level::{EffectLevel, ExternalSideEffect, ReadOnly, StateChange};

/// What a tool may borrow: a `#[capability]` trait object, a [`Connection`](crate::Connection) or the
/// [`ToolContext`](crate::ToolContext).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a capability",
    label = "arguments are owned: write `String` for `&str`, `T` for `&T`",
    note = "the runtime lends `&dyn Trait`, `&Connection<dyn Trait>` and `&ToolContext`; to lend a trait of your own, write `#[capability(effect = ..)]` on it"
)]
pub trait Injected: Send + Sync + 'static {
    /// How far it reaches.
    type Effect: EffectLevel;
    /// The name in messages.
    const NAME: &'static str;

    /// Where the runner takes it from.
    #[doc(hidden)]
    #[must_use]
    fn source() -> Source {
        Source::Capability
    }
}

/// A capability's effect (`Self`) is no stronger than the tool's effect `E`.
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

/// The order of effects. Nobody else can name this trait, so nobody else can add to it.
mod sealed {
    use super::{ExternalSideEffect, ReadOnly, StateChange};

    pub trait Order<E, C: ?Sized> {}

    impl<C: ?Sized> Order<ReadOnly, C> for ReadOnly {}
    impl<C: ?Sized> Order<StateChange, C> for ReadOnly {}
    impl<C: ?Sized> Order<StateChange, C> for StateChange {}
    impl<C: ?Sized> Order<ExternalSideEffect, C> for ReadOnly {}
    impl<C: ?Sized> Order<ExternalSideEffect, C> for StateChange {}
    impl<C: ?Sized> Order<ExternalSideEffect, C> for ExternalSideEffect {}
}

/// Every capability in `Self` (a [`Cap`] or a tuple of them) may be held by a tool of effect `E`.
pub trait AllowedIn<E> {}

impl<C: ?Sized + Injected, E> AllowedIn<E> for Cap<C> where C::Effect: Within<E, C> {}

macro_rules! allowed_in {
    ($($name:ident)*) => {
        impl<Effect, $($name: AllowedIn<Effect>),*> AllowedIn<Effect> for ($($name,)*) {}
    };
}

allowed_in!();
allowed_in!(A);
allowed_in!(A B);
allowed_in!(A B C);
allowed_in!(A B C D);
allowed_in!(A B C D E);
allowed_in!(A B C D E F);
allowed_in!(A B C D E F G);
allowed_in!(A B C D E F G H);
