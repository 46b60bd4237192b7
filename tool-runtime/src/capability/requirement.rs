//! [`Requirement`]: a value that must be bound before a tool can run.

use std::any::TypeId;

use crate::capability::recording::Recording;
use crate::tool::ToolEffect;

/// Where the runner takes an injected value from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFrom {
    /// [`Capabilities`](crate::Capabilities), bound once in the composition root.
    Capability,
    /// The connection broker, for this call; the text is the kind.
    Connection(&'static str),
    /// The call itself.
    Context,
}

/// A value that must be bound before a tool can run.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Requirement {
    /// The borrowed type.
    pub type_id: TypeId,
    /// Its name, for messages.
    pub name: &'static str,
    /// How far it reaches.
    pub effect: ToolEffect,
    /// Where it comes from.
    pub source: InjectedFrom,
    /// How a test records its use.
    pub(crate) recording: Recording,
}

impl Requirement {
    /// Whether the tool borrows it through a connection of its run.
    pub(crate) const fn is_connection(&self) -> bool {
        matches!(self.source, InjectedFrom::Connection(_))
    }
}
