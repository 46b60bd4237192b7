//! The schema compiler: from types and foreign documents to the exact text that is validated and sent.

mod expected;
mod instance;
mod problem;
mod similar;
pub mod validator;

pub use problem::SchemaProblem;
