//! The one collector of everything that is wrong with an item, so that an author reads all of it at once.

use std::fmt::Display;
use std::thread;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Collects mistakes. It has to be asked for its tokens: dropping it unread is a bug of the macro.
pub(crate) struct Errors {
    collected: Option<syn::Error>,
    read: bool,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { collected: None, read: false }
    }

    /// Reports at tokens: from the first to the last of them.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Reports at a span.
    pub(crate) fn span(&mut self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Reports that something is missing from an attribute: at all that it says, or at all of it.
    pub(crate) fn missing(&mut self, attribute: &TokenStream, message: impl Display) {
        if attribute.is_empty() {
            self.span(Span::call_site(), message);
        } else {
            self.at(attribute, message);
        }
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.collected {
            Some(first) => first.combine(error),
            none => *none = Some(error),
        }
    }

    /// The mistakes as `compile_error!`s, or nothing.
    pub(crate) fn into_tokens(mut self) -> Option<TokenStream> {
        self.read = true;
        self.collected.take().map(|errors| errors.to_compile_error())
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        debug_assert!(self.read || thread::panicking(), "the errors of an item were not read");
    }
}
