//! Expands the `impl` block of a struct tool: the block as written, and a `ToolComponent` that calls its methods.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Signature, Type};

use crate::attr;
use crate::check::check_methods;
use crate::errors::Errors;
use crate::expand::runtime::private;
use crate::expand::spans::{at, generated};
use crate::item::{Methods, without_helpers};
use crate::methods::{Called, Method, Passed};
use crate::model::output_span;

/// Expands `#[tool]` on an `impl` block.
pub(super) fn methods(attr: TokenStream, item: TokenStream, block: &Methods, errors: &mut Errors) -> TokenStream {
    let krate = attr::methods(attr, errors);
    let private = private(krate.value());
    let component = match check_methods(block, errors) {
        Some(called) if errors.is_empty() => component(block, &called),
        // Without a `ToolComponent`, the compiler would also report the struct.
        _ => {
            let item = without_helpers(item);
            let unfinished = block.of_trait.is_none().then(|| unfinished(block, &private));
            return quote!(#item #unfinished);
        }
    };
    let ty = &block.ty;
    // Without `#[tool(..)]` on the struct, the methods would never be called.
    let assertion = quote_spanned!(at(ty)=> fn __assertions() { __rt::assert_struct::<#ty>(); });
    quote! {
        #[allow(clippy::missing_errors_doc, clippy::needless_pass_by_value, clippy::unnecessary_wraps, clippy::unused_async)]
        #item
        #[doc(hidden)]
        const _: () = {
            use #private as __rt;
            #assertion
            #component
        };
    }
}

fn component(block: &Methods, called: &Called) -> TokenStream {
    let Called { run, reconcile, precondition } = called;
    let ty = &block.ty;
    let held = held(called);
    let kinds = held.iter().map(|target| quote_spanned!(at(target)=> __rt::Cap<#target>));
    let output = &run.output;
    let shown = quote_spanned!(output_span(output)=> <#output as __rt::ToolReturn>::Output);
    let capabilities = match held.first() {
        // With a trailing comma, a single capability is a tuple, too: `(Cap<dyn Bank>,)`.
        Some(first) => quote_spanned!(at(first)=> (#(#kinds,)*)),
        None => quote!(()),
    };
    let body = call(ty, run, &|target| owned(target, &held));
    let signature = |name: &Ident, returned: TokenStream| {
        quote_spanned! {at(name)=>
            async fn #name(
                self,
                __held: Self::Capabilities,
                __call: &__rt::Call<Self>,
            ) -> ::core::result::Result<#returned, __rt::ToolError>
        }
    };
    let run = signature(&generated(&run.sig.ident), quote!(Self::Output));
    let reconcile = reconcile.as_ref().map(|method| {
        let body = call(ty, method, &|target| owned(target, &held));
        let signature = signature(&generated(&method.sig.ident), quote!(__rt::Reconciled<Self::Output>));
        quote!(#signature { #body })
    });
    let precondition = precondition.as_ref().map(|method| {
        let body = call(ty, method, &|target| quote_spanned!(at(target)=> __capabilities.read::<#target>()?));
        let name = generated(&method.sig.ident);
        quote_spanned! {at(&name)=>
            async fn #name(
                self,
                __capabilities: __rt::Capabilities,
            ) -> ::core::result::Result<__rt::Precondition, __rt::ToolError> {
                #body
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl __rt::ToolComponent for #ty {
            type Capabilities = #capabilities;
            type Output = #shown;
            #run { #body }
            #reconcile
            #precondition
        }
    }
}

/// Returns the types that the methods borrow, each once.
fn held(called: &Called) -> Vec<Type> {
    let mut held: Vec<Type> = Vec::new();
    let others = called.reconcile.iter().chain(&called.precondition);
    for target in called.run.injected().chain(others.flat_map(Method::injected)) {
        if !held.iter().any(|known| same(known, target)) {
            held.push(target.clone());
        }
    }
    held
}

fn same(left: &Type, right: &Type) -> bool {
    left.to_token_stream().to_string() == right.to_token_stream().to_string()
}

/// Returns the expression for a borrowed value, from the tuple of the tool's capabilities.
fn owned(target: &Type, held: &[Type]) -> TokenStream {
    let position = held.iter().position(|known| same(known, target)).unwrap_or_default();
    let position = Literal::usize_unsuffixed(position);
    // A `Cap` dereferences to the adapter: `&*__held.0`.
    quote_spanned!(at(target)=> &*__held.#position)
}

/// Returns the call of one method, with its parameters in the author's order.
fn call(ty: &Type, method: &Method, injected: &dyn Fn(&Type) -> TokenStream) -> TokenStream {
    let passed = method.parameters.iter().map(|parameter| match parameter {
        Passed::Call => quote!(__call),
        Passed::Injected(target) => injected(target),
    });
    let name = generated(&method.sig.ident);
    // The call names the type, because `self.run()` could resolve to the method of a trait in scope.
    let called = quote_spanned!(at(&method.sig.ident)=> <#ty>::#name(self, #(#passed),*));
    let wait = is_async(&method.sig).then(|| quote!(.await));
    quote_spanned!(output_span(&method.output)=> __rt::returned(#called #wait))
}

fn is_async(sig: &Signature) -> bool {
    sig.asyncness.is_some()
}

/// Returns a `ToolComponent` for a block with mistakes. It never runs, because the crate does not compile.
fn unfinished(block: &Methods, private: &TokenStream) -> TokenStream {
    let ty = &block.ty;
    let (generics, _, clause) = block.generics.split_for_impl();
    let run = format_ident!("run");
    quote! {
        #[automatically_derived]
        impl #generics #private::ToolComponent for #ty #clause {
            type Capabilities = ();
            type Output = ();
            async fn #run(self, (): (), _: &#private::Call<Self>) -> ::core::result::Result<(), #private::ToolError> {
                ::core::unreachable!()
            }
        }
    }
}
