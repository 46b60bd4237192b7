//! Gemini `generateContent`.

mod decode;
mod encode;
mod partial;

pub(super) use decode::Gemini as Decode;
pub(super) use encode::Gemini as Encode;

/// The name of the format in records and fixtures.
pub(super) const NAME: &str = "gemini";
