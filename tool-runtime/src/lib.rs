//! Author tools for language-model agents and run them through one gate, which checks and records every call.
//!
//! An author annotates a function or a struct with [`#[tool]`](macro@tool). An application links the author's crate,
//! collects the [`catalog`], implements the [capabilities](mod@capability) that the tools borrow, and lets a model call
//! the tools. Only a [`Run`] can run a tool.
//!
//! ```
//! use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
//!
//! /// Adds two numbers.
//! #[tool(name = "math__add", effect = read_only, redact = ["$"])]
//! fn add(
//!     /// The first.
//!     a: i64,
//!     /// The second.
//!     b: i64,
//! ) -> Result<i64, ToolError> {
//!     a.checked_add(b).ok_or_else(|| ToolError::code("overflow").with_safe("The sum is too large."))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let catalog = ToolCatalog::builder().tool::<add>().build()?;
//! let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["math__add"])).build()?;
//! let run = runner.run(RunOptions::new().principal("ada"));
//!
//! let result = run.exec(ToolCall::text("call_1", "math__add", r#"{"a":2,"b":3}"#)).await;
//! assert_eq!(result.to_model(), "5");
//! let refused = run.exec(ToolCall::text("call_2", "math__add", r#"{"a":"two"}"#)).await;
//! assert_eq!(refused.outcome().code(), "validation_error");
//! # Ok(()) })
//! # }
//! ```
//!
//! The types to know first, in the order in which a program meets them:
//!
//! | type | is |
//! | --- | --- |
//! | [`#[tool]`](macro@tool) | makes a tool from a function or a struct |
//! | [`ToolSpec`] | the definition of a tool: name, schemas, effect, allowlist |
//! | [`ToolCatalog`] | all tools of an application |
//! | [`ToolPolicy`] | the rules: which tools run, for whom, with whose approval |
//! | [`ToolRunner`] | catalog, policy and the application's capabilities; starts runs |
//! | [`Run`] | one conversation or task for a person or service (the principal); the only way to run a tool |
//! | [`ToolCall`] | a call as the model wrote it |
//! | [`HydrationResult`](hydrate::HydrationResult) | the same call parsed and validated, or its errors |
//! | [`ToolExecResult`] | the result of a call, with an [`Outcome`] and its code |
//! | [`ToolInvocationRecord`] | the record of a call in the [`store`] |
//! | [`Agent`](agent::Agent) | the loop in which a model and a run take turns (feature `agent`) |
//!
//! The modules:
//!
//! | module | holds |
//! | --- | --- |
//! | [`tool`](mod@tool), [`registration`] | definitions; tools from the macro, and tools that are built at run time |
//! | [`schema`] | the schema compiler, validators |
//! | [`catalog`] | collecting and checking tools, the tools that one run may see, guidance for the system prompt |
//! | [`wire`] | providers' requests and responses, histories, UI streams; independent of the gate (feature `wire`) |
//! | [`agent`] | the loop in which a model and the gate take turns; calls that wait for a client (feature `agent`); HTTP clients (feature `http`) |
//! | [`call`] | the vocabulary: calls, outcomes, results, records, events |
//! | [`media`] | images, audio and files, with their checks |
//! | [`hydrate`] | parse, validate, instantiate |
//! | [`policy`], [`capability`](mod@capability) | the rules for calls, and the resources that tools borrow |
//! | [`runner`] | the gate: `runner/gate/exec.rs` is the list of its stages |
//! | [`store`] | records in a hash chain, and calls that wait |
//! | `mcp` | serves the tools of a catalog over MCP (feature `mcp-server`), and adds tools of MCP servers to a catalog (`mcp-client`) |
//! | [`error`] | the errors of tools and of parsers |
//! | [`testing`] | a preset runner for tests of tools |
//!
//! These packages extend this crate: `tool-runtime-sql` is a store in SQLite or PostgreSQL, and `tool-runtime-cli` a
//! command line that applications embed. Each adapter to another crate is a separate package:
//! `tool-runtime-rig`, `tool-runtime-async-openai` and `tool-runtime-genai` convert a run's tools to the types of the
//! crate in their name, and `tool-runtime-restate` keeps conversations in workflows of Restate.
//!
//! No feature is enabled by default. If an import needs a feature that is not enabled, the compiler's error names the
//! feature. The guide has a page with all features.
//!
//! Futures of this crate need a tokio runtime with its timer enabled.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Without `agent`, the items of other modules that only the agent loop uses are dead code. They have no `cfg`, so that
// every build checks them.
#![cfg_attr(not(feature = "agent"), allow(dead_code, unused_imports))]

// The macros expand to paths such as `::tool_runtime::..`. With this line, these paths also resolve inside this crate,
// so its unit tests can use the macros.
extern crate self as tool_runtime;

