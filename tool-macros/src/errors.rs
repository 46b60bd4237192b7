//! Collects every mistake of an item, so that an author reads all of them at once.

use std::fmt::Display;
use std::thread;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Collects mistakes. Dropping it unread is a bug of the macro, and panics.
pub(crate) struct Errors {
    collected: Option<syn::Error>,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { collected: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.collected.is_none()
    }

    /// Reports at tokens: from the first to the last of them.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Reports at a span.
    pub(crate) fn span(&mut self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Reports that something is missing from an attribute: at its contents, or at the attribute if it has none.
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

    /// Returns the mistakes as `compile_error!`s; no tokens if there are none.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.collected.take().map(|errors| errors.to_compile_error()).unwrap_or_default()
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        // An unreported mistake would let a wrong item compile.
        assert!(self.collected.is_none() || thread::panicking(), "the mistakes of an item were not reported");
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::Errors;

    #[test]
    fn mistakes_that_were_reported_are_read() {
        let mut errors = Errors::new();
        errors.span(Span::call_site(), "a mistake");
        assert!(!errors.is_empty());
        assert!(errors.into_tokens().to_string().contains("a mistake"));
        assert!(Errors::new().into_tokens().is_empty());
    }

    #[test]
    #[should_panic(expected = "were not reported")]
    fn mistakes_that_nobody_reads_are_a_bug() {
        let mut errors = Errors::new();
        errors.span(Span::call_site(), "a mistake");
    }
}
