//! Spans of generated tokens: located at the author's tokens, where errors appear, but resolved as the macro's own.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;

/// Returns the span of some tokens, resolved as the macro's own, so that no lint of the author's crate applies.
pub(super) fn at(tokens: &impl ToTokens) -> Span {
    tokens.span().resolved_at(Span::call_site())
}

/// Returns the same name at the same place, resolved as the macro's own.
pub(super) fn generated(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(ident.span().resolved_at(Span::call_site()));
    ident
}
