//! Gemini `generateContent`.

mod decode;
mod encode;
mod media;
mod partial;
mod settings;

pub(super) use decode::Gemini as Decode;
pub(super) use encode::Gemini as Encode;
