//! The traits that `#[tool]` implements for every tool: [`Tool`], and [`Named`] for the path that names it.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::Violation;
use crate::component::ToolComponent;
use crate::component::declaration::Declaration;
use crate::tool::level::EffectLevel;

/// The additions of `#[tool]` to a component. Written by the macro only.
pub trait Tool: ToolComponent + DeserializeOwned {
    /// The declared effect.
    type Effect: EffectLevel;
    /// The type that a client sends back; `()` for server tools.
    type Answer: JsonSchema;
    /// The constants of the attribute.
    const DECLARATION: Declaration;

    /// Calls the author's `validate` hook.
    ///
    /// # Errors
    /// The argument to blame, and the sentence that a model reads.
    fn validate(&self) -> Result<(), Violation> {
        Ok(())
    }
}

/// A path that `definition!` resolves: a struct tool, or the marker of a function tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "has no `#[tool]`",
    note = "name a struct or a function that has `#[tool(..)]`"
)]
pub trait Named {
    /// Shows the tool to a visitor. The type of a function tool has no other name.
    fn visit<V: Visitor>(visitor: V) -> V::Answer;
}

/// An operation over a tool's concrete type.
pub trait Visitor {
    /// Its result.
    type Answer;

    /// Performs it.
    fn visit<T: Tool>(self) -> Self::Answer;
}
