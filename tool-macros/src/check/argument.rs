//! Rules about single arguments.

use std::collections::HashMap;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, GenericArgument, PathArguments, Signature, Type, TypeTraitObject};

use crate::check::attribute::is_name_character;
use crate::errors::Errors;
use crate::model::{Argument, Form, Parameter, Tool};
use crate::names::plain;

pub(super) fn missing_argument_docs(tool: &Tool, errors: &mut Errors) {
    let injected = |argument: &&Argument| injected_type(tool, argument).is_none();
    for argument in tool.arguments.iter().filter(|argument| argument.attr.docs.is_blank()).filter(injected) {
        errors.at(
            &argument.ident,
            format_args!(
                "missing doc comment on the argument `{}`, which the model fills in; injected values are borrowed: `&dyn Trait`",
                plain(&argument.ident)
            ),
        );
    }
}

/// Reports an owned parameter of a type that the runtime injects: `Arc<dyn Trait>`, `Cap<dyn Trait>`,
/// `Connection<dyn Trait>`, `ToolContext` or `Call<..>`.
pub(super) fn injected_owned(tool: &Tool, errors: &mut Errors) {
    for argument in &tool.arguments {
        if let Some(borrowed) = injected_type(tool, argument) {
            errors.at(&argument.ty, format_args!("injected values are borrowed; write `&{borrowed}`"));
        }
    }
}

/// Returns the borrowed type to write for an owned parameter that only the runtime can provide.
fn injected_type(tool: &Tool, argument: &Argument) -> Option<String> {
    let (Form::Function(_), Type::Path(path)) = (&tool.form, &argument.ty) else { return None };
    let last = path.path.segments.last()?;
    let object = match &last.arguments {
        PathArguments::None if last.ident == "ToolContext" => return Some("ToolContext".to_owned()),
        // `Call<Self>` is the context of a struct tool; a function borrows `ToolContext` instead.
        PathArguments::AngleBracketed(_) if last.ident == "Call" => return Some("ToolContext".to_owned()),
        PathArguments::AngleBracketed(list) => list.args.iter().find_map(|argument| match argument {
            GenericArgument::Type(Type::TraitObject(object)) => Some(written(object)),
            _ => None,
        })?,
        _ => return None,
    };
    Some(if last.ident == "Connection" { format!("Connection<{object}>") } else { object })
}

/// Returns a trait object as text, with the spaces that people write.
fn written(object: &TypeTraitObject) -> String {
    object
        .to_token_stream()
        .to_string()
        .replace(" :: ", "::")
        .replace(":: ", "::")
        .replace(" < ", "<")
        .replace(" >", ">")
}

pub(super) fn pattern_argument(tool: &Tool, errors: &mut Errors) {
    let Form::Function(function) = &tool.form else { return };
    for parameter in &function.parameters {
        if let Parameter::Unusable(FnArg::Typed(typed)) = parameter {
            errors.at(&typed.pat, "an argument needs a name; write one, and destructure it in the body");
        }
    }
}

pub(super) fn impl_trait_argument(tool: &Tool, errors: &mut Errors) {
    for argument in &tool.arguments {
        if let Some(tokens) = find_impl(&argument.ty) {
            errors.at(tokens, "an argument is built from JSON and needs a named type; write the type");
        }
    }
    for borrowed in tool.borrowed() {
        if let Some(tokens) = find_impl(&borrowed.target) {
            errors.at(tokens, "an injected value is a trait object; write `&dyn` for `&impl`");
        }
    }
}

pub(super) fn borrowed_inside(tool: &Tool, errors: &mut Errors) {
    for argument in &tool.arguments {
        if let Some(tokens) = find_borrow(&argument.ty) {
            errors.at(tokens, "an argument owns all of its data; write `String` for `&str`, `Vec<T>` for `&[T]`");
        }
    }
}

pub(super) fn mutable_borrow(tool: &Tool, errors: &mut Errors) {
    for borrowed in tool.borrowed() {
        if let Some(mutability) = &borrowed.reference.mutability {
            errors.at(mutability, "several calls share an injected value; write `&` for `&mut`");
        }
    }
}

