//! The generated struct of the arguments. It has the derives of serde and schemars; the author's item keeps only its
//! own derives.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use crate::checked::{Argument, ArgumentDefault, Checked, Schema};
use crate::expand::spans::at;

/// Returns `struct __Arguments { .. }` and the functions of its defaults.
pub(super) fn arguments(tool: &Checked) -> TokenStream {
    let derives = derives(tool.schema);
    let container = &tool.derived;
    let defaults = tool.arguments.iter().filter_map(default_function);
    let fields = tool.arguments.iter().map(|argument| {
        let (name, ty) = (&argument.ident, &argument.ty);
        let attributes = field_attributes(argument, tool.schema);
        quote!(#attributes #name: #ty,)
    });
    quote! {
        #(#defaults)*
        #derives
        #(#container)*
        struct __Arguments { #(#fields)* }
    }
}

fn derives(schema: Schema) -> TokenStream {
    // These attributes take a path as text. `__rt` stands for the author's path, which may be `$crate::..`.
    match schema {
        Schema::Derived => quote! {
            #[derive(__rt::serde::Deserialize, __rt::schemars::JsonSchema)]
            #[serde(crate = "__rt::serde", deny_unknown_fields)]
            #[schemars(crate = "__rt::schemars")]
        },
        Schema::None(_) => quote! {
            #[derive(__rt::serde::Deserialize)]
            #[serde(crate = "__rt::serde", deny_unknown_fields)]
        },
    }
}

fn field_attributes(argument: &Argument, schema: Schema) -> TokenStream {
    // `#[schemars(..)]` is only allowed with its derive.
    let is_read = |attr: &&syn::Attribute| match schema {
        Schema::Derived => true,
        Schema::None(_) => !attr.path().is_ident("schemars"),
    };
    let derived = argument.derived.iter().filter(is_read);
    let mut tokens = quote!(#(#derived)*);
    if let Some(ArgumentDefault::Expr(_)) = &argument.default {
        // `#[serde(default = "__default_count")]` takes a path, so the expression is put in a function.
        let function = default_name(argument).to_string();
        tokens.extend(quote!(#[serde(default = #function)]));
    }
    if argument.is_nested_option {
        tokens.extend(quote!(#[serde(deserialize_with = "__rt::nullable")]));
        if argument.default.is_none() {
            // The second key keeps `"default": null` out of the schema.
            tokens.extend(quote!(#[serde(default, skip_serializing_if = "::core::option::Option::is_none")]));
        }
    }
    tokens
}

fn default_function(argument: &Argument) -> Option<TokenStream> {
    let Some(ArgumentDefault::Expr(expr)) = &argument.default else { return None };
    let (ty, function) = (&argument.ty, default_name(argument));
    Some(quote_spanned!(at(ty)=> fn #function() -> #ty { #expr }))
}

fn default_name(argument: &Argument) -> Ident {
    format_ident!("__default_{}", argument.ident, span = at(&argument.ident))
}
