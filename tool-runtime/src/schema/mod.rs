//! The schema compiler: from types and foreign documents to the exact text that is validated and sent.
//!
//! Schemas of authored tools leave here in a small subset that means the same under draft-07 and 2020-12; foreign
//! ones may use all of both within caps. Only this folder names `schemars` settings and `jsonschema`.

mod defaults;
mod edit;
mod effective;
mod engine;
mod expected;
mod foreign;
mod formats;
mod generate;
mod graph;
mod hash;
mod ids;
mod instance;
mod lower;
mod merge;
mod output;
mod positions;
mod problem;
mod review;
mod subset;
mod suspicion;
mod texts;
pub mod validator;
mod visits;

pub(crate) use edit::publish_require_any;
pub(crate) use effective::Effective;
pub(crate) use engine::takes;
pub(crate) use foreign::check_foreign;
pub(crate) use generate::compile_input;
pub(crate) use hash::definition_hash;
// The corpora of this workspace score these directly.
#[doc(hidden)]
pub use ids::IdArguments;
pub(crate) use ids::argument_names;
#[cfg(test)]
pub(crate) use ids::is_placeholder;
pub(crate) use output::compile_output;
pub use problem::SchemaProblem;
pub use review::{Advice, Finding, Reason, Review, review, review_text};
#[doc(hidden)]
pub use subset::is_subset;

#[cfg(test)]
mod tests;
