//! Gemini; encoded only.

mod encode;
mod settings;

pub(super) use encode::Gemini as Encode;

/// The name of the format in records and fixtures.
pub(super) const NAME: &str = "gemini";
