//! Effects as types, so that the compiler can compare a tool's effect with the effects of its capabilities.

#![allow(non_camel_case_types, reason = "compiler messages print these types next to the author's own words")]

use crate::tool::ToolEffect;

/// An effect as a type, so that the compiler can compare a tool's effect with the effects of its capabilities.
pub trait EffectLevel: sealed::Level + 'static {
    /// The same effect as data.
    const EFFECT: ToolEffect;
}

/// [`ToolEffect::ReadOnly`] as a type.
pub type ReadOnly = read_only;

/// [`ToolEffect::StateChange`] as a type.
pub type StateChange = state_change;

/// [`ToolEffect::ExternalSideEffect`] as a type.
pub type ExternalSideEffect = external_side_effect;

/// The type behind [`ReadOnly`].
#[derive(Debug)]
pub enum read_only {}

/// The type behind [`StateChange`].
#[derive(Debug)]
pub enum state_change {}

/// The type behind [`ExternalSideEffect`].
#[derive(Debug)]
pub enum external_side_effect {}

impl EffectLevel for ReadOnly {
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
}

impl EffectLevel for StateChange {
    const EFFECT: ToolEffect = ToolEffect::StateChange;
}

impl EffectLevel for ExternalSideEffect {
    const EFFECT: ToolEffect = ToolEffect::ExternalSideEffect;
}

/// No other crate can name this trait, so no other crate can add an effect.
mod sealed {
    use super::{ExternalSideEffect, ReadOnly, StateChange};

    pub trait Level {}

    impl Level for ReadOnly {}
    impl Level for StateChange {}
    impl Level for ExternalSideEffect {}
}