pub(super) fn borrowed_slice(tool: &Tool, errors: &mut Errors) {
    for borrowed in tool.borrowed() {
        if let Some(owned) = owned_form(&borrowed.target) {
            errors.at(&borrowed.reference, format_args!("arguments are owned; write `{owned}`"));
        }
    }
}

/// Returns the owned type for a borrowed type that only an argument could have.
pub(super) fn owned_form(target: &Type) -> Option<String> {
    match target {
        Type::Slice(slice) => Some(format!("Vec<{}>", slice.elem.to_token_stream())),
        Type::Path(path) if path.path.is_ident("str") => Some("String".to_owned()),
        _ => None,
    }
}

pub(super) fn attribute_on_borrowed(tool: &Tool, errors: &mut Errors) {
    for borrowed in tool.borrowed() {
        if let Some(tokens) = borrowed.attr.of_arguments_only() {
            errors.at(tokens, "a borrowed argument comes from the runtime and is not in the schema; remove this");
        }
    }
}

pub(super) fn cfg_argument(tool: &Tool, errors: &mut Errors) {
    let own = tool.arguments.iter().map(|argument| &argument.attr);
    for attr in own.chain(tool.borrowed().map(|borrowed| &borrowed.attr)) {
        for conditional in &attr.conditional {
            errors
                .at(conditional, "a schema that depends on the build cannot be pinned; put `#[cfg]` on the whole tool");
        }
    }
}

pub(super) fn evidence_name(tool: &Tool, errors: &mut Errors) {
    for name in tool.arguments.iter().filter_map(|argument| argument.evidence()) {
        let text = name.value();
        if !text.contains("__") || !text.chars().all(is_name_character) {
            errors.at(name, format_args!("`{text}` is not the name of a tool; write the one that lists such values, for example `tasks__list_tasks`"));
        }
    }
}

pub(super) fn same_wire_name(tool: &Tool, errors: &mut Errors) {
    let mut seen: HashMap<&str, &syn::Ident> = HashMap::new();
    for argument in &tool.arguments {
        let Some(first) = seen.insert(&argument.wire, &argument.ident) else { continue };
        // The compiler reports two parameters of the same name.
        if plain(first) != plain(&argument.ident) {
            let blame = argument
                .attr
                .rename
                .value()
                .map_or_else(|| argument.ident.to_token_stream(), ToTokens::to_token_stream);
            errors.at(
                blame,
                format_args!(
                    "`{}` has the wire name `{}`, as `{}` has; rename one",
                    plain(&argument.ident),
                    argument.wire,
                    plain(first)
                ),
            );
        }
    }
}

/// Returns the first `impl` inside a type.
pub(crate) fn find_impl(ty: &Type) -> Option<TokenStream> {
    find(ty.to_token_stream(), &mut |token, _| matches!(token, TokenTree::Ident(word) if word == "impl"))
}

/// Returns the first `Self` inside a signature.
pub(crate) fn find_self(sig: &Signature) -> Option<TokenStream> {
    let is_self = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "Self");
    let word = find(sig.to_token_stream(), &mut |token, _| is_self(token))?;
    Some(word.into_iter().take(1).collect())
}

/// Returns the first reference or lifetime inside a type that is not `'static`.
pub(super) fn find_borrow(ty: &Type) -> Option<TokenStream> {
    let is_static = |next: Option<&TokenTree>| matches!(next, Some(TokenTree::Ident(name)) if name == "static");
    let is_quote = |next: Option<&TokenTree>| matches!(next, Some(TokenTree::Punct(quote)) if quote.as_char() == '\'');
    find(ty.to_token_stream(), &mut |token, next| match token {
        TokenTree::Punct(punct) if punct.as_char() == '&' => !is_quote(next),
        TokenTree::Punct(punct) if punct.as_char() == '\'' => !is_static(next),
        _ => false,
    })
}

/// Returns the first token, at any depth, that a rule refuses, together with the token after it. The rule also sees
/// this second token.
fn find(tokens: TokenStream, is_it: &mut impl FnMut(&TokenTree, Option<&TokenTree>) -> bool) -> Option<TokenStream> {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if is_it(&token, tokens.peek()) {
            return Some([Some(token), tokens.next()].into_iter().flatten().collect());
        }
        if let TokenTree::Group(group) = token
            && let Some(found) = find(group.stream(), is_it)
        {
            return Some(found);
        }
    }
    None
}
