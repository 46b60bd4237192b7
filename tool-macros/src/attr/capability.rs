//! The keys of `#[capability(..)]`.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use syn::{LitStr, Path};

use crate::attr::{Effect, duplicate_key, effect, krate, pieces, unknown_key};
use crate::errors::Errors;

/// What `#[capability(..)]` says.
#[derive(Default)]
pub(crate) struct CapabilityAttr {
    /// All of it: the place of what is missing.
    pub(crate) tokens: TokenStream,
    pub(crate) effect: Option<Effect>,
    pub(crate) kind: Option<LitStr>,
    pub(crate) krate: Option<Path>,
    /// Every known key that was written, even when its value could not be read.
    pub(crate) written: HashSet<String>,
}

const KEYS: [&str; 3] = ["effect", "kind", "crate"];

/// Reads `#[capability(..)]`.
pub(crate) fn capability(tokens: TokenStream, errors: &mut Errors) -> CapabilityAttr {
    let mut out = CapabilityAttr { tokens: tokens.clone(), ..CapabilityAttr::default() };
    for piece in pieces(tokens, errors) {
        let key = piece.key_text();
        if !KEYS.contains(&key.as_str()) {
            unknown_key(&piece, "`#[capability]`", &KEYS, errors);
        } else if !out.written.insert(key.clone()) {
            duplicate_key(&piece, errors);
        } else if key == "effect" {
            out.effect = effect(&piece, errors);
        } else if key == "kind" {
            out.kind = piece.value("a word for the kind of account, for example `\"calendar\"`", errors);
        } else {
            out.krate = krate(&piece, errors);
        }
    }
    out
}
