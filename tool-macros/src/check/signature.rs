//! Rules about the item: its documentation, its generics, `self` and `Self`, its qualifiers, its return type, its
//! derives, and the number of its borrowed parameters.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{FnArg, GenericParam, Path, Safety, Signature, Token, Type};

use crate::check::argument::{find_borrow, find_impl, find_self};
use crate::errors::Errors;
use crate::model::{Form, Parameter, Tool};

/// The maximum number of capabilities, which is the length of the longest tuple that the runtime implements.
pub(super) const MAX_CAPABILITIES: usize = 8;

pub(super) fn missing_docs(tool: &Tool, errors: &mut Errors) {
    if tool.docs.is_blank() {
        errors.at(&tool.ident, "missing doc comment; a model reads it to decide when to call the tool");
    }
}

pub(super) fn generic_item(tool: &Tool, errors: &mut Errors) {
    let only_lifetimes = tool.generics.params.iter().all(|parameter| matches!(parameter, GenericParam::Lifetime(_)));
    if only_lifetimes && !tool.generics.params.is_empty() {
        errors.at(
            &tool.generics,
            "arguments are owned, and borrowed parameters need no lifetime; write `String` for `&str`, and remove the lifetimes",
        );
    } else if !tool.generics.params.is_empty() {
        errors.at(
            &tool.generics,
            "a tool cannot be generic: it needs one concrete schema; remove the generic parameters",
        );
    } else if let Some(clause) = &tool.generics.where_clause {
        errors.at(clause, "a tool has no generic parameters; remove the `where` clause");
    }
}

pub(super) fn self_receiver(tool: &Tool, errors: &mut Errors) {
    let Form::Function(function) = &tool.form else { return };
    for parameter in &function.parameters {
        if let Parameter::Unusable(FnArg::Receiver(receiver)) = parameter {
            errors.at(
                receiver,
                "a tool has no `self`; move the function out of the `impl`, or make its arguments the fields of a struct, and write `#[tool(..)]` on the struct and `#[tool]` on its `impl`",
            );
        }
    }
    if function.sig.receiver().is_none()
        && let Some(word) = find_self(&function.sig)
    {
        errors.at(word, "a tool has no `Self`; move the function out of the `impl`, and write the type");
    }
}

pub(super) fn inside_impl(tool: &Tool, errors: &mut Errors) {
    let Form::Function(function) = &tool.form else { return };
    if tool.is_method && function.sig.receiver().is_none() && find_self(&function.sig).is_none() {
        errors.at(
            &tool.ident,
            "a tool is not a function of an `impl`; move it out, or make its arguments the fields of a struct, and write `#[tool(..)]` on the struct and `#[tool]` on its `impl`",
        );
    }
}

pub(super) fn qualified_function(tool: &Tool, errors: &mut Errors) {
    let Form::Function(function) = &tool.form else { return };
    qualifiers(&function.sig, errors);
}

/// Reports each part of a signature that a plain or `async` function does not have: `const`, `unsafe`, `extern` and a
/// variadic `..`.
pub(in crate::check) fn qualifiers(sig: &Signature, errors: &mut Errors) {
    let mut refuse = |tokens: TokenStream, word: &str| {
        errors.at(tokens, format_args!("a tool is a plain or `async` function; remove `{word}`"));
    };
    if let Some(constness) = &sig.constness {
        refuse(constness.to_token_stream(), "const");
    }
    if let Safety::Unsafe(token) = &sig.safety {
        refuse(token.to_token_stream(), "unsafe");
    }
    if let Some(abi) = &sig.abi {
        refuse(abi.to_token_stream(), "extern");
    }
    if let Some(variadic) = &sig.variadic {
        refuse(variadic.to_token_stream(), "..");
    }
}

pub(super) fn missing_return(tool: &Tool, errors: &mut Errors) {
    if let Form::Function(function) = &tool.form
        && function.output.is_none()
    {
        errors.at(
            &tool.ident,
            "a tool returns `Result<T, E>`; write `-> Result<(), ToolError>` for one without an output",
        );
    }
}

pub(super) fn borrowed_output(tool: &Tool, errors: &mut Errors) {
    let Form::Function(function) = &tool.form else { return };
    if let Some(output) = &function.output {
        owned(output, errors);
    }
}

/// Reports an output type with `impl` or with a borrow.
pub(in crate::check) fn owned(output: &Type, errors: &mut Errors) {
    if let Some(tokens) = find_impl(output) {
        errors.at(tokens, "the output of a tool has a schema and needs a named type; write the type");
    } else if let Some(tokens) = find_borrow(output) {
        errors.at(tokens, "the output of a tool is owned; write `String` for `&str`, `Vec<T>` for `&[T]`");
    }
}

pub(super) fn derive_repeated(tool: &Tool, errors: &mut Errors) {
    let Form::Struct(_) = &tool.form else { return };
    for attr in tool.container.kept.iter().filter(|attr| attr.path().is_ident("derive")) {
        let Ok(paths) = attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated) else { continue };
        for path in paths {
            let Some(last) = path.segments.last() else { continue };
            let schema_is_ours = tool.attr.allow_no_schema.is_absent();
            if last.ident == "Deserialize" || (last.ident == "JsonSchema" && schema_is_ours) {
                errors.at(&path, format_args!("`#[tool]` already derives `{}`; remove it", last.ident));
            }
        }
    }
}

pub(super) fn too_many_capabilities(tool: &Tool, errors: &mut Errors) {
    if let Some(extra) = tool.borrowed().nth(MAX_CAPABILITIES) {
        errors.at(
            &extra.reference,
            format_args!(
                "a tool borrows at most {MAX_CAPABILITIES} things; split the tool, or put capabilities behind one trait"
            ),
        );
    }
}
