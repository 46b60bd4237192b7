//! Author tools for language-model agents and run them through one gate.
//!
//! An author annotates a function or a struct with [`#[tool]`](macro@tool); an application links that crate, collects
//! the [`catalog`], binds [capabilities](mod@capability) to adapters, and lets a model call. Nothing but a
//! [`Run`] can run a tool.
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
//! assert_eq!(refused.outcome.code(), "validation_error");
//! # Ok(()) })
//! # }
//! ```
//!
//! The modules, along the way of a call:
//!
//! | module | holds |
//! | --- | --- |
//! | [`tool`](mod@tool), [`registration`] | definitions, and how tools come to be: from the macro, or at run time |
//! | [`schema`] | the schema compiler, validators, reviews of definitions from elsewhere |
//! | [`catalog`] | collecting, checking, views by policy, guidance for the system prompt |
//! | [`wire`] | providers' requests and responses, histories, UI streams; knows nothing of running |
//! | [`agent`] | the loop: a model and the gate take turns; hand-over to clients; HTTP clients (feature `http`) |
//! | [`call`] | the vocabulary: calls, outcomes, results, records, events |
//! | [`hydrate`] | parse, validate, instantiate |
//! | [`policy`], [`capability`](mod@capability) | what is allowed, and what tools may borrow |
//! | [`runner`] | the gate: `runner/exec.rs` is the list of its stages |
//! | [`store`] | records in a hash chain, and calls that wait |
//! | [`testing`] | a preset runner for tests of tools |
//! | `cli` | the command line that an application embeds (feature `cli`) |
//!
//! Futures of this crate want a tokio runtime with its timer enabled.

#![cfg_attr(docsrs, feature(doc_cfg))]

// `::tool_runtime` also resolves inside this crate, so its own doctests and tests can use the macros.
extern crate self as tool_runtime;

pub mod agent;
pub mod call;
pub mod capability;
pub mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
pub mod component;
mod contain;
pub mod error;
pub mod hydrate;
#[doc(hidden)]
pub mod json;
pub mod policy;
mod private;
#[doc(hidden)]
pub mod redact;
pub mod registration;
pub mod runner;
pub mod schema;
pub mod store;
pub mod testing;
mod text;
pub mod tool;
pub mod wire;

// The module that expansions name; its own name carries the version of both packages.
tool_runtime_macros::__private_module!();
#[doc(hidden)]
pub use private::definition_of as __definition_of;

