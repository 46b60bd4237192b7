//! Collects every mistake of an item, so that an author reads all of them at once.

use std::fmt::Display;
use std::thread;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The mistakes of one item. Call [`into_tokens`](Self::into_tokens) before the value is dropped. Otherwise `drop`
/// panics, because a lost mistake is a bug in the macro.
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

    /// Reports a mistake under these tokens, from the first to the last.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Reports a mistake under a span.
    pub(crate) fn span(&mut self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Reports a missing key under the contents of an attribute, or under the whole attribute if it is empty.
    pub(crate) fn missing(&mut self, contents: &TokenStream, message: impl Display) {
        if contents.is_empty() {
            self.span(Span::call_site(), message);
        } else {
            self.at(contents, message);
        }
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.collected {
            Some(first) => first.combine(error),
            none => *none = Some(error),
        }
    }

    /// Returns one `compile_error!` for each mistake; no tokens if there are none.
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
    fn reported_mistakes_become_compile_errors() {
        let mut errors = Errors::new();
        errors.span(Span::call_site(), "a mistake");
        assert!(!errors.is_empty());
        assert!(errors.into_tokens().to_string().contains("a mistake"));
        assert!(Errors::new().into_tokens().is_empty());
    }

    #[test]
    #[should_panic(expected = "were not reported")]
    fn dropping_unread_mistakes_panics() {
        let mut errors = Errors::new();
        errors.span(Span::call_site(), "a mistake");
    }
}
