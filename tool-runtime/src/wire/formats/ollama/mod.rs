//! Ollama `/api/chat`.

mod decode;
mod encode;

pub(super) use encode::{encode_messages, encode_tools};

use crate::wire::{DecodeOptions, Decoder};

/// The name of the format in records and fixtures.
pub(super) const NAME: &str = "ollama";

/// A decoder for one response, streamed or whole: both are lines.
#[must_use]
pub(super) fn decoder(options: DecodeOptions) -> Decoder {
    Decoder::new(decode::Ollama, options)
}
