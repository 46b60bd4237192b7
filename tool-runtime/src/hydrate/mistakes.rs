//! Collects all mistakes in the arguments of a call in one error, each once.

use std::collections::BTreeMap;

use crate::call::Violation;
use crate::catalog::Entry;
use crate::contain::discard;
use crate::hydrate::instantiate;
use crate::hydrate::provenance::{FailedStage, HydrationError};
use crate::hydrate::semantic::{ASK, WithoutEvidence, list_with};
use crate::json::Tree;
use crate::schema::{TAKE, TAKE_OR_ASK};

/// Returns the error with all mistakes, each once, with hints for the model. The first `blank` violations are about
/// blank or placeholder ids. `rules` maps each argument that needs evidence to the tool that lists its ids. `lists`
/// returns whether the model can call a tool.
#[cold]
pub(super) fn together(
    mut violations: Vec<Violation>,
    blank: usize,
    without_evidence: WithoutEvidence,
    rules: &BTreeMap<String, String>,
    lists: &dyn Fn(&str) -> bool,
) -> HydrationError {
    let schema = violations.split_off(blank.min(violations.len()));
    let WithoutEvidence { violations: without_evidence, lists: listable } = without_evidence;
    let new: Vec<_> = schema.into_iter().filter(|one| !is_repeat(one, &violations)).collect();
    violations.extend(new);
    let mut listed = false;
    for one in without_evidence {
        let is_same = |said: &&mut Violation| said.pointer == one.pointer && !is_of_text(&said.keyword);
        match violations.iter_mut().find(is_same) {
            // The mistake is already in the list, but without the name of the listing tool.
            Some(said) if listable.contains(&one.pointer) => said.hint = one.hint,
            Some(_) => continue,
            None => {
                listed |= listable.contains(&one.pointer);
                violations.push(one);
                continue;
            }
        }
        listed = true;
    }
    for (name, lister) in rules.iter().filter(|(_, lister)| lists(lister)) {
        let expected = format!("the property `{name}`");
        let is_missing = |one: &&mut Violation| {
            one.pointer.is_empty() && one.keyword == "required" && one.hint.is_none() && one.expected == expected
        };
        if let Some(one) = violations.iter_mut().find(is_missing) {
            one.hint = Some(list_with(lister));
            listed = true;
        }
    }
    if listed {
        violations.iter_mut().for_each(without_the_user);
    }
    HydrationError { lists: listed, ..HydrationError::invalid(violations) }
}

/// Whether a schema violation repeats a violation about a blank id: blank ids are equal and have no valid form.
fn is_repeat(one: &Violation, blank: &[Violation]) -> bool {
    blank.iter().any(|other| match other.pointer.strip_prefix(&*one.pointer) {
        Some("") => true,
        Some(rest) => rest.starts_with('/') && one.keyword == "uniqueItems",
        None => false,
    })
}

/// Whether a keyword restricts the form of a string.
fn is_of_text(keyword: &str) -> bool {
    matches!(keyword, "minLength" | "maxLength" | "pattern" | "format")
}

/// Removes the advice to ask the user, because the model can call a tool that lists the ids.
fn without_the_user(violation: &mut Violation) {
    match violation.hint.as_deref() {
        Some(TAKE_OR_ASK) => violation.hint = Some(TAKE.to_owned()),
        Some(ASK) => violation.hint = None,
        _ => {}
    }
}

/// Adds the violations of the author's `validate`, if the invalid arguments can still be built. The author's code
/// expects valid arguments, so other errors are ignored, and violations at a pointer that already has one are left out.
#[cold]
pub(super) fn with_the_authors(mut invalid: HydrationError, tree: &Tree<'_>, entry: &Entry) -> HydrationError {
    match instantiate(tree, entry) {
        Ok(instance) => discard(instance),
        Err(HydrationError { stage: FailedStage::Validate, violations, .. }) => {
            let is_new = |one: &Violation| invalid.violations.iter().all(|said| said.pointer != one.pointer);
            let new: Vec<_> = violations.into_iter().filter(is_new).collect();
            invalid.violations.extend(new);
        }
        Err(_) => {}
    }
    invalid
}
