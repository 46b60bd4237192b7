//! Rules about capability traits.

use proc_macro2::Span;
use syn::{Attribute, ItemTrait, TraitItem};

use crate::attr::CapabilityAttr;
use crate::errors::Errors;

pub(super) fn capability_without_effect(attr: &CapabilityAttr, errors: &mut Errors) {
    if !attr.written.contains("effect") {
        errors.span(
            Span::call_site(),
            "missing `effect`: how far the capability reaches; write `effect = read_only`, `state_change` or `external_side_effect`",
        );
    }
}

pub(super) fn empty_kind(attr: &CapabilityAttr, errors: &mut Errors) {
    if let Some(kind) = attr.kind.as_ref().filter(|kind| kind.value().trim().is_empty()) {
        errors.at(kind, "the kind is empty; write a word, for example `\"calendar\"`");
    }
}

pub(super) fn generic_capability(item: &ItemTrait, errors: &mut Errors) {
    if !item.generics.params.is_empty() {
        errors.at(&item.generics, "a capability is bound as one `dyn` trait; remove the generic parameters");
    }
}

pub(super) fn async_without_async_trait(item: &ItemTrait, errors: &mut Errors) {
    let is_async_trait = |attr: &Attribute| attr.path().segments.last().is_some_and(|last| last.ident == "async_trait");
    if item.attrs.iter().any(is_async_trait) {
        return;
    }
    for method in &item.items {
        if let TraitItem::Fn(method) = method
            && let Some(asyncness) = &method.sig.asyncness
        {
            errors.at(
                asyncness,
                "an `async fn` cannot be called through `dyn`; write `#[async_trait]` below `#[capability]`",
            );
        }
    }
}
