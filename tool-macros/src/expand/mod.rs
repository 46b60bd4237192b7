//! From the model to tokens: the item as written, then one hidden block, then what was wrong.

mod capability;
mod common;
mod function;
mod spans;
mod structure;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;

use crate::attr;
use crate::check::check;
use crate::errors::Errors;
use crate::item::{Item, without_helpers};
use crate::model::{Form, Tool};

pub(crate) use capability::capability;

/// `#[tool]`
pub(crate) fn tool(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let attr = attr::tool(attr, &mut errors);
    let parsed = match syn::parse2::<Item>(item.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push(error);
            return with_errors(without_helpers(item), errors);
        }
    };
    let tool = match parsed {
        Item::Function(function) => Tool::function(attr, function, &mut errors),
        Item::Structure(structure) => Tool::structure(attr, structure, &mut errors),
        Item::Other { blame, message } => {
            errors.at(blame, message);
            return with_errors(without_helpers(item), errors);
        }
    };
    check(&tool, &mut errors);
    let is_function = matches!(tool.form, Form::Function(_));
    match errors.into_tokens() {
        None if is_function => function::whole(&tool),
        None => structure::whole(&tool),
        Some(mistakes) => {
            let mut tokens = if is_function { function::unfinished(&tool) } else { structure::unfinished(&tool) };
            tokens.extend(mistakes);
            tokens
        }
    }
}

fn with_errors(mut item: TokenStream, errors: Errors) -> TokenStream {
    item.extend(errors.into_tokens());
    item
}
