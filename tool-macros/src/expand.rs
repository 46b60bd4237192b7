//! Turns an item into tokens: the item, one hidden block, then one `compile_error!` for each mistake.

mod arguments;
mod assertions;
mod capability;
mod declaration;
mod function;
mod methods;
mod recording;
mod runtime;
mod spans;
mod struct_form;
#[cfg(test)]
mod tests;
mod unfinished;

use proc_macro2::TokenStream;
use quote::quote;

use crate::attr;
use crate::check::check;
use crate::checked::{Checked, Form};
use crate::errors::Errors;
use crate::expand::runtime::private;
use crate::item::{Item, without_helpers};
use crate::model::Tool;

pub(crate) use capability::capability;
pub(crate) use runtime::module;

/// Expands `#[tool]`. `is_method` returns whether the item is in an `impl` or a `trait` block.
pub(crate) fn tool(attr: TokenStream, item: TokenStream, is_method: &dyn Fn() -> bool) -> TokenStream {
    let mut errors = Errors::new();
    let tokens = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Function(function)) => {
            let attr = attr::tool(attr, &mut errors);
            let tool = Tool::of_function(attr, function, &mut errors);
            checked(Tool { is_method: is_method(), ..tool }, &mut errors)
        }
        Ok(Item::Struct(parsed)) => {
            let attr = attr::tool(attr, &mut errors);
            checked(Tool::of_struct(attr, parsed, &mut errors), &mut errors)
        }
        Ok(Item::Methods(block)) => methods::methods(attr, item, &block, &mut errors),
        Ok(Item::Other { blame, message }) => {
            attr::tool(attr, &mut errors);
            errors.at(blame, message);
            without_helpers(item)
        }
        Err(error) => {
            attr::tool(attr, &mut errors);
            errors.push(error);
            without_helpers(item)
        }
    };
    let mistakes = errors.into_tokens();
    quote!(#tokens #mistakes)
}

fn checked(tool: Tool, errors: &mut Errors) -> TokenStream {
    match check(tool, errors) {
        Ok(tool) => whole(&tool),
        Err(tool) => unfinished::item(&tool),
    }
}

/// Returns the expansion of a tool without mistakes.
fn whole(tool: &Checked) -> TokenStream {
    let private = private(tool.krate.as_ref());
    let (item, form) = match &tool.form {
        Form::Function(function) => (function::item(tool, function), function::impls(tool, function)),
        Form::Struct(item) => (struct_form::item(&private, item), struct_form::impls(tool)),
    };
    let assertions = assertions::assertions(tool);
    let arguments = arguments::arguments(tool);
    quote! {
        #item
        #[doc(hidden)]
        const _: () = {
            use #private as __rt;
            #assertions
            #arguments
            #form
        };
    }
}
