//! Anthropic Messages.

mod block;
mod decode;
mod encode;
mod media;
mod model;
mod settings;
mod shape;
mod turn;
mod usage;

pub(super) use decode::Messages as Decode;
pub(super) use encode::Anthropic as Encode;
pub(super) use settings::limit;
