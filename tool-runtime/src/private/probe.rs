//! Compile-time probes. An inherent item whose bounds hold shadows the item of the same name in [`Otherwise`].

use std::fmt::{Debug, Display};
use std::future::{Future, pending};
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

use serde_json::Value;

use crate::capability::ConnectionKind;
use crate::capability::injected::{AllowedIn, Injected};
use crate::component::ToolComponent;
use crate::tool::ToolEffect;
use crate::tool::level::EffectLevel;

/// Probes the implementation of a tool.
#[derive(Debug)]
pub struct ComponentProbe<T>(PhantomData<fn() -> T>);

impl<T: ToolComponent<Output = Value>> ComponentProbe<T> {
    /// `false`, because the output is a bare `serde_json::Value`.
    pub const SAYS_SOMETHING: bool = false;
}

impl<T: ToolComponent> ComponentProbe<T> {
    /// The capabilities of the component.
    pub const HOLDS: Holds<T::Capabilities> = Holds(PhantomData);
}

/// Probes the type that a client sends back.
#[derive(Debug)]
pub struct AnswerProbe<T>(PhantomData<fn() -> T>);

impl AnswerProbe<Value> {
    /// `false`, because the type is a bare `serde_json::Value`.
    pub const SAYS_SOMETHING: bool = false;
}

/// Probes the supertrait of a capability.
#[derive(Debug)]
pub struct ReachProbe<T: ?Sized>(PhantomData<T>);

impl<T: Injected + ?Sized> ReachProbe<T> {
    /// `true`, because a capability declares its effect.
    pub const KNOWN: bool = true;
    /// The declared effect of the capability.
    pub const REACH: Reach = Reach(<T::Effect as EffectLevel>::EFFECT);
}

impl<T: ConnectionKind + ?Sized> ReachProbe<T> {
    /// The kind of the accounts that the capability belongs to.
    pub const ACCOUNTS: Accounts = Accounts(Some(T::KIND));
}

macro_rules! harmless {
    ($($supertrait:ty),* $(,)?) => {
        $(impl ReachProbe<$supertrait> {
            /// `true`, because nothing can be reached through this trait.
            pub const KNOWN: bool = true;
        })*
    };
}

// `Any` and `Error` are left out, because both can be downcast to the adapter with everything that it implements.
harmless!(dyn Debug, dyn Display, dyn Send, dyn Sync, dyn Unpin, dyn UnwindSafe, dyn RefUnwindSafe);

/// Probes whether a function can be called with its borrowed values; `L` is a list of [`Borrows`].
#[derive(Debug)]
pub struct FutureProbe<L>(PhantomData<fn() -> L>);

/// A list of borrowed types: the first, and the rest or `()`.
#[derive(Debug)]
pub struct Borrows<C: ?Sized, L>(PhantomData<fn() -> L>, PhantomData<fn(&C)>);

/// A list in which every type can be injected.
pub trait AllInjected {}

impl AllInjected for () {}

impl<C: Injected + ?Sized, L: AllInjected> AllInjected for Borrows<C, L> {}

impl<L: AllInjected> FutureProbe<L> {
    /// Requires that the future of a function is `Send`.
    pub fn send<F: Future + Send>(future: F) -> impl Future<Output = F::Output> + Send {
        future
    }
}

/// The results for all other types. Other checks report their mistakes.
pub trait Otherwise {
    /// `true`, because the schema is not empty.
    const SAYS_SOMETHING: bool = true;
    /// No capabilities.
    const HOLDS: Holds<()> = Holds(PhantomData);
    /// `false`, because the supertrait may reach anything.
    const KNOWN: bool = false;
    /// Unknown, so that only `KNOWN` is reported.
    const REACH: Reach = Reach(ToolEffect::ReadOnly);

    /// No accounts.
    const ACCOUNTS: Accounts = Accounts(None);

    /// Accepts a future that cannot be `Send`, because a borrowed value is not `Sync`.
    #[must_use]
    fn send<F: Future>(_: F) -> impl Future<Output = F::Output> + Send {
        pending()
    }
}

impl<T> Otherwise for ComponentProbe<T> {}

impl<T> Otherwise for AnswerProbe<T> {}

impl<T: ?Sized> Otherwise for ReachProbe<T> {}

impl<L> Otherwise for FutureProbe<L> {}

/// The strongest effect that a trait can have.
#[derive(Debug, Clone, Copy)]
pub struct Reach(ToolEffect);

impl Reach {
    /// Returns whether the trait's effect is not stronger than `effect`.
    #[must_use]
    pub const fn is_within(self, effect: ToolEffect) -> bool {
        self.0 as u8 <= effect as u8
    }
}

/// The kind of the accounts that a capability belongs to, if it has one.
#[derive(Debug, Clone, Copy)]
pub struct Accounts(Option<&'static str>);

impl Accounts {
    /// Returns whether a connection of this kind leads to such an account.
    #[must_use]
    pub const fn are_of(self, kind: Option<&'static str>) -> bool {
        let Some(own) = self.0 else { return true };
        let Some(kind) = kind else { return false };
        let (mut own, mut kind) = (own.as_bytes(), kind.as_bytes());
        // Constants cannot compare strings with `==`.
        while let ([first, rest @ ..], [other, others @ ..]) = (own, kind) {
            if *first != *other {
                return false;
            }
            (own, kind) = (rest, others);
        }
        own.is_empty() && kind.is_empty()
    }
}

/// A list of capabilities, as a type.
#[derive(Debug)]
pub struct Holds<L>(PhantomData<fn() -> L>);

impl<L: AllowedIn<E>, E> AllowedIn<E> for Holds<L> {}
