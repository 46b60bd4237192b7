//! The errors of tools ([`ToolError`]), of texts that cannot be parsed ([`ParseError`]) and of builds ([`BuildError`]).
//!
//! The error of a tool has two kinds of readers. A model and a UI get a stable code and the author's safe message, or
//! else a fixed message. Operators get the text of the source error through [`ToolError::detail`].

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
