//! Rules about the `impl` block of a struct tool.

use std::collections::HashSet;

use quote::ToTokens;
use syn::{FnArg, ReceiverKind, ReturnType, Signature, Type};

use crate::check::argument::{find_impl, owned_form};
use crate::check::signature::{MAX_CAPABILITIES, owned, qualifiers};
use crate::errors::Errors;
use crate::item::Methods;
use crate::methods::{Called, Method, Passed, borrowed, passed};
use crate::model::peel;
use crate::names::{nearest, plain};

pub(super) fn impl_of_a_trait(block: &Methods, errors: &mut Errors) {
    if let Some(path) = &block.of_trait {
        errors.at(
            path,
            "`#[tool]` goes on `impl Name { .. }`, and writes `ToolComponent` itself; remove the trait, or remove `#[tool]`",
        );
    }
}

pub(super) fn generic_impl(block: &Methods, errors: &mut Errors) {
    if !block.generics.params.is_empty() {
        errors.at(
            &block.generics,
            "a tool cannot be generic: it needs one concrete schema; remove the generic parameters",
        );
    } else if let Some(clause) = &block.generics.where_clause {
        errors.at(clause, "a tool has no generic parameters; remove the `where` clause");
    }
}

pub(super) fn impl_without_run(block: &Methods, errors: &mut Errors) {
    if block.of_trait.is_none() && run(block).is_none() {
        errors.at(&block.ty, "there is no `run` here; write `async fn run(self) -> Result<Output, ToolError>`");
    }
}

/// Reports an `async` method that takes `self` and has nearly the name of an optional method. It is probably misspelt,
/// and the runtime would never call it. Other methods are helpers and may have any name.
pub(super) fn misspelt_method(block: &Methods, errors: &mut Errors) {
    // Another rule reports a missing `run`.
    let absent: Vec<_> = CALLED.into_iter().skip(1).filter(|name| named(block, name).is_none()).collect();
    for (_, sig) in &block.signatures {
        let moves = matches!(sig.inputs.first(), Some(FnArg::Receiver(me)) if matches!(me.kind, ReceiverKind::Value));
        let written = plain(&sig.ident);
        let is_another = !CALLED.contains(&&*written) && sig.asyncness.is_some() && moves;
        if let Some(meant) = nearest(&written, &absent).filter(|_| is_another) {
            errors.at(&sig.ident, format_args!("the runtime does not call `{written}`; did you mean `{meant}`?"));
        }
    }
}

pub(super) fn generic_method(block: &Methods, errors: &mut Errors) {
    for sig in ours(block) {
        if !sig.generics.params.is_empty() {
            errors.at(&sig.generics, "the runtime calls this method with one type; remove the generic parameters");
        }
    }
}

pub(super) fn qualified_method(block: &Methods, errors: &mut Errors) {
    for sig in ours(block) {
        qualifiers(sig, errors);
    }
}

pub(super) fn receiver_by_value(block: &Methods, errors: &mut Errors) {
    for sig in ours(block) {
        match sig.inputs.first() {
            Some(FnArg::Receiver(receiver)) if matches!(receiver.kind, ReceiverKind::Value) => {}
            Some(FnArg::Receiver(receiver)) => {
                errors.at(receiver, "each call has its own arguments; write `self`");
            }
            _ => errors.at(
                &sig.ident,
                format_args!("the arguments are the fields of `self`; write `fn {}(self, ..)`", sig.ident),
            ),
        }
    }
}

