//! Ollama `/api/chat`.

mod decode;
mod encode;
mod media;

pub(super) use decode::Ollama as Decode;
pub(super) use encode::Ollama as Encode;
