//! Gemini: written only.

mod encode;

pub(super) use encode::{encode_messages, encode_tools};

/// The name of the format in records and fixtures.
pub(super) const NAME: &str = "gemini";
