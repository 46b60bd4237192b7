//! Redaction: of an output, only those leaves (scalars and arrays of scalars) are written that the tool's allowlist
//! names.
//!
//! [`Projector`] serialises an output with its own `serde::Serializer`, which skips all other leaves while it writes
//! JSON. No unredacted JSON of a typed output exists. The output of a dynamic tool, such as a tool of an MCP server, is
//! a [`Value`](serde_json::Value) until it is projected.
//!
//! The module also writes three texts from arguments: the arguments with the sensitive ones masked, for records, events
//! and approvals; the sentence for the person who decides (`summary`); and the effect key (`once`), which is equal for
//! calls that take effect once.

mod attachments;
mod changes;
mod effect_key;
mod fault;
mod fit;
mod key;
mod leaf;
mod mask;
mod path;
mod plan;
mod projector;
#[cfg(any(test, feature = "mcp-server", feature = "testing"))]
mod published;
mod shape;
mod suggestion;
mod summary;
mod writer;

pub(crate) use attachments::{ERROR, MEDIA};
pub(crate) use changes::{changes, repaired};
pub(crate) use effect_key::{EffectKey, effect_key};
pub(crate) use mask::{MASK, mask_arguments};
#[cfg(feature = "mcp-client")]
pub(crate) use path::nameable;
pub use projector::Projector;
pub(crate) use projector::{ProjectError, Projected};
pub(crate) use summary::summary;

#[cfg(test)]
mod tests;
