//! The traits that `#[tool]` implements for every tool: [`Tool`], and [`Named`] for the type that names the tool.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::Violation;
use crate::component::ToolComponent;
use crate::component::declaration::Declaration;
use crate::tool::level::EffectLevel;

/// The part of a tool that `#[tool]` generates. Only the macro implements this trait.
pub trait Tool: ToolComponent + DeserializeOwned {
    /// The declared effect.
    type Effect: EffectLevel;
    /// The type of the answer from a client that executes the tool; `()` for tools that run on the server.
    type Answer: JsonSchema;
    /// The constants that the attribute sets.
    const DECLARATION: Declaration;

    /// Calls the author's `validate` hook.
    ///
    /// # Errors
    /// The invalid argument, and the sentence that a model reads.
    fn validate(&self) -> Result<(), Violation> {
        Ok(())
    }
}

/// A type that names a tool, for example for `definition!`: a struct tool, or the marker of a function tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "has no `#[tool]`",
    note = "name a struct or a function that has `#[tool(..)]`"
)]
pub trait Named {
    /// Calls the visitor with the tool's own type. For a function tool that type has no public name.
    fn visit<V: Visitor>(visitor: V) -> V::Answer;
}

/// An operation over a tool's concrete type.
pub trait Visitor {
    /// The result of the operation.
    type Answer;

    /// Performs the operation.
    fn visit<T: Tool>(self) -> Self::Answer;
}
