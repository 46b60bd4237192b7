//! Questions that have two good answers: an inherent constant wins over a trait's, if its bounds hold.

use std::marker::PhantomData;

use serde_json::Value;

use crate::capability::injected::{AllowedIn, Injected};
use crate::component::ToolComponent;
use crate::tool::ToolEffect;
use crate::tool::level::EffectLevel;

/// Asks about a component.
#[derive(Debug)]
pub struct ComponentProbe<T>(PhantomData<fn() -> T>);

impl<T: ToolComponent<Output = Value>> ComponentProbe<T> {
    /// Its output is a bare `serde_json::Value`.
    pub const SAYS_SOMETHING: bool = false;
}

impl<T: ToolComponent> ComponentProbe<T> {
    /// What the component asks for.
    pub const HOLDS: Holds<T::Capabilities> = Holds(PhantomData);
}

/// Asks about what a client sends back.
#[derive(Debug)]
pub struct AnswerProbe<T>(PhantomData<fn() -> T>);

impl AnswerProbe<Value> {
    /// It is a bare `serde_json::Value`.
    pub const SAYS_SOMETHING: bool = false;
}

/// The answers for everything else. What is no component at all is told so once, elsewhere.
pub trait Otherwise {
    /// The schema says something.
    const SAYS_SOMETHING: bool = true;
    /// Nothing.
    const HOLDS: Holds<()> = Holds(PhantomData);
}

impl<T> Otherwise for ComponentProbe<T> {}

impl<T> Otherwise for AnswerProbe<T> {}

/// Asks how far a trait reaches that a capability builds on.
#[derive(Debug)]
pub struct ReachProbe<T: ?Sized>(PhantomData<T>);

impl<T: Injected + ?Sized> ReachProbe<T> {
    /// As far as it declares.
    pub const REACH: Reach = Reach(<T::Effect as EffectLevel>::EFFECT);
}

/// The answer for traits that are no capabilities.
pub trait ReachesNowhere {
    /// Nowhere.
    const REACH: Reach = Reach(ToolEffect::ReadOnly);
}

impl<T: ?Sized> ReachesNowhere for ReachProbe<T> {}

/// How far a trait reaches.
#[derive(Debug, Clone, Copy)]
pub struct Reach(ToolEffect);

impl Reach {
    /// No further than `effect`.
    #[must_use]
    pub const fn is_within(self, effect: ToolEffect) -> bool {
        self.0 as u8 <= effect as u8
    }
}

/// A list of capabilities, as a type.
#[derive(Debug)]
pub struct Holds<L>(PhantomData<fn() -> L>);

impl<L: AllowedIn<E>, E> AllowedIn<E> for Holds<L> {}
