//! Questions to the compiler, each asked at the author's type. A question is a function, so that the type stands
//! in a turbofish and the message under it.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::capability::injected::AllowedIn;

/// An argument that the model sends.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not built from JSON with a schema",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`, or borrow it if the runtime is to lend it"
)]
pub trait ToolArgument {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> ToolArgument for T {}

/// An argument of a tool without a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not built from JSON",
    note = "derive `serde::Deserialize` for `{Self}`, or borrow it if the runtime is to lend it"
)]
pub trait ParsedArgument {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + Send + 'static> ParsedArgument for T {}

/// The type of an argument with a default, which the schema publishes.
#[diagnostic::on_unimplemented(
    message = "the default of a `{Self}` cannot be written into the schema",
    label = "has a default, but does not serialise",
    note = "derive `serde::Serialize` for `{Self}`"
)]
pub trait PublishedDefault {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> PublishedDefault for T {}

/// An argument that may be left out.
#[diagnostic::on_unimplemented(
    message = "`require_any` names an argument that is always required",
    label = "a `{Self}` cannot be left out",
    note = "`require_any` lists optional arguments of which one must be given: write `Option<{Self}>`, or give the argument a default"
)]
pub trait OptionalArgument {}

impl<T> OptionalArgument for Option<T> {}

/// An output whose schema says something; `SAYS` is what a probe found.
#[diagnostic::on_unimplemented(
    message = "the output of a tool is not a bare `serde_json::Value`",
    label = "its schema says nothing, so nothing of it could be shown",
    note = "answer with a type that derives `serde::Serialize` and `schemars::JsonSchema`, or make the tool a dynamic one with a JSON Schema"
)]
pub trait Described<const SAYS: bool> {}

impl<T> Described<true> for T {}

/// A trait that a capability builds on; `WITHIN` is what a probe found.
#[diagnostic::on_unimplemented(
    message = "the capability builds on `{Self}`, which reaches further than it declares",
    label = "reaches further than the declared effect",
    note = "declare the stronger effect on this trait too, or let tools borrow the two separately"
)]
pub trait BuiltOn<const WITHIN: bool> {}

impl<T: ?Sized> BuiltOn<true> for T {}

/// Asks for `BuiltOn`.
pub const fn assert_reach<T: BuiltOn<WITHIN> + ?Sized, const WITHIN: bool>() {}

/// Asks for `ToolArgument`.
pub const fn assert_argument<T: ToolArgument>() {}

/// Asks for `ParsedArgument`.
pub const fn assert_parsed_argument<T: ParsedArgument>() {}

/// Asks for `PublishedDefault`.
pub const fn assert_default<T: PublishedDefault>() {}

/// Asks for `OptionalArgument`.
pub const fn assert_optional<T: OptionalArgument>() {}

/// Asks for `Described`.
pub const fn assert_described<T: Described<SAYS>, const SAYS: bool>() {}

/// Asks whether a struct tool of the effect `E` may hold what it holds. A function tool asks this by its
/// [`requirement`](super::requirement)s.
pub fn assert_allowed<E, L: AllowedIn<E>>(_: &L) {}
