//! The keys of `#[capability(..)]`.

use proc_macro2::TokenStream;
use syn::{LitStr, Path};

use crate::attr::{Key, Reach, effect, effect_without_key, krate, pieces, unknown_key};
use crate::errors::Errors;

/// The parsed `#[capability(..)]`.
#[derive(Default)]
pub(crate) struct CapabilityAttr {
    /// The whole attribute, at which missing keys are reported.
    pub(crate) tokens: TokenStream,
    pub(crate) effect: Key<Reach>,
    pub(crate) kind: Key<LitStr>,
    pub(crate) krate: Key<Path>,
}

const KEYS: [&str; 3] = ["effect", "kind", "crate"];

/// Reads `#[capability(..)]`.
pub(crate) fn capability(tokens: TokenStream, errors: &mut Errors) -> CapabilityAttr {
    let mut attr = CapabilityAttr { tokens: tokens.clone(), ..CapabilityAttr::default() };
    for piece in &pieces(tokens, &KEYS, errors) {
        match piece.key_text().as_str() {
            "effect" => attr.effect.read(piece, errors, effect),
            "kind" => attr.kind.read(piece, errors, |piece, errors| {
                piece.value("a word for the kind of account, for example `\"calendar\"`", errors)
            }),
            "crate" => attr.krate.read(piece, errors, krate),
            _ if effect_without_key(piece, &mut attr.effect, errors) => {}
            _ => {
                if unknown_key(piece, "`#[capability]`", &KEYS, errors) == Some("effect") {
                    attr.effect.misspelt();
                }
            }
        }
    }
    attr
}
