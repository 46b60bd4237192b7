//! Office tools for an agent, written against capability traits.
//!
//! This crate is the part of the tools' authors. It does not use a database, the file system or the network, and its
//! lints (`clippy.toml`) enforce that.
//! An application links it with `use office_tools as _;` and binds an adapter to every capability.

pub mod calendar;
pub mod docs;
pub mod editor;
pub mod failure;
pub mod files;
pub mod mail;
pub mod notes;
mod pdf;
pub mod reports;
pub mod tasks;
pub mod time;
pub mod weather;
pub mod web;

pub use failure::Failure;
