//! Gemini `generateContent`.

mod decode;
mod encode;
mod media;
mod model;
mod part;
mod partial;
mod settings;
mod shape;
mod turn;

pub(super) use decode::Gemini as Decode;
pub(super) use encode::Gemini as Encode;
