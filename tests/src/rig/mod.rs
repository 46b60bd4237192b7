//! What the tests of a run share: a sink that remembers, and tools of every kind.

mod heard;

pub use heard::Heard;
