//! The adapter around a capability that records each call of a method, for `testing::harness`.
//!
//! It is generated only for a trait whose methods are all in its own block. The macro sees neither the methods of a
//! supertrait nor the changes that another attribute makes to a method. Without the feature `testing`, the runtime's
//! macro `recording!` removes the adapter.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{
    Attribute, FnArg, ItemTrait, Path, ReceiverKind, ReturnType, Safety, Signature, TraitItem, TraitItemFn,
    WherePredicate,
};

use crate::check::{find_impl, supertraits};
use crate::expand::spans::{at, generated};
use crate::names::plain;

/// Attributes of a trait or a method that do not change signatures.
const INERT: [&str; 11] =
    ["allow", "automock", "cold", "deny", "deprecated", "doc", "expect", "inline", "must_use", "track_caller", "warn"];

/// Returns `fn recording`, an item of `impl Injected`. `None` if the trait is generic, or if some of its methods are
/// not known or cannot be forwarded.
pub(super) fn recording(item: &ItemTrait) -> Option<TokenStream> {
    // Marker traits have no methods.
    let is_marker = |path: &Path| {
        let last = path.segments.last().map(|last| last.ident.to_string());
        last.is_some_and(|last| matches!(&*last, "Send" | "Sync" | "Unpin" | "UnwindSafe" | "RefUnwindSafe"))
    };
    if !item.generics.params.is_empty() {
        return None;
    }
    let (of_trait, others): (Vec<_>, Vec<_>) = item.attrs.iter().partition(|attr| is_called(attr, &["async_trait"]));
    if !supertraits(item).all(|bound| is_marker(&bound.path)) || !others.iter().all(|attr| is_called(attr, &INERT)) {
        return None;
    }
    let name = generated(&item.ident);
    let methods: Option<Vec<_>> = item.items.iter().map(|item| method(&name, item)).collect();
    let methods = methods?;
    let is_deprecated = |item: &TraitItem| match item {
        TraitItem::Fn(method) => method.attrs.iter().any(|attr| is_called(attr, &["deprecated"])),
        _ => false,
    };
    let deprecated = item.items.iter().any(is_deprecated).then(|| quote!(#[allow(deprecated)]));
    Some(quote_spanned! {at(&item.ident)=>
        __rt::recording! {
            fn recording(
                __adapter: ::std::sync::Arc<Self>,
                __recorder: &__rt::Recorder,
            ) -> ::core::option::Option<::std::sync::Arc<Self>> {
                struct __Recording(::std::sync::Arc<dyn #name>, __rt::Recorder);
                #(#of_trait)*
                #[automatically_derived]
                #deprecated
                impl #name for __Recording {
                    #(#methods)*
                }
                ::core::option::Option::Some(::std::sync::Arc::new(__Recording(
                    __adapter,
                    ::core::clone::Clone::clone(__recorder),
                )))
            }
        }
    })
}

/// Returns the method that records its call and forwards it. Its tokens are empty for a method that trait objects lack.
/// `None` for an item that is not a method, or a method that cannot be forwarded.
fn method(name: &Ident, item: &TraitItem) -> Option<TokenStream> {
    let TraitItem::Fn(TraitItemFn { attrs, sig, default, .. }) = item else { return None };
    // `fn f(&self) where Self: Sized {..}` keeps its default body; without one it could not be forwarded.
    if sig.generics.where_clause.iter().flat_map(|clause| &clause.predicates).any(is_sized_self) {
        return default.as_ref().map(|_| TokenStream::new());
    }
    let (conditions, others): (Vec<_>, Vec<_>) = attrs.iter().partition(|attr| is_called(attr, &["cfg"]));
    if !others.iter().all(|attr| is_called(attr, &INERT)) || !is_plain(sig) {
        return None;
    }
    let mut sig = sig.clone();
    let mut arguments = Vec::new();
    for input in &mut sig.inputs {
        if let FnArg::Typed(typed) = input {
            let argument = format_ident!("__argument{}", arguments.len(), span = at(&typed.pat));
            // A pattern such as `(a, b): (u8, u8)` or `_` cannot be passed on by name.
            *typed.pat = syn::parse_quote!(#argument);
            arguments.push(argument);
        }
    }
    let (called, text) = (sig.ident.clone(), plain(&sig.ident));
    let wait = sig.asyncness.map(|_| quote!(.await));
    Some(quote! {
        #(#conditions)*
        #sig {
            // `text()` is the inherent method of `DebugProbe` if the argument is `Debug`, otherwise that of `NotDebug`.
            use __rt::NotDebug as _;
            self.1.note(#text, || ::std::vec![#(__rt::DebugProbe(&#arguments).text()),*]);
            // The full path, because a type may have an inherent method of this name.
            <dyn #name as #name>::#called(&*self.0, #(#arguments),*) #wait
        }
    })
}

/// Whether the attribute has one of these names, with or without a path: `#[mockall::automock]`.
fn is_called(attr: &Attribute, names: &[&str]) -> bool {
    attr.path().segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}

/// Whether the bound is `Self: Sized`, with which a method is absent from trait objects.
fn is_sized_self(predicate: &WherePredicate) -> bool {
    let WherePredicate::Type(typed) = predicate else { return false };
    typed.bounded_ty.to_token_stream().to_string() == "Self"
        && typed.bounds.iter().any(|bound| bound.to_token_stream().to_string().ends_with("Sized"))
}

/// Whether the adapter can forward a call, judged by the signature: the method takes `&self`, has no type parameters,
/// no constant parameters and no `impl Trait`, and is not `unsafe`, `const` or `extern`.
fn is_plain(sig: &Signature) -> bool {
    let has_own_types = sig.generics.type_params().next().is_some() || sig.generics.const_params().next().is_some();
    let is_shared = |receiver: &syn::Receiver| matches!(&receiver.kind, ReceiverKind::Reference(_, _, None));
    let inputs = sig.inputs.iter().all(|input| match input {
        FnArg::Receiver(_) => true,
        FnArg::Typed(typed) => typed.attrs.is_empty() && find_impl(&typed.ty).is_none(),
    });
    let output = match &sig.output {
        ReturnType::Default => true,
        ReturnType::Type(_, ty) => find_impl(ty).is_none(),
    };
    let is_safe = sig.constness.is_none()
        && sig.abi.is_none()
        && sig.variadic.is_none()
        && !matches!(sig.safety, Safety::Unsafe(_));
    sig.receiver().is_some_and(is_shared) && !has_own_types && inputs && output && is_safe
}
