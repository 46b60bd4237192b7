//! Doc comments as text, which models read as descriptions.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment of an item or an argument.
pub(crate) struct Docs {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    /// `#[doc = include_str!(..)]`, whose text only the compiler knows.
    Macro(TokenStream),
}

impl Docs {
    pub(crate) fn of(attrs: &[Attribute]) -> Self {
        let parts = attrs
            .iter()
            .filter_map(|attr| match &attr.meta {
                Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(&pair.value),
                _ => None,
            })
            .map(|value| match value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Part::Text(text.value()),
                other => Part::Macro(other.to_token_stream()),
            })
            .collect();
        Self { parts }
    }

    /// Returns whether there is no text.
    pub(crate) fn is_blank(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(text) if text.trim().is_empty()))
    }

    /// Returns an expression for the text, without the leading space and the trailing white space of each line. If no
    /// part is a macro, blank lines at both ends are removed, too.
    pub(crate) fn to_expr(&self) -> TokenStream {
        if self.parts.iter().all(|part| matches!(part, Part::Text(_))) {
            let lines: Vec<String> = self.parts.iter().filter_map(Part::text).map(dedent).collect();
            let text = lines.join("\n");
            let text = text.trim_matches('\n').trim_end();
            return quote!(#text);
        }
        let mut pieces = Vec::new();
        for part in &self.parts {
            if !pieces.is_empty() {
                pieces.push(quote!("\n"));
            }
            pieces.push(match part {
                Part::Text(text) => dedent(text).to_token_stream(),
                Part::Macro(tokens) => tokens.clone(),
            });
        }
        quote!(::core::concat!(#(#pieces),*))
    }
}

impl Part {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Macro(_) => None,
        }
    }
}

fn dedent(text: &str) -> String {
    text.split('\n').map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect::<Vec<_>>().join("\n")
}
