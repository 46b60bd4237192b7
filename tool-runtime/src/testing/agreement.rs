//! [`disagreements`]: checks that schema, parser and allowlist of every tool agree.

mod fields;
mod merged;
mod mutants;
mod scalars;
mod texts;
mod values;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde_json::Value;

use crate::catalog::{Entry, ToolCatalog};
use crate::json::Tree;
use crate::redact::Projector;
use crate::schema::validator::{Compiled, JsonSchemaValidator, Validator as _};
use crate::testing::agreement::mutants::Mutant;
use crate::tool::Schema;

/// The maximum number of values for one schema.
const CASES: usize = 48;

/// The approximate number of values for all tools of a catalog together. It bounds the time for ten thousand tools.
const ALL_CASES: usize = 40_000;

/// The minimum number of values for one schema. It takes precedence over the other limits.
const FEWEST: usize = 4;

/// The approximate number of bytes of JSON that all values of one schema have together.
const ALL_BYTES: usize = 200_000;

/// One value in this many is used for mutants, which break one rule each.
const MUTATED: usize = 8;

/// Returns every disagreement between schema, parser and allowlist of a catalog's tools, a line each: the tool, the
/// place as a JSON Pointer, and what is wrong. [`assert_catalog_ok!`](crate::assert_catalog_ok) describes the checks.
///
/// `progress` receives, after each tool, how many tools are done and how many there are.
pub fn disagreements(catalog: &ToolCatalog, mut progress: impl FnMut(usize, usize)) -> Vec<String> {
    let entries: Vec<_> = catalog.entries().collect();
    let cases = (ALL_CASES / entries.len().max(1)).clamp(FEWEST, CASES);
    let mut found = Vec::new();
    for (done, entry) in entries.iter().enumerate() {
        let mut tool = Tool { entry, found: BTreeSet::new() };
        tool.check(cases);
        found.extend(tool.found.into_iter().map(|line| format!("{}: {line}", entry.spec.name)));
        progress(done + 1, entries.len());
    }
    found
}

struct Tool<'a> {
    entry: &'a Entry,
    found: BTreeSet<String>,
}

