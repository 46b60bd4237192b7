//! A function tool: the function as written, a marker of its name, and a hidden struct of its arguments.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Index;

use crate::expand::common::{
    derives, described, effect, field_attributes, private, questions, register, tool_impl, validate,
};
use crate::expand::spans::{at, generated};
use crate::model::{Callable, Form, Parameter, Tool, output_span};

/// Everything, for a function without mistakes.
pub(super) fn whole(tool: &Tool) -> TokenStream {
    let Form::Function(function) = &tool.form else { return TokenStream::new() };
    let item = as_written(tool, function);
    let marker = marker(tool);
    let private = private(tool.attr.krate.as_ref());
    let name = generated(&tool.ident);
    let arguments = arguments(tool);
    let component = component(tool, function);
    let output = function.output.to_token_stream();
    let blame = function.output.as_ref().map_or_else(|| tool.ident.span(), output_span);
    let tool_impl = tool_impl(tool, &quote_spanned!(blame=> __Arguments), validate(tool));
    let questions = questions(tool);
    let described = described(&quote!(__Arguments), &output);
    let register = register(&quote!(__Arguments));
    quote! {
        #item
        #marker
        #[doc(hidden)]
        const _: () = {
            use #private as __rt;
            fn __ask_the_compiler() {
                use __rt::Otherwise as _;
                #questions
                #described
            }
            #arguments
            #component
            #tool_impl
            #[automatically_derived]
            impl __rt::Named for #name {
                fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
                    visitor.visit::<__Arguments>()
                }
            }
            #register
        };
    }
}

/// The function and a marker that can be named, so that a mistake in the attribute stays the only one.
pub(super) fn unfinished(tool: &Tool) -> TokenStream {
    let Form::Function(function) = &tool.form else { return TokenStream::new() };
    let item = as_written(tool, function);
    if function.sig.receiver().is_some() {
        // It stands in an `impl`, where nothing else may.
        return item;
    }
    let marker = marker(tool);
    let private = private(tool.attr.krate.as_ref());
    let name = generated(&tool.ident);
    quote! {
        #item
        #marker
        #[automatically_derived]
        impl #private::Named for #name {
            fn visit<V: #private::Visitor>(_: V) -> V::Answer {
                ::core::unreachable!()
            }
        }
    }
}

/// The function as it stands. What this attribute itself asks for, owned arguments and a `Result`, is no fault of it.
fn as_written(tool: &Tool, function: &Callable) -> TokenStream {
    let (attrs, vis, sig, body) = (&tool.container.kept, &tool.vis, &function.sig, &function.body);
    quote! {
        #[allow(
            clippy::needless_pass_by_value,
            clippy::too_many_arguments,
            clippy::unnecessary_wraps,
            reason = "a tool owns its arguments, has as many as its schema, and returns a `Result`"
        )]
        #(#attrs)* #vis #sig #body
    }
}

/// A type of the function's name: what `definition!` resolves.
fn marker(tool: &Tool) -> TokenStream {
    let (vis, name) = (&tool.vis, generated(&tool.ident));
    quote! {
        #[doc(hidden)]
        #vis enum #name {}
    }
}

fn arguments(tool: &Tool) -> TokenStream {
    let derives = derives(tool);
    let container = &tool.container.derived;
    let mut functions = TokenStream::new();
    let mut fields = TokenStream::new();
    for argument in &tool.arguments {
        let (name, ty) = (&argument.ident, &argument.ty);
        let mut default = None;
        if let Some(expr) = argument.default_expr() {
            let function = default_name(name);
            functions.extend(quote_spanned!(at(ty)=> fn #function() -> #ty { #expr }));
            default = Some(function.to_string());
        }
        let attributes = field_attributes(tool, argument, default.as_deref());
        fields.extend(quote!(#attributes #name: #ty,));
    }
    quote! {
        #functions
        #derives
        #(#container)*
        struct __Arguments { #fields }
    }
}

fn default_name(argument: &Ident) -> Ident {
    format_ident!("__default_{}", argument, span = at(argument))
}

fn component(tool: &Tool, function: &Callable) -> TokenStream {
    let Some(output) = &function.output else { return TokenStream::new() };
    let effect = effect(tool.attr.effect);
    let targets = tool.borrowed().map(|one| &one.target);
    let requirements = tool.borrowed().map(|one| {
        let target = &one.target;
        quote_spanned!(at(target)=> __rt::requirement::<#target, #effect>)
    });
    let call = call(tool, function);
    let place = at(&tool.ident);
    quote_spanned! {place=>
        #[automatically_derived]
        impl __rt::FnTool for __Arguments {
            type Lent = (#(__rt::Cap<#targets>,)*);
            type Return = #output;
            const REQUIREMENTS: &'static [fn() -> __rt::Requirement] = &[#(#requirements),*];
            async fn call(self, __lent: Self::Lent) -> Self::Return {
                #call
            }
        }
    }
}

/// The author's function, called with its parameters in its order.
fn call(tool: &Tool, function: &Callable) -> TokenStream {
    let mut next = 0_usize;
    let passed = function.parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Owned(index) => {
            let name = &tool.arguments.get(*index)?.ident;
            Some(quote!(self.#name))
        }
        Parameter::Borrowed(_) => {
            let index = Index::from(next);
            next += 1;
            Some(quote!(&*__lent.#index))
        }
        Parameter::Unusable(_) => None,
    });
    let name = generated(&tool.ident);
    let call = quote!(#name(#(#passed),*));
    if tool.attr.blocking.is_some() {
        quote!(__rt::blocking(move || #call).await)
    } else if function.sig.asyncness.is_some() {
        quote!(#call.await)
    } else {
        call
    }
}
