//! Anthropic Messages.

mod decode;
mod encode;
mod media;
mod settings;
mod usage;

pub(super) use decode::Messages as Decode;
pub(super) use encode::Anthropic as Encode;
