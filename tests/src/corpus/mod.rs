//! Runs rows of the public corpora through the public API; the binary `corpus` feeds it.

pub mod policy;
