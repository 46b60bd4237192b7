//! Wire formats: definitions to provider requests, provider bytes to [`ToolCall`](crate::ToolCall)s.
//!
//! Decoders are sans-IO: bytes in, cut anywhere, calls out at the end. They alone assemble deltas, and nothing of a
//! turn that did not end well is executable. This folder imports the first layer only; formats share through
//! [`assemble`], [`history`], `sse` and `strict`.

pub mod assemble;
pub mod history;
pub mod http_record;
pub mod openai_chat;
mod sse;
pub mod strict;
mod tools;

pub use tools::{EncodeError, EncodeOptions, Encoded, ToolChoice, WireTool};
