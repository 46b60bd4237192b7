//! Gemini; encoded only.

mod encode;

pub(super) use encode::Gemini as Encode;
