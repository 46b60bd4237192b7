//! From the arguments of a call to a value that is safe to run: parse, repair, validate, semantic rules.

pub mod repair;
pub mod semantic;
