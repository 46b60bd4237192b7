//! What the macros refuse, and how they say it: `tests/ui/<topic>/<rule>.rs` with what the compiler answers.
//!
//! `TRYBUILD=overwrite` writes the answers anew; read the diff. They are compared whole under the pinned compiler
//! and by their first line under any other, because only that line is ours.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod ui_cases;

use std::collections::BTreeSet;
use std::fs;

use ui_cases::{any_compiler, cases, compiler_version, folder, passing, topics};

/// The compiler that wrote the `.stderr` files.
const PINNED: &str = "1.95.0";

/// The cases that no rule of the macros reports, but a trait bound or the compiler itself.
const ASKED_OF_THE_COMPILER: [&str; 40] = [
    "adapter_not_shared",
    "another_tool",
    "argument_is_a_secret",
    "argument_without_derives",
    "argument_without_schema",
    "beyond_effect",
    "beyond_effect_struct",
    "borrowed_no_capability",
    "builds_on_further",
    "borrowed_text",
    "capability_owned",
    "client_result_value",
    "client_result_without_schema",
    "connection_without_kind",
    "default_not_serialisable",
    "default_of_another_type",
    "definition_of_no_tool",
    "derive_above",
    "error_unusable",
    "error_unusable_alias",
    "future_not_send",
    "log_hydration",
    "make_bindings",
    "make_call",
    "make_capability",
    "make_context",
    "make_hydrated",
    "make_projected",
    "not_a_result",
    "not_dyn_compatible",
    "output_connection",
    "output_holds_secret",
    "output_not_serialisable",
    "output_not_serialisable_struct",
    "output_secret",
    "output_value",
    "output_value_struct",
    "output_without_schema",
    "print_secret",
    "struct_without_component",
];

#[test]
fn refused_at_the_token_to_edit() {
    if compiler_version() == PINNED {
        let cases = trybuild::TestCases::new();
        for topic in topics() {
            cases.compile_fail(format!("ui/{topic}/*.rs"));
        }
        cases.pass("ui/pass/*.rs");
    } else {
        any_compiler::check(&cases(), &passing());
    }
}

/// The same check that other compilers get, so that it is not first tried on the day it is needed.
#[test]
fn first_lines_are_compared_one_by_one() {
    let some: Vec<_> = cases().into_iter().filter(|case| case.topic == "capability").collect();
    any_compiler::check(&some, &[]);
    assert!(any_compiler::differs("error: something else\n", &["error: missing `effect`".to_owned()]));
}

#[test]
fn every_rule_has_a_case() {
    let sources = folder().join("../../tool-macros/src/check");
    let mut rules = BTreeSet::new();
    for entry in fs::read_dir(sources).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let named = text.lines().filter_map(|line| line.strip_prefix("pub(super) fn ")?.split_once('('));
        rules.extend(named.filter(|(_, rest)| rest.contains("errors:")).map(|(name, _)| name.to_owned()));
    }
    assert!(rules.len() > 40, "the rules were not found: {rules:?}");
    let cases: BTreeSet<String> = cases().into_iter().map(|case| case.name).collect();
    let missing: Vec<_> = rules.difference(&cases).collect();
    assert!(missing.is_empty(), "rules without a case under tests/ui: {missing:?}");
}

#[test]
fn every_trait_bound_has_a_case() {
    let asked = ASKED_OF_THE_COMPILER.map(str::to_owned).into_iter();
    let cases: BTreeSet<String> = cases().into_iter().map(|case| case.name).collect();
    let missing: Vec<_> = asked.filter(|name| !cases.contains(name)).collect();
    assert!(missing.is_empty(), "bounds without a case under tests/ui: {missing:?}");
}
