//! What `#[tool]` implements for every tool: [`Tool`], and [`Named`] for the path that names it.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::Violation;
use crate::component::ToolComponent;
use crate::component::declaration::Declaration;
use crate::tool::level::EffectLevel;

/// What `#[tool]` adds to a component. Written by the macro only.
pub trait Tool: ToolComponent + DeserializeOwned {
    /// The declared effect.
    type Effect: EffectLevel;
    /// What a client sends back; `()` for server tools.
    type Answer: JsonSchema;
    /// The constants of the attribute.
    const DECLARATION: Declaration;

    /// The raw schema of the arguments, or nothing under `allow_no_schema`.
    fn input_schema(generator: &mut schemars::SchemaGenerator) -> Option<schemars::Schema>;

    /// The author's `validate` hook; `Err` is the sentence a model reads, with the argument to blame.
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
    /// Shows the tool to a visitor. A function tool is a type that nobody else can name.
    fn visit<V: Visitor>(visitor: V) -> V::Answer;
}

/// Something that is done with a tool's type.
pub trait Visitor {
    /// What comes of it.
    type Answer;

    /// Does it.
    fn visit<T: Tool>(self) -> Self::Answer;
}
