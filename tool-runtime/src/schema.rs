//! The schema compiler: turns types, and schemas from servers and files, into the exact text that checks use and
//! providers get.
//!
//! [`validator`] is its public part, for applications that validate arguments with another library.
//!
//! Compiled schemas of authored tools use a small subset of JSON Schema that means the same under draft-07 and 2020-12.
//! Foreign schemas, from servers and files, may use all of both drafts, within limits of size and depth.

// Only this folder uses `jsonschema` and the settings of `schemars`.

mod constraints;
mod defaults;
mod edit;
mod effective;
mod engine;
mod expected;
mod foreign;
pub(crate) mod formats;
mod generate;
mod graph;
mod hash;
mod ids;
mod inline;
mod instance;
mod lower;
mod merge;
mod output;
mod positions;
mod problem;
pub(crate) mod review;
pub(crate) mod subset;
mod suspicion;
mod texts;
pub mod validator;
mod visits;

pub(crate) use edit::publish_require_any;
pub(crate) use effective::Effective;
pub(crate) use engine::takes;
pub(crate) use foreign::check_foreign;
pub(crate) use foreign::parse_foreign;
pub(crate) use generate::{compile_answer, compile_input};
pub(crate) use hash::{definition_hash, pin};
#[cfg(test)]
pub(crate) use ids::is_placeholder;
pub(crate) use ids::{IdArguments, Presence, TAKE, TAKE_OR_ASK, can_have_evidence, names_at, presence};
pub(crate) use inline::inlined;
pub(crate) use output::compile_output;
#[cfg(any(feature = "mcp-client", feature = "mcp-server"))]
pub(crate) use positions::{Position, subschemas};

#[cfg(test)]
mod tests;
