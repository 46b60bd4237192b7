//! Expands an item with mistakes. The item stays and can still be named as a tool, so that no other errors follow.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use crate::check::find_self;
use crate::expand::function::{as_written, marker};
use crate::expand::runtime::private;
use crate::expand::spans::generated;
use crate::expand::struct_form;
use crate::model::{Form, Tool};

pub(super) fn item(tool: &Tool) -> TokenStream {
    let private = private(tool.attr.krate.value());
    let (item, definition) = match &tool.form {
        Form::Function(function) => {
            let item = as_written(&tool.container.kept, &tool.vis, &function.sig, &function.body);
            if tool.is_method || function.sig.receiver().is_some() || find_self(&function.sig).is_some() {
                // The function is inside an `impl`, which cannot contain the implementations below.
                return item;
            }
            let marker = marker(&tool.vis, &function.sig);
            (quote!(#item #marker), None)
        }
        Form::Struct(item) => (struct_form::item(&private, item), Some(definition(tool, &private))),
    };
    let name = generated(&tool.ident);
    let generics = match &tool.form {
        Form::Function(_) => syn::Generics::default(),
        Form::Struct(_) => tool.generics.clone(),
    };
    let (generics, arguments, clause) = generics.split_for_impl();
    // Never called: the mistakes keep the crate from compiling.
    let named = quote! {
        #[automatically_derived]
        impl #generics #private::Named for #name #arguments #clause {
            fn visit<__V: #private::Visitor>(_: __V) -> __V::Answer {
                ::core::unreachable!()
            }
        }
    };
    [Some(item), Some(named), definition].into_iter().flatten().collect()
}

fn definition(tool: &Tool, private: &TokenStream) -> TokenStream {
    let (vis, name) = (&tool.vis, generated(&tool.ident).into_token_stream());
    let (generics, arguments, clause) = tool.generics.split_for_impl();
    quote! {
        impl #generics #name #arguments #clause {
            #vis fn definition() -> #private::Definition {
                ::core::unreachable!()
            }
        }
    }
}
