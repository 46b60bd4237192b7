//! Tests the built program: exit codes, output streams, settings, conversations, and a terminal.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]
#![allow(unused_crate_dependencies, reason = "the program's own dependencies are not the tests'")]

mod accounts;
mod audit;
mod calls;
mod chat;
mod endpoint;
mod lock;
mod manual;
mod mcp;
mod notices;
#[cfg(feature = "otlp")]
mod otlp;
mod pick;
#[cfg(unix)]
mod picture;
mod policy;
mod recorded;
#[cfg(unix)]
mod refused;
mod rig;
#[cfg(feature = "code-mode")]
mod scripts;
mod secrets;
mod settings;
#[cfg(unix)]
mod shared;
#[cfg(unix)]
mod stores;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod worker;
