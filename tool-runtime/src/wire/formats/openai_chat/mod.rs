//! OpenAI Chat Completions and the many servers that are compatible with it.

mod decode;
mod encode;
mod media;
mod select;
mod settings;

pub(super) use decode::Chat as Decode;
pub(super) use encode::Chat as Encode;
