//! Author tools for language-model agents and run them through one gate.

// `::tool_runtime` also resolves inside this crate, so its own doctests and tests can use the macros.
extern crate self as tool_runtime;

pub mod call;
pub mod capability;
pub mod error;
pub mod json;
pub mod redact;
pub mod schema;
pub mod tool;
pub mod wire;

pub use call::{CallId, Event, EventSink, Outcome, ToolCall, ToolContext, ToolExecResult, ToolInvocationRecord};
pub use capability::{Cap, Capabilities, Connection, Secret};
pub use error::{IntoToolError, ToolError};
pub use tool::{NameError, ToolComponent, ToolEffect, ToolName, ToolSpec};
