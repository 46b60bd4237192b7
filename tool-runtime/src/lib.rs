//! Author tools for language-model agents and run them through one gate.

// `::tool_runtime` also resolves inside this crate, so its own doctests and tests can use the macros.
extern crate self as tool_runtime;

pub mod call;
pub mod capability;
pub mod error;
pub mod json;
#[path = "private/mod.rs"]
#[doc(hidden)]
pub mod __private1;
pub mod redact;
pub mod registration;
pub mod schema;
pub mod tool;

pub use call::{Call, CallId, Event, EventSink, Outcome, ToolCall, ToolContext, ToolExecResult, ToolInvocationRecord};
pub use capability::{Cap, Capabilities, Connection, Secret};
pub use error::{IntoToolError, ToolError};
pub use tool::{NameError, ToolComponent, ToolEffect, ToolName, ToolSpec};
pub use tool_macros::{capability, tool};

/// The definition of a tool, read without a registry: `definition!(path::to::tool)`.
#[macro_export]
macro_rules! definition {
    ($tool:ty) => {
        $crate::__private1::definition_of::<$tool>()
    };
}
