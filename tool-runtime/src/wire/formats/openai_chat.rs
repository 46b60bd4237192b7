//! OpenAI Chat Completions and the many servers compatible with it.

mod chunk;
mod decode;
mod encode;
mod fragments;
mod media;
mod message_members;
mod object_scan;
mod replay;
mod select;
mod settings;
mod sources;
mod usage;

pub(super) use decode::Chat as Decode;
pub(super) use encode::Chat as Encode;
