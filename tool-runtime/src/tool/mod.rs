//! What a tool is: its name, effect, definition and the traits its author implements.

mod effect;
mod location;
mod meta;
mod name;
mod spec;
mod traits;

pub use effect::{EffectLevel, ExternalSideEffect, ReadOnly, StateChange, ToolEffect, UnknownEffect, levels};
pub use location::Location;
pub use meta::{Meta, NoSchemaMode};
pub use name::{NameError, ToolName};
pub use spec::{Execution, Hash, Redaction, Schema, ToolSpec};
pub use traits::{CapabilityList, Named, Tool, ToolComponent, ToolOutput, Visitor};
pub(crate) use traits::{Lend, sealed};
