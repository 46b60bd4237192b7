//! OpenAI Responses.

mod decode;
mod encode;
mod items;
mod media;

pub(super) use decode::Responses as Decode;
pub(super) use encode::Responses as Encode;
