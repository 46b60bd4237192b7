//! Anthropic Messages.

mod decode;
mod encode;

pub(super) use encode::{encode_messages, encode_tools};

use crate::wire::{DecodeOptions, Decoder};

/// The name of the format in records and fixtures.
pub(super) const NAME: &str = "anthropic";

/// A decoder for one response, streamed or whole.
#[must_use]
pub(super) fn decoder(options: DecodeOptions) -> Decoder {
    Decoder::new(decode::Messages::default(), options)
}
