//! Expands `#[capability]` on a trait that tools may borrow as `&dyn Trait`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{ItemTrait, TypeParamBound, parse_quote_spanned};

use crate::attr::{self, CapabilityAttr, Reach};
use crate::check::{check_capability, supertraits};
use crate::errors::Errors;
use crate::expand::declaration;
use crate::expand::recording::recording;
use crate::expand::runtime::private;
use crate::expand::spans::{at, generated};
use crate::names::plain;

/// Expands `#[capability]`.
pub(crate) fn capability(tokens: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let attr = attr::capability(tokens, &mut errors);
    let Ok(parsed) = syn::parse2::<ItemTrait>(item.clone()) else {
        let message = "`#[capability]` is for traits";
        match crate::item::keyword(&item) {
            Some(keyword) => errors.at(keyword, message),
            None => errors.span(Span::call_site(), message),
        }
        let mistakes = errors.into_tokens();
        return item.into_iter().chain(mistakes).collect();
    };
    // A mistake in the attribute does not prevent the implementation; otherwise every tool that borrows the trait would
    // fail, too.
    let hidden = check_capability(&attr, &parsed, &mut errors).then(|| implementation(&attr, &parsed));
    let item = with_bounds(parsed);
    let mistakes = errors.into_tokens();
    quote!(#item #hidden #mistakes)
}

/// Adds `Send + Sync + 'static`, because calls on all threads share a capability.
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
    let private = private(attr.krate.value());
    // Without a readable effect the crate does not compile anyway, so any effect serves here.
    let effect = declaration::effect(attr.effect.value().copied().unwrap_or(Reach::ReadOnly));
    let (name, text) = (generated(&item.ident), plain(&item.ident));
    let place = at(&item.ident);
    let (generics, parameters, clause) =
        (static_parameters(item), item.generics.split_for_impl().1, &item.generics.where_clause);
    let kind = attr.kind.value().map(|kind| {
        quote_spanned! {place=>
            #[automatically_derived]
            impl #generics __rt::ConnectionKind for dyn #name #parameters #clause {
                const KIND: &'static str = #kind;
            }
        }
    });
    let borrowing = if kind.is_some() { quote!(__rt::ThroughConnection) } else { quote!(__rt::Directly) };
    let own = match attr.kind.value() {
        Some(kind) => quote!(::core::option::Option::Some(#kind)),
        None => quote!(::core::option::Option::None),
    };
    // For `trait Mail: Contacts` with the effect `read_only`, this is a compile error if `Contacts` can write.
    let builds_on = supertraits(item).map(|bound| {
        quote_spanned! {at(bound)=>
            __rt::assert_known::<dyn #bound + 'static, { __rt::ReachProbe::<dyn #bound + 'static>::KNOWN }>();
            __rt::assert_reach::<dyn #bound + 'static, { __rt::ReachProbe::<dyn #bound + 'static>::REACH.is_within(
                <#effect as __rt::EffectLevel>::EFFECT
            ) }>();
            __rt::assert_account::<dyn #bound + 'static, {
                __rt::ReachProbe::<dyn #bound + 'static>::ACCOUNTS.are_of(#own)
            }>();
        }
    });
    let builds_on: TokenStream = builds_on.collect();
    // The supertraits of a generic trait may use its parameters. No assertion is needed, because the trait is refused.
    let assertions = (!builds_on.is_empty() && item.generics.params.is_empty()).then(|| {
        quote_spanned! {place=>
            fn __assertions() {
                use __rt::Otherwise as _;
                #builds_on
            }
        }
    });
    let recording = recording(item);
    quote_spanned! {place=>
        #[doc(hidden)]
        const _: () = {
            use #private as __rt;
            #[automatically_derived]
            impl #generics __rt::Injected for dyn #name #parameters #clause {
                type Effect = #effect;
                type Borrowing = #borrowing;
                const NAME: &'static str = #text;
                #recording
            }
            #kind
            #assertions
        };
    }
}

/// The parameters of a generic trait, with the bounds that a trait object of it needs.
fn static_parameters(item: &ItemTrait) -> TokenStream {
    let mut generics = item.generics.clone();
    for parameter in generics.type_params_mut() {
        // `dyn Store<T>` is `'static` only if `T` is.
        parameter.bounds.push(parse_quote_spanned!(at(&item.ident)=> 'static));
    }
    generics.split_for_impl().0.to_token_stream()
}
