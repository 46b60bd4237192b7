//! Sources that the macros refuse, under any compiler: `tests/ui/<topic>/<rule>.rs` fails with the first line of its
//! answer.
//!
//! Only that line comes from the macros. `tests/ui/refused.rs` compares the answers whole under the pinned compiler.
//! Programs that must compile are in `tests/ui/pass`, and run as tests of the same package.

mod cases;

use std::collections::BTreeSet;
use std::fs;

use cases::{Case, cases, compiler, package, passing};

/// The cases that no rule of the macros reports, but a trait bound or the compiler itself.
const ASKED_OF_THE_COMPILER: [&str; 67] = [
    "adapter_not_shared",
    "allow_one_name",
    "another_tool",
    "argument_is_a_secret",
    "argument_without_derives",
    "argument_without_schema",
    "arguments_as_value",
    "beyond_effect",
    "beyond_effect_struct",
    "borrowed_no_capability",
    "borrowed_plain_trait",
    "borrowed_struct",
    "bound_without_trait",
    "builds_on_account",
    "builds_on_further",
    "builds_on_unknown",
    "builds_on_written",
    "client_result_value",
    "client_result_without_schema",
    "connection_without_kind",
    "default_not_serialisable",
    "default_of_another_type",
    "definition_of_no_tool",
    "derive_above",
    "error_boxed",
    "error_not_sent",
    "error_report",
    "error_unusable",
    "error_unusable_alias",
    "exec_without_run",
    "future_not_send",
    "impl_without_async_trait",
    "kind_borrowed",
    "kind_bound_once",
    "kind_listed",
    "left_out",
    "log_hydration",
    "make_bindings",
    "make_call",
    "make_capability",
    "make_context",
    "make_hydrated",
    "make_projected",
    "methods_beyond_effect",
    "methods_not_send",
    "methods_output",
    "methods_precondition_returns",
    "methods_precondition_writes",
    "not_a_result",
    "not_dyn_compatible",
    "output_connection",
    "output_holds_files",
    "output_holds_secret",
    "output_not_serialisable",
    "output_not_serialisable_struct",
    "output_secret",
    "output_value",
    "output_value_struct",
    "output_without_schema",
    "precondition_by_hand",
    "precondition_returns",
    "precondition_writes",
    "print_secret",
    "struct_without_component",
    "toml_left_out",
    "tool_without_attribute",
    "validate_async",
];

/// All cases in one test: the compiler is asked once.
#[test]
fn every_case_is_refused_with_our_words() {
    let cases = cases();
    let answers = compiler::ask(&cases);
    let found = |case: &Case| answers.get(&case.binary()).map(|messages| messages.join("\n")).unwrap_or_default();
    let wrong = cases.iter().filter(|case| !same_first_line(&case.answer, &found(case)));
    let wrong: Vec<_> =
        wrong.map(|case| format!("{}: no error begins with {:?}", case.binary(), case.answer.lines().next())).collect();
    assert!(!cases.is_empty() && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether an error begins as the recorded answer does.
fn same_first_line(recorded: &str, answer: &str) -> bool {
    // A warning of the compiler may come before it.
    let first = recorded.lines().find(|line| line.starts_with("error"));
    first.is_some_and(|first| answer.lines().any(|line| line == first))
}

#[test]
fn another_first_line_is_another_answer() {
    assert!(same_first_line("error: missing `effect`\n --> a", "error: other\n\nerror: missing `effect`\n --> b"));
    assert!(!same_first_line("error: missing `effect`", "error: something else"));
    assert!(!same_first_line("error: missing `effect`", ""));
    assert!(!same_first_line("", "error: missing `effect`"));
    assert!(same_first_line("warning: parentheses\n\nerror: missing `effect`", "error: missing `effect`"));
    assert!(!same_first_line("warning: parentheses", "warning: parentheses"));
}

#[test]
fn every_passing_case_is_run() {
    let manifest: toml::Table = fs::read_to_string(package().join("ui/Cargo.toml")).unwrap().parse().unwrap();
    let targets = manifest["test"].as_array().unwrap().iter();
    let mut named: Vec<_> = targets.map(|target| target["name"].as_str().unwrap()).collect();
    named.retain(|name| *name != "refused");
    named.sort_unstable();
    assert_eq!(named, passing());
}

#[test]
fn every_rule_has_a_case() {
    let sources = compiler::workspace().join("tool-macros/src/check");
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
