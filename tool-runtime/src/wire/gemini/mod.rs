//! Gemini: written only.

mod encode;

pub use encode::{encode_messages, encode_tools};

/// The name of the format in records and fixtures.
pub const NAME: &str = "gemini";
