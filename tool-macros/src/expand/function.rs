//! Expands a function tool: the function as written, a marker type of the same name, and the code that calls it.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Signature, Token, Type, Visibility};

use crate::attr::{Hook, HookArgument};
use crate::checked::{Checked, Function, Passed};
use crate::expand::declaration::{effect, named, tool_impl};
use crate::expand::spans::{at, generated};
use crate::model::{output_span, peel};
use crate::names::plain;

/// Returns the function and its marker.
pub(super) fn item(tool: &Checked, function: &Function) -> TokenStream {
    let item = as_written(&function.attrs, &tool.vis, &function.sig, &function.body);
    let marker = marker(&tool.vis, &function.sig);
    quote!(#item #marker)
}

/// Returns the function. It allows the lints against code that `#[tool]` requires: owned arguments, many of them, a
/// returned `Result`, and a doc comment written for a model.
pub(super) fn as_written(attrs: &[Attribute], vis: &Visibility, sig: &Signature, body: &TokenStream) -> TokenStream {
    quote! {
        #(#attrs)*
        #[allow(
            clippy::missing_errors_doc,
            clippy::needless_pass_by_value,
            clippy::too_many_arguments,
            clippy::unnecessary_wraps
        )]
        #vis #sig #body
    }
}

/// Returns a type with the function's name, for `definition!`. Errors about it appear at the name.
pub(super) fn marker(vis: &Visibility, sig: &Signature) -> TokenStream {
    let name = generated(&sig.ident);
    quote_spanned! {at(&sig.ident)=>
        #[doc(hidden)]
        #vis enum #name {}
    }
}

/// Returns the implementations that make the generated struct of arguments a tool.
pub(super) fn impls(tool: &Checked, function: &Function) -> TokenStream {
    let component = component(tool, function);
    let tool_impl = tool_impl(tool, &quote_spanned!(output_span(&function.output)=> __Arguments));
    let named = named(&generated(&tool.ident), &quote!(__Arguments));
    quote!(#component #tool_impl #named)
}

fn component(tool: &Checked, function: &Function) -> TokenStream {
    let effect = effect(tool.effect);
    let requirements = function.injected().map(|target| {
        // The syntax selects only the wording of the error; traits decide whether there is one.
        let probe = if matches!(target, Type::TraitObject(_)) { "of_trait" } else { "of_type" };
        let probe = Ident::new(probe, at(target));
        quote_spanned!(at(target)=> __rt::BorrowProbe::<#target>::#probe::<#target, #effect>)
    });
    let requirements: Vec<_> = requirements.collect();
    let requirements = (!requirements.is_empty()).then(|| {
        quote! {
            const REQUIREMENTS: &'static [fn() -> __rt::Requirement] = {
                use __rt::NotInjected as _;
                &[#(#requirements),*]
            };
        }
    });
    // `Borrows<dyn A, Borrows<dyn B, ()>>`, built from the last parameter to the first.
    let borrows = function.injected().rev().fold(quote!(()), |rest, target| quote!(__rt::Borrows<#target, #rest>));
    let output = &function.output;
    let call = call(tool, function);
    let precondition = function.precondition.as_ref().map(|hook| precondition(function, hook));
    quote_spanned! {at(&tool.ident)=>
        #[automatically_derived]
        impl __rt::FnTool for __Arguments {
            type Return = #output;
            #requirements
            fn call(
                self,
                __borrowed: __rt::Borrowed<Self>,
            ) -> impl ::core::future::Future<Output = ::core::option::Option<Self::Return>> + ::core::marker::Send {
                use __rt::Otherwise as _;
                __rt::FutureProbe::<#borrows>::send(#call)
            }
            #precondition
        }
    }
}

/// Returns the call of the author's function. The generated future yields `None` if a capability is not bound, or is
/// bound to another type.
fn call(tool: &Checked, function: &Function) -> TokenStream {
    let mut position = 0_usize;
    let passed = function.parameters.iter().map(|parameter| match parameter {
        Passed::Argument(name) => quote!(self.#name),
        Passed::Injected(_, target) => {
            let target = peel(target);
            let borrowed = quote_spanned!(at(target)=> __borrowed.get::<#target>(#position)?);
            // The position among the borrowed parameters, as in `REQUIREMENTS`.
            position += 1;
            borrowed
        }
    });
    let name = generated(&tool.ident).to_token_stream();
    let call = quote!(#name(#(#passed),*));
    if function.is_blocking {
        // `blocking` moves the arguments to another thread; `call` below runs in place.
        quote!(__rt::blocking(move || ::core::option::Option::Some(#call)))
    } else if function.sig.asyncness.is_some() {
        let called = quote!(::core::option::Option::Some(#call.await));
        quote_spanned!(at(&tool.ident)=> async move { #called })
    } else {
        quote!(__rt::call(move || ::core::option::Option::Some(#call)))
    }
}

/// Returns the call of the author's precondition, with the parameters that the attribute lists, or with all of them.
/// Arguments are passed by reference, or by value with `*`.
fn precondition(function: &Function, hook: &Hook) -> TokenStream {
    let Hook { path, arguments } = hook;
    let injected = |name: &Ident| {
        function.parameters.iter().find_map(|parameter| match parameter {
            Passed::Injected(Some(known), target) if plain(known) == plain(name) => Some(&**target),
            _ => None,
        })
    };
    let read = |target: &Type, place: Span| {
        let target = respanned(target.to_token_stream(), place);
        quote_spanned!(place=> __capabilities.read::<#target>()?)
    };
    let argument = |star: Option<&Token![*]>, name: &Ident, place: Span| {
        let mut field = name.clone();
        field.set_span(place);
        if star.is_some() { quote_spanned!(place=> self.#field) } else { quote_spanned!(place=> &self.#field) }
    };
    let passed: Vec<TokenStream> = match arguments {
        Some(listed) => {
            let passed = listed.iter().map(|HookArgument { star, name }| match injected(name) {
                Some(target) => read(target, at(name)),
                None => argument(star.as_ref(), name, at(name)),
            });
            passed.collect()
        }
        None => {
            let passed = function.parameters.iter().map(|parameter| match parameter {
                Passed::Argument(name) => argument(None, name, at(path)),
                Passed::Injected(_, target) => read(target, at(path)),
            });
            passed.collect()
        }
    };
    quote_spanned! {at(path)=>
        const STATES: bool = true;
        fn precondition(
            self,
            __capabilities: __rt::Capabilities,
        ) -> impl ::core::future::Future<
            Output = ::core::result::Result<__rt::Precondition, __rt::ToolError>,
        > + ::core::marker::Send + 'static {
            async move { __rt::returned(#path(#(#passed),*).await) }
        }
    }
}

/// Returns the tokens with another span, so that an error about a type points at the name in the attribute.
fn respanned(tokens: TokenStream, place: Span) -> TokenStream {
    let respanned = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), respanned(group.stream(), place));
            inner.set_span(place);
            TokenTree::Group(inner)
        }
        mut other => {
            other.set_span(other.span().located_at(place));
            other
        }
    });
    respanned.collect()
}
