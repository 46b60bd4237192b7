//! Rules about capability traits.

use syn::{Attribute, ItemTrait, ReceiverKind, Token, TraitItem};

use crate::attr::CapabilityAttr;
use crate::errors::Errors;

pub(super) fn capability_without_effect(attr: &CapabilityAttr, errors: &mut Errors) {
    if attr.effect.is_absent() {
        errors.missing(
            &attr.tokens,
            "missing `effect`: how far the capability reaches; write `effect = read_only`, `state_change` or `external_side_effect`",
        );
    }
}

pub(super) fn empty_kind(attr: &CapabilityAttr, errors: &mut Errors) {
    if let Some(kind) = attr.kind.value().filter(|kind| kind.value().trim().is_empty()) {
        errors.at(kind, "the kind is empty; write a word, for example `\"calendar\"`");
    }
}

pub(super) fn generic_capability(item: &ItemTrait, errors: &mut Errors) {
    if !item.generics.params.is_empty() {
        errors.at(&item.generics, "a capability is bound as one `dyn` trait; remove the generic parameters, and write one capability for each type that it is used with");
    }
}

pub(super) fn async_without_async_trait(item: &ItemTrait, errors: &mut Errors) {
    if is_async_trait(item) {
        return;
    }
    for asyncness in async_methods(item) {
        errors.at(
            asyncness,
            "an `async fn` cannot be called through `dyn`; write `#[async_trait]` below `#[capability]`",
        );
    }
}

pub(super) fn mutable_self(item: &ItemTrait, errors: &mut Errors) {
    for method in &item.items {
        if let TraitItem::Fn(method) = method
            && let Some(receiver) = method.sig.receiver()
            && let ReceiverKind::Reference(_, _, Some(mutability)) = &receiver.kind
        {
            errors.at(
                mutability,
                "several calls share an adapter; write `&self`, and keep what changes behind a lock inside the adapter",
            );
        }
    }
}

/// Returns whether a trait object of this trait could exist, judged by its tokens.
pub(super) fn can_be_borrowed(item: &ItemTrait) -> bool {
    is_async_trait(item) || async_methods(item).next().is_none()
}

fn is_async_trait(item: &ItemTrait) -> bool {
    let is_it = |attr: &Attribute| attr.path().segments.last().is_some_and(|last| last.ident == "async_trait");
    item.attrs.iter().any(is_it)
}

fn async_methods(item: &ItemTrait) -> impl Iterator<Item = &Token![async]> {
    item.items.iter().filter_map(|item| match item {
        TraitItem::Fn(method) => method.sig.asyncness.as_ref(),
        _ => None,
    })
}