pub(super) fn owned_parameter(block: &Methods, errors: &mut Errors) {
    for sig in ours(block) {
        for input in &sig.inputs {
            let FnArg::Typed(typed) = input else { continue };
            match borrowed(&typed.ty) {
                Some(reference) => {
                    if let Some(mutability) = &reference.mutability {
                        errors.at(mutability, "several calls share an injected value; write `&` for `&mut`");
                    }
                    if let Some(owned) = owned_form(peel(&reference.elem)) {
                        errors.at(
                            &typed.ty,
                            format_args!("the arguments are the fields of `self`; add a field of the type `{owned}`"),
                        );
                    }
                    if let Some(tokens) = find_impl(&reference.elem) {
                        errors.at(tokens, "an injected value is a trait object; write `&dyn` for `&impl`");
                    }
                }
                None => errors.at(
                    &typed.ty,
                    "an argument of the model is a field of the struct; a parameter borrows: `&dyn Trait`, `&Connection<dyn Trait>` or `&Call<Self>`",
                ),
            }
        }
    }
}

pub(super) fn precondition_call(block: &Methods, errors: &mut Errors) {
    for input in ours(block).filter(|sig| sig.ident == "precondition").flat_map(|sig| &sig.inputs) {
        let FnArg::Typed(typed) = input else { continue };
        let Some(reference) = borrowed(&typed.ty) else { continue };
        if let Type::Path(path) = peel(&reference.elem)
            && path.path.segments.last().is_some_and(|last| last.ident == "Call")
        {
            errors.at(&typed.ty, "a precondition cannot run its tool; write `&ToolContext`");
        }
    }
}

pub(super) fn method_without_return(block: &Methods, errors: &mut Errors) {
    for sig in ours(block) {
        let ReturnType::Type(_, output) = &sig.output else {
            errors.at(
                &sig.ident,
                if sig.ident == "precondition" {
                    "a precondition returns its statements; write `-> Result<Precondition, ToolError>`"
                } else {
                    "a tool returns `Result<T, E>`; write `-> Result<(), ToolError>` for one without an output"
                },
            );
            continue;
        };
        owned(output, errors);
    }
}

pub(super) fn too_many_borrowed(block: &Methods, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for input in ours(block).flat_map(|sig| &sig.inputs) {
        let FnArg::Typed(typed) = input else { continue };
        let Some(Passed::Injected(target)) = borrowed(&typed.ty).map(passed) else { continue };
        if seen.insert(target.to_token_stream().to_string()) && seen.len() == MAX_CAPABILITIES + 1 {
            errors.at(
                input,
                format_args!(
                    "a tool borrows at most {MAX_CAPABILITIES} things; split the tool, or put capabilities behind one trait"
                ),
            );
        }
    }
}

pub(super) fn cfg_method(block: &Methods, errors: &mut Errors) {
    let ours = block.signatures.iter().filter(|(_, sig)| CALLED.iter().any(|name| sig.ident == name));
    for attribute in ours.flat_map(|(attributes, _)| attributes) {
        if attribute.path().is_ident("cfg") {
            errors.at(attribute, "the attribute calls this method in every build; put `#[cfg]` on the whole tool");
        }
    }
}

fn named<'b>(block: &'b Methods, name: &str) -> Option<&'b Signature> {
    block.signatures.iter().map(|(_, sig)| sig).find(|sig| sig.ident == name)
}

fn run(block: &Methods) -> Option<&Signature> {
    named(block, "run")
}

/// The names of the methods that the runtime calls.
const CALLED: [&str; 3] = ["run", "reconcile", "precondition"];

/// Returns the methods that the runtime calls. For an `impl` of a trait there are none, because another rule reports
/// the trait.
fn ours(block: &Methods) -> impl Iterator<Item = &Signature> {
    let of_the_tool = block.of_trait.is_none();
    CALLED.iter().filter_map(|name| named(block, name)).filter(move |_| of_the_tool)
}

/// Returns `run` and the optional methods. `None` if one of them has a mistake.
pub(super) fn methods(block: &Methods) -> Option<Called> {
    let optional = |name, method: fn(&Signature) -> Option<Method>| match named(block, name) {
        Some(sig) => method(sig).map(Some),
        None => Some(None),
    };
    Some(Called {
        run: Method::new(run(block)?)?,
        reconcile: optional("reconcile", Method::new)?,
        precondition: optional("precondition", Method::reading)?,
    })
}
