//! What a tool is: its name, effect, definition and allowlist.

mod effect;
mod hash;
pub(crate) mod level;
mod location;
mod name;
mod redaction;
mod spec;

pub use effect::{ToolEffect, UnknownEffect};
pub use hash::Hash;
pub use location::Location;
pub(crate) use name::is_discovered;
pub use name::{NameError, ToolName};
pub use redaction::Redaction;
pub use spec::{Execution, NoSchemaMode, Schema, ToolSpec};
