//! Compile-time assertions, spanned at the author's types. Each is a generic function: the author's type is its type
//! argument, so that the compiler prints the message under that type.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::Violation;
use crate::capability::injected::AllowedIn;
use crate::component::Named;

/// An argument that the model sends.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not built from JSON with a schema",
    note = "derive `serde::Deserialize` and `JsonSchema` of schemars 1 for `{Self}`, or take it by reference if the runtime should inject it; a type of another crate may need a feature of `schemars` (`chrono04`, `uuid1`, `url2`, `jiff02` ..)"
)]
pub trait ToolArgument {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> ToolArgument for T {}

/// An argument whose type is called `Secret`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "a model cannot send a secret",
    note = "write the type inside, such as `String`, with `#[arg(sensitive)]`, which masks the value in events, records, approvals and logs"
)]
pub trait SecretArgument {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> SecretArgument for T {}

/// An argument of a tool without a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not built from JSON",
    note = "derive `serde::Deserialize` for `{Self}`, or take it by reference if the runtime should inject it"
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
    note = "`require_any` lists optional arguments, at least one of which is required: write `Option<{Self}>`, or give the argument a default"
)]
pub trait OptionalArgument {}

impl<T> OptionalArgument for Option<T> {}

/// An output with its own schema; `SAYS` is the result of a probe.
#[diagnostic::on_unimplemented(
    message = "the output of a tool is not a bare `serde_json::Value`",
    label = "has no schema, so no part of it could be shown",
    note = "return a type that derives `serde::Serialize` and `JsonSchema` of schemars 1, or make the tool a dynamic one with a JSON Schema"
)]
pub trait Described<const SAYS: bool> {}

impl<T> Described<true> for T {}

/// A supertrait that reaches no further than its capability; `WITHIN` is the result of a probe.
#[diagnostic::on_unimplemented(
    message = "the capability builds on `{Self}`, which reaches further than it declares",
    label = "reaches further than the declared effect",
    note = "declare the stronger effect on this trait too, or let tools borrow the two capabilities separately"
)]
pub trait BuiltOn<const WITHIN: bool> {}

impl<T: ?Sized> BuiltOn<true> for T {}

/// A supertrait of a capability whose reach is known; `KNOWN` is the result of a probe.
#[diagnostic::on_unimplemented(
    message = "the capability builds on `{Self}`, which is not a capability",
    label = "may reach further than the declared effect",
    note = "a tool can call everything that a supertrait offers: write `#[capability(effect = ..)]` on it, or let tools borrow it separately; `Debug`, `Display` and the auto traits need no attribute"
)]
pub trait KnownSupertrait<const KNOWN: bool> {}

impl<T: ?Sized> KnownSupertrait<true> for T {}

/// A supertrait of a capability that belongs to no other account; `SAME` is the result of a probe.
#[diagnostic::on_unimplemented(
    message = "the capability builds on `{Self}`, which belongs to an account",
    label = "could be borrowed without a connection to that account",
    note = "write the same `kind = \"..\"` on this trait, or let tools borrow the two capabilities separately"
)]
pub trait SameAccount<const SAME: bool> {}

impl<T: ?Sized> SameAccount<true> for T {}

/// The return value of an author's `validate` hook.
#[diagnostic::on_unimplemented(
    message = "the `validate` hook of a tool returns `Result<(), Violation>`",
    label = "returns `{Self}`",
    note = "write `fn hook(..) -> Result<(), Violation>`, without `async`: a hook sees the arguments only, and a check that waits for something belongs in the tool"
)]
pub trait Validated {
    /// Returns the value.
    ///
    /// # Errors
    /// The errors of the hook.
    fn into_result(self) -> Result<(), Violation>;
}

impl Validated for Result<(), Violation> {
    fn into_result(self) -> Self {
        self
    }
}

/// Returns the result of a `validate` hook.
///
/// # Errors
/// The errors of the hook.
pub fn validated<V: Validated>(answer: V) -> Result<(), Violation> {
    answer.into_result()
}

/// A struct with `#[tool(..)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool, so its `#[tool] impl` is never called",
    label = "its struct has no `#[tool(..)]`",
    note = "write `#[tool(name = \"..\", effect = .., redact = [..])]` on the struct"
)]
pub trait StructTool {}

#[diagnostic::do_not_recommend]
impl<T: Named> StructTool for T {}

/// Asserts `StructTool`.
pub const fn assert_struct<T: StructTool>() {}

/// Asserts `SameAccount`.
pub const fn assert_account<T: SameAccount<SAME> + ?Sized, const SAME: bool>() {}

/// Asserts `KnownSupertrait`.
pub const fn assert_known<T: KnownSupertrait<KNOWN> + ?Sized, const KNOWN: bool>() {}

/// Asserts `BuiltOn`.
pub const fn assert_reach<T: BuiltOn<WITHIN> + ?Sized, const WITHIN: bool>() {}

/// Asserts `ToolArgument`.
pub const fn assert_argument<T: ToolArgument>() {}

/// Asserts `SecretArgument`.
pub const fn assert_secret_argument<T: SecretArgument>() {}

/// Asserts `ParsedArgument`.
pub const fn assert_parsed_argument<T: ParsedArgument>() {}

/// Asserts `PublishedDefault`.
pub const fn assert_default<T: PublishedDefault>() {}

/// Asserts `OptionalArgument`.
pub const fn assert_optional<T: OptionalArgument>() {}

/// Asserts `Described`.
pub const fn assert_described<T: Described<SAYS>, const SAYS: bool>() {}

/// Asserts that a struct tool of the effect `E` may hold its capabilities. For function tools,
/// [`BorrowProbe`](super::BorrowProbe) asserts this.
pub fn assert_allowed<E, L: AllowedIn<E>>(_: &L) {}
