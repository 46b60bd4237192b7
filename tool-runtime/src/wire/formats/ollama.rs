//! Ollama `/api/chat`.

mod decode;
mod encode;
mod media;
mod settings;

pub(super) use decode::Ollama as Decode;
pub(super) use encode::Ollama as Encode;
