//! What the tests of a run share: a sink that remembers, and tools of every kind.

mod heard;
mod tools;

pub use heard::Heard;
pub use tools::{Cursor, tools};
