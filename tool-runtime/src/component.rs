//! The traits that a tool implements (by its author and by `#[tool]`), and the values that the runner passes to it.

pub(crate) mod bindings;
mod call;
pub(crate) mod declaration;
pub(crate) mod list;
mod precondition;
pub(crate) mod tool;
mod traits;
mod with_media;

pub(crate) use bindings::Bindings;
pub use call::Call;
pub(crate) use list::CapabilityList;
pub use precondition::Precondition;
pub(crate) use tool::{Named, Tool, Visitor};
pub use traits::{Reconciled, ToolComponent, ToolOutput};
pub use with_media::WithMedia;
