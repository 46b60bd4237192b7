//! What an author implements for a struct tool, and what `#[tool]` implements for every tool.

use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::capability::{Bindings, Cap, Injected, Requirement};
use crate::error::ToolError;
use crate::tool::{EffectLevel, Meta};

/// How a struct tool runs, what it returns and which capabilities it needs.
///
/// Hydration constructs the struct from validated arguments; the runner alone can make the [`Call`] that
/// [`run`](ToolComponent::run) asks for, so nothing else can run it.
#[diagnostic::on_unimplemented(
    message = "the tool `{Self}` does not say how it runs",
    label = "`ToolComponent` is not implemented",
    note = "write `impl ToolComponent for {Self} {{ type Capabilities = (); type Output = ..; async fn run(self, (): (), call: &Call<Self>) -> Result<Self::Output, ToolError> {{ .. }} }}`"
)]
pub trait ToolComponent: Sized + Send + 'static {
    /// A tuple of `Cap<dyn Capability>`; `()` for none.
    type Capabilities: CapabilityList;
    /// What the tool answers with, before redaction.
    type Output: ToolOutput;

    /// Runs the tool on its validated arguments.
    fn run(
        self,
        capabilities: Self::Capabilities,
        call: &Call<Self>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// What a tool may return: data that serialises and has a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of a tool",
    label = "not serialisable with a schema",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for it and for what it holds; secrets and connections never leave a tool"
)]
pub trait ToolOutput: Serialize + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + Send + 'static> ToolOutput for T {}

/// What `#[tool]` adds to a component. Written by the macro only.
pub trait Tool: ToolComponent + DeserializeOwned {
    /// The declared effect.
    type Effect: EffectLevel;
    /// What a client sends back; `()` for server tools.
    type Answer: JsonSchema;
    /// The constants of the attribute.
    const META: Meta;

    /// The raw schema of the arguments, or nothing under `allow_no_schema`.
    fn input_schema(generator: &mut schemars::SchemaGenerator) -> Option<schemars::Schema>;

    /// The author's `validate` hook; `Err` is the sentence a model reads, with the argument to blame.
    fn validate(&self) -> Result<(), crate::call::Violation> {
        Ok(())
    }
}

/// A path that `definition!` resolves: a struct tool, or the marker of a function tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "no `#[tool]` stands on it",
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

/// A tuple of `Cap<..>`, or `()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of capabilities",
    note = "write a tuple of `Cap<dyn Capability>`, for example `(Cap<dyn Clock>,)`, or `()`"
)]
pub trait CapabilityList: sealed::List + Sized + Send + 'static {
    /// What has to be bound before the tool can run.
    fn requirements() -> Vec<Requirement>;
    /// Takes the capabilities out of what the runner bound for one call.
    fn bind(bindings: &Bindings<'_>) -> Option<Self>;
}

/// Nobody else can name this trait, so only tuples, and what a function tool is lent, are lists.
pub(crate) mod sealed {
    pub trait List {}
}

/// A tuple of `Cap<..>`, taken out of the bindings whatever it holds: the bounds are asked elsewhere, once.
pub trait Lend: Sized + Send + 'static {
    /// The tuple, if all of it was bound.
    fn lend(bindings: &Bindings<'_>) -> Option<Self>;
}

macro_rules! capability_list {
    ($($name:ident)*) => {
        impl<$($name: Injected + ?Sized),*> sealed::List for ($(Cap<$name>,)*) {}

        impl<$($name: Injected + ?Sized),*> CapabilityList for ($(Cap<$name>,)*) {
            fn requirements() -> Vec<Requirement> {
                vec![$(Requirement::of::<$name>()),*]
            }

            fn bind(bindings: &Bindings<'_>) -> Option<Self> {
                Lend::lend(bindings)
            }
        }

        impl<$($name: ?Sized + Send + Sync + 'static),*> Lend for ($(Cap<$name>,)*) {
            #[allow(unused_variables, reason = "the empty tuple binds nothing")]
            fn lend(bindings: &Bindings<'_>) -> Option<Self> {
                Some(($(bindings.get::<$name>()?,)*))
            }
        }
    };
}

capability_list!();
capability_list!(A);
capability_list!(A B);
capability_list!(A B C);
capability_list!(A B C D);
capability_list!(A B C D E);
capability_list!(A B C D E F);
capability_list!(A B C D E F G);
capability_list!(A B C D E F G H);
