//! The wire: decoders and encoders of every format, histories, and the streams and bodies of UIs.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod adversarial;
mod ag_ui;
mod chat;
mod chat_ag_ui;
mod encode;
mod formats;
mod fuzzed;
mod gemini;
mod losses;
mod media;
mod recorded;
mod resume;
mod settings;
mod transcripts;
mod turns;
mod ui;
mod usage;
