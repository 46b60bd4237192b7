//! The tools of this project, and the adapters behind them.

pub mod adapters;
pub mod shelf;
