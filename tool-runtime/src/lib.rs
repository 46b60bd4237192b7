//! Author tools for language-model agents and run them through one gate.

// `::tool_runtime` also resolves inside this crate, so its own doctests and tests can use the macros.
extern crate self as tool_runtime;

#[path = "private/mod.rs"]
#[doc(hidden)]
pub mod __private1;
pub mod call;
pub mod capability;
pub mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
mod contain;
pub mod error;
pub mod hydrate;
pub mod json;
pub mod policy;
pub mod redact;
pub mod registration;
pub mod runner;
pub mod schema;
pub mod store;
pub mod testing;
pub mod tool;
pub mod wire;

pub use call::{Call, CallId, Event, EventSink, Outcome, ToolCall, ToolContext, ToolExecResult, ToolInvocationRecord};
pub use capability::{Cap, Capabilities, Connection, Secret};
pub use catalog::ToolCatalog;
pub use error::{IntoToolError, ToolError};
pub use policy::ToolPolicy;
pub use runner::{RunOptions, ToolRunner};
pub use tool::{NameError, ToolComponent, ToolEffect, ToolName, ToolSpec};
pub use tool_macros::{capability, tool};

/// The definition of a tool, read without a registry: `definition!(path::to::tool)`.
#[macro_export]
macro_rules! definition {
    ($tool:ty) => {
        $crate::__private1::definition_of::<$tool>()
    };
}