#[doc(hidden)]
pub mod __workspace;
#[cfg(feature = "agent")]
pub mod agent;
mod attributes;
pub mod call;
pub mod capability;
pub mod catalog;
mod component;
mod contain;
pub mod error;
pub mod hydrate;
mod json;
#[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
pub mod mcp;
pub mod media;
pub mod policy;
mod private;
mod redact;
pub mod registration;
pub mod runner;
pub mod schema;
pub mod store;
pub mod testing;
mod text;
pub mod tool;
#[cfg(feature = "wire")]
pub mod wire;

// The module that generated code refers to. Its name contains the version that the macros and this crate share.
tool_runtime_macros::__private_module!();
#[doc(hidden)]
pub use private::definition_of as __definition_of;

// The order is the one in which a newcomer meets the items. The blank lines keep rustfmt from sorting them.
#[doc(inline)]
pub use attributes::tool;

#[doc(inline)]
pub use tool::{effect::ToolEffect, name::ToolName, spec::ToolSpec};

#[doc(inline)]
pub use catalog::tool_catalog::ToolCatalog;

#[doc(inline)]
pub use policy::tool_policy::ToolPolicy;

#[doc(inline)]
pub use runner::{run::Run, run::options::RunOptions, tool_runner::ToolRunner};

#[doc(inline)]
pub use call::{
    context::ToolContext, event::Event, outcome::Outcome, record::ToolInvocationRecord, result::ToolExecResult,
    tool_call::ToolCall,
};

#[doc(inline)]
pub use error::tool_error::ToolError;

#[doc(inline)]
pub use attributes::capability;

#[doc(inline)]
pub use capability::{cap::Cap, capabilities::Capabilities, connection::Connection, secret::Secret};

#[doc(inline)]
pub use component::{Call, Precondition, Reconciled, ToolComponent, WithMedia};

// The bound on outputs, implemented for every suitable type. It is public so that the compiler prints its short name.
#[doc(hidden)]
pub use component::ToolOutput;

/// Reads the definition of a tool without a catalog: `definition!(path::to::tool)`.
///
/// The path names a struct or a function with [`#[tool]`](macro@tool). The value is a
/// `Result<`[`ToolSpec`]`, `[`BuildError`](error::BuildError)`>`; it is an error if the name or a schema is not
/// allowed.
///
/// ```
/// use tool_runtime::{ToolError, definition, tool};
///
/// /// The answer.
/// #[tool(name = "core__answer", effect = read_only, redact = ["$"])]
/// fn answer() -> Result<u32, ToolError> {
///     Ok(42)
/// }
///
/// assert_eq!(definition!(answer)?.name.as_str(), "core__answer");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! definition {
    ($tool:ty) => {
        $crate::__definition_of::<$tool>()
    };
}

/// Fails a test unless schema, parser and allowlist of every tool agree. Without an argument, it checks every linked
/// tool.
///
/// The macro generates values for each schema. The parser must accept the arguments, and outputs redacted by the
/// allowlist must match the published schema. Some arguments are then changed to break one rule each: the schema must
/// report the place of the change, and the parser must refuse a change of the structure, such as a wrong type or a
/// missing member. The values are the same in every run. A schema for which no value can be generated is a failure.
///
/// The outputs are generated from the schema, so a type whose `Serialize` does not fit its `JsonSchema` passes. To find
/// such a type, call each tool once through [`testing::harness`](crate::testing::harness()), which checks real outputs.
///
/// ```
/// use tool_runtime::{ToolCatalog, ToolError, tool};
///
/// /// Finds parts.
/// #[tool(name = "parts__find", effect = read_only, redact = ["$"])]
/// fn find(
///     /// A part of the name.
///     #[schemars(length(min = 1, max = 40))]
///     text: String,
/// ) -> Result<u32, ToolError> {
///     Ok(1)
/// }
///
/// let catalog = ToolCatalog::builder().tool::<find>().build()?;
/// tool_runtime::assert_catalog_ok!(catalog);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "testing")]
#[macro_export]
macro_rules! assert_catalog_ok {
    () => {
        match $crate::ToolCatalog::collect() {
            ::core::result::Result::Ok(catalog) => $crate::assert_catalog_ok!(catalog),
            ::core::result::Result::Err(problems) => ::core::panic!("{problems}"),
        }
    };
    ($catalog:expr) => {{
        let found = $crate::testing::disagreements(&$catalog, |done, all| {
            if done % 1_000 == 0 {
                ::std::eprintln!("{done} of {all} tools");
            }
        });
        ::core::assert!(found.is_empty(), "{}", found.join("\n"));
    }};
}
