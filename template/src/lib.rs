//! The tools of this project, and the adapters that they use.

pub mod adapters;
pub mod shelf;
