//! The attribute macros of `tool-runtime`: `#[tool]` and `#[capability]`. Their documentation is on the re-exports.
//!
//! `attr`, `item` and `model` parse tokens into data. `check` applies the rules, which report mistakes, and `checked`
//! holds a tool without mistakes. `expand` turns the checked tool into tokens. The author's item is always emitted,
//! even with mistakes.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing)]
#![allow(clippy::large_enum_variant, reason = "one value of each lives for one expansion")]
#![allow(clippy::enum_variant_names, reason = "`external_side_effect` is the word authors write")]

use proc_macro::TokenStream;

mod attr;
mod check;
mod checked;
mod docs;
mod errors;
mod expand;
mod item;
mod methods;
mod model;
mod names;
mod sentence;
mod surroundings;

/// See the re-export in `tool-runtime`.
#[proc_macro_attribute]
pub fn tool(attr: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attr.into(), item.into(), &surroundings::are_methods).into()
}

/// Declares the helper attributes of a struct tool, and generates nothing. Not public API.
#[doc(hidden)]
#[proc_macro_derive(Attributes, attributes(arg, serde, schemars, validate, garde))]
pub fn attributes(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Declares the module of `tool-runtime` that generated code names. Not public API.
#[doc(hidden)]
#[proc_macro]
pub fn __private_module(_: TokenStream) -> TokenStream {
    expand::module().into()
}

/// See the re-export in `tool-runtime`.
#[proc_macro_attribute]
pub fn capability(attr: TokenStream, item: TokenStream) -> TokenStream {
    expand::capability(attr.into(), item.into()).into()
}
