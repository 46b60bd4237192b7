//! `#[capability]`: a trait that tools may borrow as `&dyn Trait`, with its effect.

use std::collections::HashSet;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{ItemTrait, LitStr, Path, TraitItem, parse_quote_spanned};

use crate::attr::{self, Effect, duplicate_key, pieces, unknown_key};
use crate::errors::Errors;
use crate::expand::common::{self, private};
use crate::expand::spans::{at, generated};
use crate::names::plain;

const KEYS: [&str; 3] = ["effect", "kind", "crate"];

#[derive(Default)]
struct CapabilityAttr {
    effect: Option<Effect>,
    kind: Option<LitStr>,
    krate: Option<Path>,
    written: HashSet<String>,
}

/// `#[capability]`
pub(crate) fn capability(tokens: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let attr = read(tokens, &mut errors);
    let parsed = match syn::parse2::<ItemTrait>(item.clone()) {
        Ok(parsed) => parsed,
        Err(_) => {
            let message = "`#[capability]` stands on a trait";
            match crate::item::keyword(&item) {
                Some(keyword) => errors.at(keyword, message),
                None => errors.span(Span::call_site(), message),
            }
            return [Some(item), errors.into_tokens()].into_iter().flatten().collect();
        }
    };
    check(&attr, &parsed, &mut errors);
    let hidden = implementation(&attr, &parsed);
    let item = with_bounds(parsed);
    match errors.into_tokens() {
        // With a mistake in the attribute the trait still can be borrowed, or every tool would complain too.
        Some(mistakes) if item.generics.params.is_empty() => quote!(#item #hidden #mistakes),
        Some(mistakes) => quote!(#item #mistakes),
        None => quote!(#item #hidden),
    }
}

fn read(tokens: TokenStream, errors: &mut Errors) -> CapabilityAttr {
    let mut out = CapabilityAttr::default();
    for piece in pieces(tokens, errors) {
        let key = piece.key_text();
        if !KEYS.contains(&key.as_str()) {
            unknown_key(&piece, "#[capability]", &KEYS, errors);
        } else if !out.written.insert(key.clone()) {
            duplicate_key(&piece, errors);
        } else if key == "effect" {
            out.effect = attr::effect(&piece, errors);
        } else if key == "kind" {
            out.kind = piece.value("a word for the kind of account, for example `\"calendar\"`", errors);
        } else {
            out.krate = attr::krate(&piece, errors);
        }
    }
    out
}

fn check(attr: &CapabilityAttr, item: &ItemTrait, errors: &mut Errors) {
    if !attr.written.contains("effect") {
        errors.span(
            Span::call_site(),
            "missing `effect`: how far the capability reaches; write `effect = read_only`, `state_change` or `external_side_effect`",
        );
    }
    if let Some(kind) = attr.kind.as_ref().filter(|kind| kind.value().trim().is_empty()) {
        errors.at(kind, "the kind is empty; write a word, for example `\"calendar\"`");
    }
    if !item.generics.params.is_empty() {
        errors.at(&item.generics, "a capability is bound as one `dyn` trait; remove the generic parameters");
    }
    let below =
        |name: &str| item.attrs.iter().any(|attr| attr.path().segments.last().is_some_and(|last| last.ident == name));
    if below("async_trait") {
        return;
    }
    for method in &item.items {
        if let TraitItem::Fn(method) = method
            && let Some(asyncness) = &method.sig.asyncness
        {
            errors.at(
                asyncness,
                "an `async fn` cannot be called through `dyn`; write `#[async_trait]` below `#[capability]`",
            );
        }
    }
}

/// A capability is shared between calls on all threads.
fn with_bounds(mut item: ItemTrait) -> ItemTrait {
    let place = at(&item.ident);
    if item.colon_token.is_none() {
        item.colon_token = Some(syn::Token![:](place));
    }
    item.supertraits.extend([
        parse_quote_spanned!(place=> ::core::marker::Send),
        parse_quote_spanned!(place=> ::core::marker::Sync),
        parse_quote_spanned!(place=> 'static),
    ] as [syn::TypeParamBound; 3]);
    item
}

fn implementation(attr: &CapabilityAttr, item: &ItemTrait) -> TokenStream {
    let private = private(attr.krate.as_ref());
    let effect = common::effect(attr.effect);
    let (name, text) = (generated(&item.ident), plain(&item.ident));
    let place = at(&item.ident);
    let kind = attr.kind.as_ref().map(|kind| {
        let kind = kind.to_token_stream();
        quote_spanned! {place=>
            #[automatically_derived]
            impl __rt::ConnectionKind for dyn #name {
                const KIND: &'static str = #kind;
            }
        }
    });
    quote_spanned! {place=>
        #[doc(hidden)]
        const _: () = {
            use #private as __rt;
            #[automatically_derived]
            impl __rt::Injected for dyn #name {
                type Effect = #effect;
                const NAME: &'static str = #text;
            }
            #kind
        };
    }
}
