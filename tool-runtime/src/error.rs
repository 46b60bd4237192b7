//! The errors of tools ([`ToolError`]), of parsing names ([`ParseError`]), and of building catalogs, policies and
//! runners ([`BuildError`]).
//!
//! A [`ToolError`] has two kinds of readers. Models and UIs get a stable code and a safe sentence, which the author
//! wrote or which is fixed. Operators get the text of the source error from [`ToolError::detail`].

mod parse;
mod problem;
pub(crate) mod tool_error;

pub use parse::ParseError;
pub(crate) use problem::SchemaProblemKind;
pub use problem::{BuildError, Problem};
pub(crate) use tool_error::{ErrorKind, FIXED_SAFE_MESSAGE, MAX_DETAIL_BYTES, ToolError, chain};
// Public outside of hidden modules, because the compiler then prints the trait's name without a path.
#[doc(hidden)]
pub use tool_error::{ErrorSource, IntoToolError};
