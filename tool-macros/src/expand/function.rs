//! A function tool: the function as written, a marker of its name, and a hidden struct of its arguments.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Index;

use crate::expand::common::{
    derives, described, effect, field_attributes, private, questions, register, tool_impl, validate,
};
use crate::expand::spans::{at, generated};
use crate::model::{Callable, Form, Parameter, Tool, shown_arguments};

/// Everything, for a function without mistakes.
pub(super) fn whole(tool: &Tool) -> TokenStream {
    let Form::Function(function) = &tool.form else { return TokenStream::new() };
    let item = as_written(tool, function);
    let marker = marker(tool);
    let private = private(tool.attr.krate.as_ref());
    let name = generated(&tool.ident);
    let arguments = arguments(tool);
    let component = component(tool, function);
    let tool_impl = tool_impl(tool, &quote!(__Arguments), validate(tool));
    let questions = questions(tool);
    let output_questions = output_questions(function);
    let register = register(&quote!(__Arguments));
    quote! {
        #item
        #marker
        #[doc(hidden)]
        const _: () = {
            use #private as __rt;
            fn __ask_the_compiler() {
                #questions
                #output_questions
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

fn as_written(tool: &Tool, function: &Callable) -> TokenStream {
    let (attrs, vis, sig, body) = (&tool.container.kept, &tool.vis, &function.sig, &function.body);
    quote!(#(#attrs)* #vis #sig #body)
}

/// A type of the function's name: what `definition!` resolves.
fn marker(tool: &Tool) -> TokenStream {
    let (vis, name) = (&tool.vis, generated(&tool.ident));
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
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
    let output = function.output.as_ref().map(ToTokens::to_token_stream).unwrap_or_default();
    let place = function.output.as_ref().map_or_else(|| at(&tool.ident), at);
    let borrowed: Vec<_> = tool.borrowed().collect();
    let mut requirements = TokenStream::new();
    let effect = effect(tool.attr.effect);
    let capabilities = if borrowed.is_empty() {
        quote!(())
    } else {
        let targets = borrowed.iter().map(|one| &one.target);
        for one in &borrowed {
            let target = &one.target;
            requirements.extend(quote_spanned!(at(target)=> __rt::requirement::<#target, #effect>,));
        }
        quote!(__rt::Borrowed<(#(__rt::Cap<#targets>,)*), Self>)
    };
    let borrows = (!borrowed.is_empty()).then(|| {
        quote! {
            #[automatically_derived]
            impl __rt::Borrows for __Arguments {
                const REQUIREMENTS: &'static [fn() -> __rt::Requirement] = &[#requirements];
            }
        }
    });
    let run = call(tool, function);
    quote_spanned! {place=>
        #borrows
        #[automatically_derived]
        impl __rt::ToolComponent for __Arguments {
            type Capabilities = #capabilities;
            type Output = <#output as __rt::ToolReturn>::Output;
            async fn run(
                self,
                __capabilities: Self::Capabilities,
                _: &__rt::Call<Self>,
            ) -> ::core::result::Result<Self::Output, __rt::ToolError> {
                #run
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
            Some(quote!(&*__capabilities.list.#index))
        }
        Parameter::Unusable(_) => None,
    });
    let name = generated(&tool.ident);
    let call = quote!(#name(#(#passed),*));
    let place = error_place(function).unwrap_or_else(|| at(&tool.ident));
    let finish = quote_spanned!(place=> __rt::finish);
    if tool.attr.blocking.is_some() {
        quote!(__rt::blocking(move || #finish(#call)).await)
    } else if function.sig.asyncness.is_some() {
        quote!(#finish(#call.await))
    } else {
        quote!(#finish(#call))
    }
}

fn error_place(function: &Callable) -> Option<proc_macro2::Span> {
    let output = function.output.as_ref()?;
    Some(shown_arguments(output).map_or_else(|| at(output), |(_, error)| at(error)))
}

fn output_questions(function: &Callable) -> TokenStream {
    let Some(output) = &function.output else { return TokenStream::new() };
    let place = shown_arguments(output).map_or_else(|| at(output), |(shown, _)| at(shown));
    described(&quote!(<#output as __rt::ToolReturn>::Output), place)
}
