//! The wire: decoders and encoders of every format, histories, and the streams and bodies of UIs.

mod adversarial;
mod ag_ui;
mod chat;
mod chat_ag_ui;
mod encode;
mod formats;
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
