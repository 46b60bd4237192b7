//! The catalog: every tool of an application, checked as a whole.
//!
//! [`ToolCatalog`] contains all tools, [`CatalogView`] the tools that the model of one run may see. [`ToolLock`] stores
//! reviewed definitions. [`PickIndex`] finds the tools that fit a request, with [`PickOptions`].

// Only this module iterates the tools that `#[tool]` registers.

mod build;
mod compiled;
mod entry;
mod graph;
mod guidance;
mod lock;
#[cfg(feature = "picking")]
mod pick;
mod problem;
mod server;
pub(crate) mod tool_catalog;
mod unready;
mod view;

pub use build::CatalogBuilder;
#[cfg(feature = "mcp-client")]
pub(crate) use build::look_alike;
pub(crate) use compiled::CompiledCatalog;
pub(crate) use compiled::ValidatorMode;
pub(crate) use entry::Entry;
#[cfg(feature = "mcp-client")]
pub(crate) use lock::compare_published;
pub use lock::{LockChange, LockReport, ToolLock};
#[cfg(feature = "picking")]
pub(crate) use pick::{CatalogWords, scored};
#[cfg(feature = "picking")]
pub use pick::{Pick, PickIndex, PickOptions, Scorer};
pub(crate) use problem::CatalogProblemKind;
pub(crate) use server::{ServerTools, SourceServer};
pub(crate) use tool_catalog::ToolCatalog;
pub use view::CatalogView;
