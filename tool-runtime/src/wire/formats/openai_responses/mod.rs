//! OpenAI Responses.

mod decode;
mod encode;
mod items;
mod media;
mod settings;

pub(super) use decode::Responses as Decode;
pub(super) use encode::Responses as Encode;
