//! Rules about capability traits.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{
    Attribute, ItemTrait, PredicateType, ReceiverKind, Token, TraitBound, TraitItem, Type, TypeParamBound,
    WherePredicate,
};

use crate::attr::CapabilityAttr;
use crate::errors::Errors;
use crate::model::peel;

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

/// Reports associated types and constants. The compiler's advice for them is a generic trait, which is refused, too.
pub(super) fn associated_item(item: &ItemTrait, errors: &mut Errors) {
    for name in associated(item) {
        errors.at(
            name,
            "a capability is bound as one `dyn` trait, which has no associated types and constants; write the type in \
             the methods, or a method that returns the value",
        );
    }
}

/// Returns the names of the associated types and constants that a `dyn` trait would have to state.
fn associated(item: &ItemTrait) -> impl Iterator<Item = &Ident> {
    item.items.iter().filter_map(|item| match item {
        TraitItem::Type(item) if item.generics.where_clause.is_none() => Some(&item.ident),
        TraitItem::Const(item) => Some(&item.ident),
        _ => None,
    })
}

/// Reports a supertrait of the standard library that no `dyn` trait can have.
pub(super) fn sized_supertrait(item: &ItemTrait, errors: &mut Errors) {
    for bound in supertraits(item).filter(|bound| is_sized(bound)) {
        errors.at(
            bound,
            "a capability is bound as one `dyn` trait, whose calls share an adapter; remove this supertrait",
        );
    }
}

fn is_sized(bound: &TraitBound) -> bool {
    // `Hash` is left out, because a capability can have this name.
    const SIZED: [&str; 8] = ["Clone", "Copy", "Default", "Eq", "Ord", "PartialEq", "PartialOrd", "Sized"];
    let segments = &bound.path.segments;
    let of_std =
        segments.len() == 1 || segments.first().is_some_and(|root| root.ident == "std" || root.ident == "core");
    let last = segments.last().filter(|last| of_std && last.arguments.is_none());
    last.is_some_and(|last| SIZED.iter().any(|name| last.ident == name))
}

/// Refuses every bound that the expansion does not read as a supertrait, because it could not compare the bound's
/// effect with the declared one.
pub(super) fn unread_bound(item: &ItemTrait, errors: &mut Errors) {
    const MESSAGE: &str = "this bound cannot be compared with the declared effect; write supertraits as `trait Reader: Writer`, and remove every other bound";
    if !item.generics.params.is_empty() {
        return;
    }
    for predicate in type_predicates(item).filter(|predicate| !bounds_self(predicate)) {
        let lifetimes = predicate.lifetimes.to_token_stream();
        let bounded = &predicate.bounded_ty;
        errors.at(quote::quote!(#lifetimes #bounded), MESSAGE);
    }
    let unread = |bound: &&TypeParamBound| !matches!(bound, TypeParamBound::Trait(_) | TypeParamBound::Lifetime(_));
    for bound in bounds(item).filter(unread) {
        errors.at(bound, MESSAGE);
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
                "several calls share an adapter; write `&self`, and keep mutable state behind a lock inside the adapter",
            );
        }
    }
}

/// Returns the supertraits. A tool that borrows this trait can call everything that they offer.
pub(crate) fn supertraits(item: &ItemTrait) -> impl Iterator<Item = &TraitBound> {
    bounds(item).filter_map(|bound| match bound {
        // `?Sized` is not a supertrait.
        TypeParamBound::Trait(bound) if bound.maybe.is_none() => Some(bound),
        _ => None,
    })
}

/// Returns the bounds of the trait itself, after its name and in its `where` clause.
fn bounds(item: &ItemTrait) -> impl Iterator<Item = &TypeParamBound> {
    let of_self = type_predicates(item).filter(|predicate| bounds_self(predicate));
    item.supertraits.iter().chain(of_self.flat_map(|predicate| &predicate.bounds))
}

fn type_predicates(item: &ItemTrait) -> impl Iterator<Item = &PredicateType> {
    let predicates = item.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    predicates.filter_map(|predicate| match predicate {
        WherePredicate::Type(typed) => Some(typed),
        _ => None,
    })
}

/// Whether a predicate bounds `Self`, with or without parentheses or the invisible group around a `$ty:ty` of
/// `macro_rules!`.
fn bounds_self(predicate: &PredicateType) -> bool {
    let is_self =
        matches!(peel(&predicate.bounded_ty), Type::Path(path) if path.qself.is_none() && path.path.is_ident("Self"));
    is_self && predicate.lifetimes.is_none()
}

/// Returns whether a trait object of this trait could exist, judged by its tokens.
pub(super) fn can_be_borrowed(item: &ItemTrait) -> bool {
    (is_async_trait(item) || async_methods(item).next().is_none())
        && associated(item).next().is_none()
        && !supertraits(item).any(is_sized)
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
