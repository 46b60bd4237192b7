//! OpenAI Responses.

mod decode;
mod encode;
mod item;
mod items;
mod media;
mod places;
mod replay;
mod settings;

pub(super) use decode::Responses as Decode;
pub(super) use encode::Responses as Encode;
