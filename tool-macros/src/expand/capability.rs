//! `#[capability]`: a trait that tools may borrow as `&dyn Trait`, with its effect.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{ItemTrait, TraitBound, Type, TypeParamBound, WherePredicate, parse_quote_spanned};

use crate::attr::{self, CapabilityAttr};
use crate::check::check_capability;
use crate::errors::Errors;
use crate::expand::common::{self, private};
use crate::expand::spans::{at, generated};
use crate::names::plain;

/// `#[capability]`
pub(crate) fn capability(tokens: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let attr = attr::capability(tokens, &mut errors);
    let Ok(parsed) = syn::parse2::<ItemTrait>(item.clone()) else {
        let message = "`#[capability]` stands on a trait";
        match crate::item::keyword(&item) {
            Some(keyword) => errors.at(keyword, message),
            None => errors.span(Span::call_site(), message),
        }
        return [Some(item), errors.into_tokens()].into_iter().flatten().collect();
    };
    let can_be_borrowed = check_capability(&attr, &parsed, &mut errors);
    let hidden = implementation(&attr, &parsed);
    let item = with_bounds(parsed);
    match errors.into_tokens() {
        // With a mistake in the attribute the trait still can be borrowed, or every tool would complain too.
        Some(mistakes) if can_be_borrowed => quote!(#item #hidden #mistakes),
        Some(mistakes) => quote!(#item #mistakes),
        None => quote!(#item #hidden),
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
    ] as [TypeParamBound; 3]);
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
    let builds_on = supertraits(item).map(|bound| {
        quote_spanned! {at(bound)=>
            __rt::assert_reach::<dyn #bound + 'static, { __rt::ReachProbe::<dyn #bound + 'static>::REACH.is_within(
                <#effect as __rt::EffectLevel>::EFFECT
            ) }>();
        }
    });
    let builds_on: TokenStream = builds_on.collect();
    let asks = (!builds_on.is_empty()).then(|| {
        quote_spanned! {place=>
            fn __ask_the_compiler() {
                use __rt::ReachesNowhere as _;
                #builds_on
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
            #asks
        };
    }
}

/// The traits that this one builds on. What they can do, whoever borrows this one can do too.
fn supertraits(item: &ItemTrait) -> impl Iterator<Item = &TraitBound> {
    let predicates = item.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let of_self = predicates.filter_map(|predicate| match predicate {
        WherePredicate::Type(typed) => match &typed.bounded_ty {
            Type::Path(path) if path.path.is_ident("Self") => Some(&typed.bounds),
            _ => None,
        },
        _ => None,
    });
    let bounds = item.supertraits.iter().chain(of_self.flatten());
    bounds.filter_map(|bound| match bound {
        // `?Sized` asks for nothing.
        TypeParamBound::Trait(bound) if bound.maybe.is_none() => Some(bound),
        _ => None,
    })
}
