//! [`Requirement`]: a value that must be bound before a tool can run.

use std::any::TypeId;

use crate::capability::recording::Recording;
use crate::tool::ToolEffect;

/// The source from which the runner takes an injected value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFrom {
    /// [`Capabilities`](crate::Capabilities), bound once when the application starts, or the client of the call, for a
    /// service that it offers.
    Capability,
    /// The connection broker, for each call. The text is the kind.
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
    /// The effect of the capability.
    pub effect: ToolEffect,
    /// The source of the value.
    pub source: InjectedFrom,
    /// Wraps the value in a recording adapter, for tests.
    pub(crate) recording: Recording,
}

impl Requirement {
    /// Whether the value is a connection.
    pub(crate) const fn is_connection(&self) -> bool {
        matches!(self.source, InjectedFrom::Connection(_))
    }
}
