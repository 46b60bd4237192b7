//! Anthropic Messages.

mod decode;
mod encode;

pub(super) use decode::Messages as Decode;
pub(super) use encode::Anthropic as Encode;
