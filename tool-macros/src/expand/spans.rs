//! Where generated tokens stand: at the author's token that they speak for, without looking like the author's.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;

/// The place of some tokens. It resolves as the macro's own, so no lint of the author's crate looks at it.
pub(super) fn at(tokens: &impl ToTokens) -> Span {
    tokens.span().resolved_at(Span::call_site())
}

/// The same name at the same place, but the macro's own.
pub(super) fn generated(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(ident.span().resolved_at(Span::call_site()));
    ident
}
