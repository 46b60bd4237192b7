//! Author tools for language-model agents and run them through one gate.

// `::tool_runtime` also resolves inside this crate, so its own doctests and tests can use the macros.
extern crate self as tool_runtime;

pub mod call;
pub mod capability;
pub mod catalog;
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

pub use call::{CallId, Event, EventSink, Outcome, ToolCall, ToolContext, ToolExecResult, ToolInvocationRecord};
pub use capability::{Cap, Capabilities, Connection, Secret};
pub use catalog::ToolCatalog;
pub use error::{IntoToolError, ToolError};
pub use policy::ToolPolicy;
pub use runner::{RunOptions, ToolRunner};
pub use tool::{NameError, ToolComponent, ToolEffect, ToolName, ToolSpec};
