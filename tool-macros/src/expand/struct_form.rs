//! Expands a struct tool: the struct as written, and the code that builds it from the generated struct of arguments.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ItemStruct;

use crate::checked::{Checked, Schema};
use crate::expand::declaration::{named, tool_impl};
use crate::expand::spans::generated;

/// Returns the struct, with a derive that generates nothing but declares `#[arg(..)]`, `#[serde(..)]` and the others.
pub(super) fn item(private: &TokenStream, item: &ItemStruct) -> TokenStream {
    quote! {
        #[derive(#private::Attributes)]
        #item
    }
}

/// Returns the implementations that make the struct a tool.
pub(super) fn impls(tool: &Checked) -> TokenStream {
    let name = generated(&tool.ident);
    let vis = &tool.vis;
    let fields: Vec<_> = tool.arguments.iter().map(|argument| &argument.ident).collect();
    let schema = match tool.schema {
        Schema::Derived => Some(json_schema(&name)),
        Schema::None(_) => None,
    };
    let tool_impl = tool_impl(tool, &tool.ident.to_token_stream());
    let named = named(&name, &name.to_token_stream());
    quote! {
        #[automatically_derived]
        impl<'de> __rt::serde::Deserialize<'de> for #name {
            fn deserialize<D: __rt::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                // The derives are on `__Arguments`. On the author's struct they could clash with the author's derives.
                let __Arguments { #(#fields),* } = __rt::serde::Deserialize::deserialize(deserializer)?;
                ::core::result::Result::Ok(Self { #(#fields),* })
            }
        }
        #schema
        #tool_impl
        impl #name {
            /// Returns the definition of this tool, made without a registry.
            ///
            /// # Errors
            /// The name or a schema of the tool is not allowed.
            #vis fn definition() -> __rt::Definition {
                __rt::definition::<Self>()
            }
        }
        #named
    }
}

fn json_schema(name: &syn::Ident) -> TokenStream {
    let text = crate::names::plain(name);
    quote! {
        #[automatically_derived]
        impl __rt::schemars::JsonSchema for #name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#text)
            }
            fn schema_id() -> ::std::borrow::Cow<'static, str> {
                // Two tools can have structs of one name, and schemars tells types apart by this id.
                ::std::borrow::Cow::Borrowed(::core::concat!(::core::module_path!(), "::", #text))
            }
            fn json_schema(generator: &mut __rt::schemars::SchemaGenerator) -> __rt::schemars::Schema {
                <__Arguments as __rt::schemars::JsonSchema>::json_schema(generator)
            }
        }
    }
}