impl Tool<'_> {
    fn check(&mut self, cases: usize) {
        let entry = self.entry;
        if entry.spec.no_schema.is_none() {
            self.arguments(cases);
        }
        if let Some(payload) = &entry.payload {
            self.output("output", payload, entry.projector.as_ref(), cases);
        }
        if let Some(answer) = &entry.answer {
            self.output("client's result", &answer.schema, Some(&answer.projector), cases);
        }
    }

    /// Whether `#[tool]` generated a parser. A dynamic tool has a handler instead, which takes every value.
    fn has_parser(&self) -> bool {
        self.entry.location.is_some()
    }

    fn arguments(&mut self, cases: usize) {
        let schema = self.entry.spec.input_schema.to_value();
        let Some(compiled) = self.compiled("arguments", &self.entry.spec.input_schema.clone()) else { return };
        let behaviour = Arc::clone(&self.entry.behaviour);
        let has_parser = self.has_parser();
        let parse = |value: &Value| {
            let tree = Tree::from_value(value);
            fields::watched(&tree, || behaviour.instantiate(&tree))
        };
        let (mut seen, mut tried) = (Vec::new(), 0_usize);
        let mut named = BTreeSet::new();
        let made = self.made("arguments", &schema, &compiled, cases, |value| {
            if has_parser {
                let (parsed, names) = parse(value);
                fields::compare(&names, &schema, &mut named);
                if let Err(error) = parsed {
                    let expected = || format!("expected {}", error.expected());
                    let why = error.detail().map_or_else(expected, str::to_owned);
                    return Err(format!("{}: the schema allows what the parser refuses ({why})", error.pointer()));
                }
            }
            if seen.len() * MUTATED <= tried {
                seen.push(value.clone());
            }
            tried += 1;
            Ok(())
        });
        self.found.extend(named);
        if !made {
            return;
        }
        for (phase, value) in seen.iter().enumerate() {
            mutants::mutants(&schema, value, phase, &mut |mutant| {
                self.refused(&compiled, mutant);
                if has_parser && mutant.is_structural && parse(&mutant.value).0.is_ok() {
                    let line =
                        format!("{}: the parser takes {}, and the schema refuses it", mutant.pointer, mutant.what);
                    self.found.insert(line);
                }
            });
        }
        for value in seen.iter().filter(|_| has_parser) {
            let names = parse(value).1;
            let is_struct = |at: &str| names.iter().any(|names| names.are_members_of(at));
            let parses = |value: &Value| parse(value).0.is_ok();
            self.found.extend(mutants::hidden_defaults(&schema, value, is_struct, parses));
        }
    }

    /// Checks that outputs after redaction match the schema that is published for them. The values come from the schema
    /// and not from the output type, whose `Serialize` is not checked here. A mismatch is a defect of `shown_schema` or
    /// of the writer in this crate. A schema without values is reported.
    fn output(&mut self, what: &str, payload: &Schema, projector: Option<&Arc<Projector>>, cases: usize) {
        let Some(compiled) = self.compiled(what, payload) else { return };
        let Some(projector) = projector else { return };
        let Ok(shown) = JsonSchemaValidator.compile_value(&projector.shown_schema(&payload.to_value())) else {
            self.found.insert(format!("the schema of the visible {what} cannot be compiled"));
            return;
        };
        self.made(what, &payload.to_value(), &compiled, cases, |value| {
            let projected = projector.project(value, usize::MAX).map_err(|error| error.to_string())?;
            let value: Value = serde_json::from_str(projected.shown.get()).unwrap_or_default();
            shown.check(&Tree::from_value(&value)).map_err(|violations| {
                let first = violations.first().map_or("", |violation| &violation.pointer);
                format!("{first}: the visible {what} does not match its published schema")
            })
        });
    }

    fn compiled(&mut self, what: &str, schema: &Schema) -> Option<Arc<dyn Compiled>> {
        match JsonSchemaValidator.compile(schema) {
            Ok(compiled) => Some(compiled),
            Err(problem) => {
                self.found.insert(format!("the schema of the {what} cannot be compiled: {problem}"));
                None
            }
        }
    }

    /// Generates values of a schema, passes each to `check`, and reports the smallest value that fails. Returns `false`
    /// if there are no values.
    fn made(
        &mut self,
        what: &str,
        schema: &Value,
        compiled: &Arc<dyn Compiled>,
        cases: usize,
        mut check: impl FnMut(&Value) -> Result<(), String>,
    ) -> bool {
        let values = match values::values(schema) {
            Ok(values) => values,
            Err(reason) => {
                self.found.insert(format!("no value of the {what} can be made: {reason}"));
                return false;
            }
        };
        let runner = |cases: usize| {
            let config = Config {
                cases: u32::try_from(cases).unwrap_or(u32::MAX),
                failure_persistence: None,
                max_shrink_iters: 512,
                max_global_rejects: 10_000,
                ..Config::default()
            };
            TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        };
        // Large values are fewer, see `ALL_BYTES`.
        let size = values.new_tree(&mut runner(1)).map_or(0, |tree| tree.current().to_string().len());
        let mut runner = runner(cases.min(ALL_BYTES / size.max(1)).max(FEWEST));
        let check = RefCell::new(&mut check);
        let rejected = RefCell::new(None);
        let ended = runner.run(&values, |value| {
            if let Err(violations) = compiled.check(&Tree::from_value(&value)) {
                *rejected.borrow_mut() = violations.into_iter().next();
                return Err(TestCaseError::reject("the schema refuses it"));
            }
            (check.borrow_mut())(&value).map_err(TestCaseError::fail)
        });
        match ended {
            Ok(()) => true,
            Err(TestError::Abort(_)) => {
                let first = rejected.into_inner();
                let reason = first
                    .map(|first| format!("{}: none of the values fits; expected {}", first.pointer, first.expected));
                self.found.insert(format!("no value of the {what} can be made: {}", reason.unwrap_or_default()));
                false
            }
            Err(TestError::Fail(reason, value)) => {
                let mut line = reason.to_string();
                let _ = write!(line, ", for example {value}");
                self.found.insert(line);
                true
            }
        }
    }

    /// Checks that the schema refuses a changed value at the place of the change.
    fn refused(&mut self, compiled: &Arc<dyn Compiled>, mutant: &Mutant) {
        match compiled.check(&Tree::from_value(&mutant.value)).err() {
            None => {
                self.found.insert(format!("{}: the validator takes {}", mutant.pointer, mutant.what));
            }
            Some(violations) if violations.iter().any(|one| one.pointer == mutant.pointer) => {}
            Some(_) => {
                self.found.insert(format!("{}: {} is refused at another place", mutant.pointer, mutant.what));
            }
        }
    }
}
