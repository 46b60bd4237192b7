//! Shared parts of tests of a run: a sink that keeps events, and tools of every kind.

mod heard;
mod tools;

pub use heard::Heard;
pub use tools::{Cursor, tools};
