//! The corpora: one function per kind, a row of JSON in, its result as a line of JSON out.

pub mod definitions;
pub mod measures;
pub mod policy;
pub mod redaction;
pub mod retrieval;
pub mod schema_suite;
pub mod score;
pub mod text;

pub use definitions::definitions;
pub use policy::policy;
pub use redaction::redaction;
pub use schema_suite::schema_suite;
pub use text::text;
