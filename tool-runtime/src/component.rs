//! The traits of a tool, which its author and `#[tool]` implement, and the values that the runner passes to the tool.

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