pub use call::{CallId, Event, EventSink, Outcome, ToolCall, ToolContext, ToolExecResult, ToolInvocationRecord};
pub use capability::{Cap, Capabilities, Connection, Secret};
pub use catalog::ToolCatalog;
pub use component::{Call, ToolComponent, ToolOutput};
pub use error::{IntoToolError, ToolError};
pub use policy::ToolPolicy;
pub use runner::{Run, RunOptions, ToolRunner};
pub use tool::{NameError, ToolEffect, ToolName, ToolSpec};
/// Makes a trait something that tools may borrow as `&dyn Trait`, and says how far it reaches.
///
/// | key | value |
/// | --- | --- |
/// | `effect` | required: `read_only`, `state_change` or `external_side_effect` |
/// | `kind` | a word: adapters belong to accounts, and tools borrow `&Connection<dyn Trait>` |
/// | `crate` | the path of this crate, when it is not `::tool_runtime` |
///
/// The trait becomes `Send + Sync + 'static`. An `async fn` needs `#[async_trait]` below this attribute. Reading and
/// writing are best two traits: a `read_only` tool can borrow only what is `read_only`.
///
/// ```
/// use tool_runtime::capability;
///
/// /// Reads the time.
/// #[capability(effect = read_only)]
/// pub trait Clock {
///     /// Seconds since 1970.
///     fn now(&self) -> i64;
/// }
///
/// /// Someone's calendar, on another service.
/// #[capability(effect = external_side_effect, kind = "calendar")]
/// #[async_trait::async_trait]
/// pub trait Calendar {
///     /// Adds an entry.
///     async fn add(&self, title: &str) -> std::io::Result<()>;
/// }
/// ```
pub use tool_runtime_macros::capability;
/// Makes a function, or a struct of arguments, a tool that a model may call.
///
/// The item is the definition: its doc comment is what a model reads, its arguments become the schema and the
/// parser, and it is registered for [the catalog](crate) of every program that links it.
///
/// # Functions
///
/// What is owned comes from the model and has a doc comment; what is borrowed is lent by the runtime: `&dyn Trait` of
/// a [`#[capability]`](macro@capability) trait, [`&Connection<dyn Trait>`](Connection) or [`&ToolContext`](ToolContext).
/// The function stays as it is written, and tests may call it.
///
/// ```
/// use tool_runtime::{ToolError, capability, definition, tool};
/// # /// Reads the time.
/// # #[capability(effect = read_only)]
/// # trait Clock { fn now(&self) -> i64; }
///
/// /// Days from now until a date.
/// #[tool(name = "core__days_until", effect = read_only, redact = ["$"])]
/// fn days_until(
///     clock: &dyn Clock,
///     /// The date, in seconds since 1970.
///     date: i64,
///     /// What counts as a day, in seconds.
///     #[arg(default = 86_400)]
///     #[schemars(range(min = 1))]
///     day: i64,
/// ) -> Result<i64, ToolError> {
///     date.checked_sub(clock.now()).map(|left| left / day).ok_or(ToolError::safe("That is too far away."))
/// }
///
/// let definition = definition!(days_until)?;
/// assert_eq!(definition.name.as_str(), "core__days_until");
/// assert_eq!(&*definition.description, "Days from now until a date.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A function and a hidden type share the name, so no module or type beside it may be called the same.
///
/// # Structs
///
/// A struct with named fields is the validated arguments. [`ToolComponent`] says how it runs. `#[tool]` derives
/// `Deserialize` and `JsonSchema`.
///
/// ```
/// use tool_runtime::{Call, Cap, ToolComponent, ToolError, capability, tool};
///
/// /// Changes tasks.
/// #[capability(effect = state_change)]
/// trait TaskWriter { fn retitle(&self, id: u64, title: &str); }
///
/// /// Change the title of a task.
/// #[tool(name = "tasks__retitle", effect = state_change, redact = ["$"])]
/// #[derive(Debug)]
/// struct Retitle {
///     /// Id, as `tasks__list` returns it.
///     #[arg(evidence = "tasks__list")]
///     id: u64,
///     /// New title.
///     #[schemars(length(min = 1, max = 120))]
///     title: String,
/// }
///
/// impl ToolComponent for Retitle {
///     type Capabilities = (Cap<dyn TaskWriter>,);
///     type Output = u64;
///
///     async fn run(self, (tasks,): Self::Capabilities, _: &Call<Self>) -> Result<u64, ToolError> {
///         tasks.retitle(self.id, &self.title);
///         Ok(self.id)
///     }
/// }
///
/// assert_eq!(Retitle::definition()?.name.as_str(), "tasks__retitle");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Keys
///
/// | key | value |
/// | --- | --- |
/// | `name` | required: `"<namespace>__<tool>"`, at most 64 bytes of ASCII letters, digits, `_` and `-` |
/// | `effect` | required: `read_only`, `state_change` or `external_side_effect`; no capability may reach further |
/// | `redact` | required: paths of the output that may be shown, `["id", "owner.name"]`; `"$"` is a scalar output; `[]` shows nothing |
/// | `model` | paths that only the model sees besides |
/// | `title` | a short name for people |
/// | `tags` | words that policies and views match |
/// | `timeout` | a whole number and `ms`, `s`, `m` or `h`: `"30s"` |
/// | `max_result_bytes` | the largest result, in bytes |
/// | `idempotent` | a second run with the same arguments changes nothing |
/// | `blocking` | the function blocks, and runs on a thread of its own; not for `async fn` and structs |
/// | `require_any` | optional arguments of which one must be given: `[title, due_date]` |
/// | `validate` | a function that checks the typed arguments: `fn(&Struct)`, or `fn(&first, &second, ..)` with the owned arguments of a function in order; returns `Result<(), `[`Violation`](call::Violation)`>` |
/// | `execution` | `client`: a client finishes the tool, which only prepares; `server` otherwise |
/// | `client_result` | with `execution = client`: the type that the client sends back |
/// | `prepare` | with `execution = client`: paths of the output that go to the client |
/// | `allow_no_schema`, `no_schema_mode` | the arguments have no schema; `reject_effects` or `approve_each` then says when it runs |
/// | `crate` | the path of this crate, when it is not `::tool_runtime` |
///
/// # Attributes of arguments
///
/// | attribute | means |
/// | --- | --- |
/// | `#[arg(default = EXPR)]` | may be left out; the schema publishes the default, so its type is `Serialize` |
/// | `#[arg(sensitive)]` | masked in events, records, approvals and logs |
/// | `#[arg(evidence = "ns__tool")]` | must have been seen in this run; the named tool lists such values |
/// | `#[serde(..)]` | `rename`, `default`; on the item `rename_all` |
/// | `#[schemars(..)]` | `range`, `length`, `regex`, `pattern`, `contains`, `email`, `url`, `ip`, `inner`, `title`, `example` |
///
/// Other keys are refused, because each lets schema and parser part. An `Option<T>` may be absent or `null`; an
/// `Option<Option<T>>`, spelled so, is `Some(None)` for `null`.
pub use tool_runtime_macros::tool;

/// The definition of a tool, read without a registry: `definition!(path::to::tool)`.
///
/// The path names a struct or a function with [`#[tool]`](macro@tool).
#[macro_export]
macro_rules! definition {
    ($tool:ty) => {
        $crate::__definition_of::<$tool>()
    };
}
