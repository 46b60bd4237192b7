//! OpenAI Chat Completions, and the many servers that speak it nearly.

mod decode;
mod encode;
mod frame;

pub use decode::{DecodeOptions, Decoder};
pub use encode::{
    CallInput, RequestInput, StrictNullInput, TurnInput, encode_request, encode_results, encode_tools, encode_turn,
    strip_strict_nulls,
};

/// The name of the format in records and provenance.
pub const FORMAT: &str = "openai_chat";
