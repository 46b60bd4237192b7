//! OpenAI Responses.

mod decode;
mod encode;
mod items;

pub(super) use encode::{encode_messages, encode_tools};

use crate::wire::{DecodeOptions, Decoder};

/// The name of the format in records and fixtures.
pub(super) const NAME: &str = "openai_responses";

/// A decoder for one response, streamed or whole.
#[must_use]
pub(super) fn decoder(options: DecodeOptions) -> Decoder {
    Decoder::new(decode::Responses::default(), options)
}
