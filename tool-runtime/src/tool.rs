//! The types that define a tool: its name, effect, definition and allowlist.

mod digested;
pub(crate) mod effect;
mod hash;
pub(crate) mod level;
pub(crate) mod location;
pub(crate) mod name;
mod redaction;
pub(crate) mod sentence;
pub(crate) mod spec;

pub(crate) use digested::Digested;
pub(crate) use effect::ToolEffect;
pub use hash::Hash;
pub(crate) use hash::Hashing;
// Compiler messages print a type by its name alone only if it can be named outside of hidden modules.
#[doc(hidden)]
pub use level::{external_side_effect, read_only, state_change};
pub(crate) use location::Location;
pub(crate) use name::ToolName;
pub(crate) use name::{SEARCH, graph, graph_of, is_discovered, is_graph};
pub use redaction::Redaction;
pub(crate) use spec::Execution;
pub use spec::Schema;
pub(crate) use spec::ToolSpec;
pub(crate) use spec::{NoSchemaMode, Once, OnceScope};
