//! The traits that `#[tool]` implements for every tool: [`Tool`], and [`Named`] for the path that names it.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::Violation;
use crate::component::ToolComponent;
use crate::component::declaration::Declaration;
use crate::tool::level::EffectLevel;

/// The additions of `#[tool]` to a component. Only the macro implements it.
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

/// A type that names a tool, for example for `definition!`: a struct tool, or the marker of a function tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "has no `#[tool]`",
    note = "name a struct or a function that has `#[tool(..)]`"
)]
pub trait Named {
    /// Calls the visitor with the tool's own type, which has no public name for a function tool.
    fn visit<V: Visitor>(visitor: V) -> V::Answer;
}

/// An operation over a tool's concrete type.
pub trait Visitor {
    /// Its result.
    type Answer;

    /// Performs it.
    fn visit<T: Tool>(self) -> Self::Answer;
}
