//! A struct tool: the struct as written with its derives, and what the attribute says about it.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Fields, ItemStruct};

use crate::expand::common::{
    derives, described, effect, field_attributes, private, questions, register, tool_impl, validate,
};
use crate::expand::spans::{at, generated};
use crate::model::{Form, Tool};
use crate::names::plain;

/// Everything, for a struct without mistakes.
///
/// The questions stand above the item: the compiler reads from the top, and the derives complain too.
pub(super) fn whole(tool: &Tool) -> TokenStream {
    let Form::Structure(item) = &tool.form else { return TokenStream::new() };
    let derives = derives(tool);
    let container = &tool.container.derived;
    let item = with_fields(tool, item, true);
    let private = private(tool.attr.krate.as_ref());
    let name = generated(&tool.ident);
    let vis = &tool.vis;
    let defaults = defaults(tool);
    let tool_impl = tool_impl(tool, &tool.ident.to_token_stream(), validate(tool));
    let questions = questions(tool);
    let effect = effect(tool.attr.effect);
    let allowed = quote_spanned! {at(&tool.ident)=>
        __rt::assert_allowed::<#effect, _>(&__rt::ComponentProbe::<#name>::HOLDS);
    };
    let described = described(&name.to_token_stream(), &tool.ident.to_token_stream());
    let register = register(&name.to_token_stream());
    quote! {
        #[doc(hidden)]
        const _: () = {
            use #private as __rt;
            fn __ask_the_compiler() {
                use __rt::Otherwise as _;
                #questions
                #allowed
                #described
            }
        };
        #derives
        #(#container)*
        #item
        #[doc(hidden)]
        const _: () = {
            use #private as __rt;
            #tool_impl
            impl #name {
                /// The authoritative definition of this tool, made without a registry.
                #vis fn definition() -> __rt::Definition {
                    __rt::definition::<Self>()
                }
                #defaults
            }
            #[automatically_derived]
            impl __rt::Named for #name {
                fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
                    visitor.visit::<Self>()
                }
            }
            #register
        };
    }
}

/// The struct with a definition that can be named, so that a mistake in the attribute stays the only one.
pub(super) fn unfinished(tool: &Tool) -> TokenStream {
    let Form::Structure(item) = &tool.form else { return TokenStream::new() };
    let item = with_fields(tool, item, false);
    let private = private(tool.attr.krate.as_ref());
    let (vis, name) = (&tool.vis, generated(&tool.ident));
    let (generics, arguments, clause) = tool.generics.split_for_impl();
    quote! {
        #item
        #[automatically_derived]
        impl #generics #private::Named for #name #arguments #clause {
            fn visit<__V: #private::Visitor>(_: __V) -> __V::Answer {
                ::core::unreachable!()
            }
        }
        impl #generics #name #arguments #clause {
            #vis fn definition() -> #private::Definition {
                ::core::unreachable!()
            }
        }
    }
}

/// The author's struct; `derived` is whether the derives stand above it and read their attributes.
fn with_fields(tool: &Tool, item: &ItemStruct, derived: bool) -> ItemStruct {
    let mut item = item.clone();
    item.attrs.clone_from(&tool.container.kept);
    let Fields::Named(fields) = &mut item.fields else { return item };
    for (field, argument) in fields.named.iter_mut().zip(&tool.arguments) {
        field.attrs.clone_from(&argument.attr.kept);
        if derived {
            let default = format!("{}::__default_{}", tool.ident, plain(&argument.ident));
            let attributes = field_attributes(tool, argument, Some(&default));
            let parsed = syn::parse::Parser::parse2(syn::Attribute::parse_outer, attributes);
            field.attrs.extend(parsed.unwrap_or_default());
        } else {
            let docs = argument.attr.derived.iter().filter(|attr| attr.path().is_ident("doc"));
            field.attrs.extend(docs.cloned());
        }
    }
    item
}

fn defaults(tool: &Tool) -> TokenStream {
    let functions = tool.arguments.iter().filter_map(|argument| {
        let expr = argument.default_expr()?;
        let (ty, function) = (&argument.ty, format_ident!("__default_{}", argument.ident, span = at(&argument.ty)));
        Some(quote_spanned! {at(ty)=>
            #[doc(hidden)]
            fn #function() -> #ty { #expr }
        })
    });
    quote!(#(#functions)*)
}
