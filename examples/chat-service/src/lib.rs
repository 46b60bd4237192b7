//! A chat over HTTP.

pub mod demo;
pub mod tools;
pub mod warehouse;
