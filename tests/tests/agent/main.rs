//! The loop of an agent: conversations, providers over HTTP, graphs, picking, files, and telemetry for operators.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod conversation;
mod graph;
mod http;
mod picking;
mod telemetry;
mod tool_media;
