//! The corpora: one function per kind, a row of JSON in, its result as a line of JSON out. Public API only.

pub mod definitions;
pub mod policy;
pub mod redaction;
pub mod schema_suite;
pub mod score;

pub use definitions::definitions;
pub use policy::policy;
pub use redaction::redaction;
pub use schema_suite::schema_suite;
