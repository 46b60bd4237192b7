//! A catalog as the tools of an MCP server, seen by the client of `rmcp`.

mod auth;
mod calls;
mod changed;
mod effects;
mod ends;
mod held;
pub(crate) mod http;
#[cfg(unix)]
mod killed;
mod left;
mod lost;
mod reports;
mod rig;
mod scripts;
mod servers;
mod strict;
mod tasks;
mod unread;
mod world;
