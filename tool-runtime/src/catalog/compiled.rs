//! [`CompiledCatalog`]: the schema validators, and the projectors (writers of allowed leaves), that one runner compiles
//! for a catalog. They depend on the runner's validator and policy, so they are not part of the catalog, which several
//! runners can share.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::call::Violation;
use crate::catalog::{CatalogProblemKind, Entry, ServerTools, ToolCatalog};
use crate::contain::caught;
use crate::error::{BuildError, Problem};
use crate::json::Tree;
use crate::policy::ToolPolicy;
use crate::redact::Projector;
use crate::schema::validator::{Compiled, Validator};
use crate::tool::Schema;

/// When a schema was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValidatorMode {
    /// Ahead of any call, by [`ToolRunner::warm`](crate::ToolRunner::warm).
    Eager,
    /// By the first call that needed it.
    Lazy,
}

/// A schema that is compiled on first use.
type Slot = OnceLock<(ValidatorMode, Result<Arc<dyn Compiled>, Box<Problem>>)>;

/// The validators of one runner for all tools of a catalog, and the projectors for the allowlists of its policy.
pub(crate) struct CompiledCatalog {
    validator: Arc<dyn Validator>,
    pub(crate) name: Arc<str>,
    pub(crate) version: Arc<str>,
    /// Name and version of the validator, for records.
    pub(crate) label: Arc<str>,
    policy: ToolPolicy,
    fixed: Tables,
    /// The tables of servers that connect after the catalog is built. The first call to a server creates its tables.
    deferred: Vec<(Arc<ServerTools>, OnceLock<Tables>)>,
}

/// The compiled parts of some tools, by the positions of the tools.
#[derive(Default)]
struct Tables {
    inputs: Vec<Slot>,
    /// The validators of client results.
    answers: HashMap<usize, Slot>,
    narrowed: HashMap<usize, Arc<Projector>>,
}

impl Tables {
    /// Creates empty slots for validators, and compiles the allowlists of the policy.
    fn of(entries: &[Arc<Entry>], policy: &ToolPolicy, problems: &mut Vec<Problem>) -> Self {
        let of_clients = entries.iter().filter(|entry| entry.answer.is_some());
        let narrowed = entries.iter().filter_map(|entry| Some((entry.index, narrowed(entry, policy, problems)?)));
        Self {
            inputs: entries.iter().map(|_| Slot::new()).collect(),
            answers: of_clients.map(|entry| (entry.index, Slot::new())).collect(),
            narrowed: narrowed.collect(),
        }
    }
}

impl CompiledCatalog {
    /// Creates the empty state of a runner whose catalog is not compiled yet.
    pub(crate) fn unprepared(validator: Arc<dyn Validator>) -> Self {
        let (name, version, label) = ("".into(), "".into(), "".into());
        let (policy, fixed, deferred) = (ToolPolicy::deny_all(), Tables::default(), Vec::new());
        Self { validator, name, version, label, policy, fixed, deferred }
    }

    /// Creates empty slots for the catalog's validators, and compiles the allowlists of the policy.
    pub(crate) fn prepared(self, catalog: &ToolCatalog, policy: &ToolPolicy, problems: &mut Vec<Problem>) -> Self {
        let validator = self.validator;
        let word = |word: fn(&dyn Validator) -> &str| caught(|| word(&*validator).into()).unwrap_or_else(|| "".into());
        let (name, version): (Arc<str>, Arc<str>) =
            (word(|validator| validator.name()), word(|validator| validator.version()));
        Self {
            label: format!("{name} {version}").into(),
            name,
            version,
            fixed: Tables::of(catalog.fixed_entries(), policy, problems),
            deferred: catalog.servers().iter().map(|server| (Arc::clone(server), OnceLock::new())).collect(),
            policy: policy.clone(),
            validator,
        }
    }

    /// Returns the tables that contain this tool.
    #[inline]
    fn tables(&self, entry: &Entry) -> Option<&Tables> {
        match entry.deferred {
            None => Some(&self.fixed),
            Some(place) => self.deferred_tables(place),
        }
    }

    #[cold]
    fn deferred_tables(&self, place: usize) -> Option<&Tables> {
        let (server, tables) = self.deferred.get(place)?;
        Some(tables.get_or_init(|| {
            let mut problems = Vec::new();
            let entries = server.entries().unwrap_or_default();
            let mut tables = Tables::of(entries, &self.policy, &mut problems);
            for entry in entries {
                let before = problems.len();
                self.policy.check_tool(entry.spec.name.as_str(), &entry.spec, &mut problems);
                if problems.len() > before {
                    // In the build of a runner, such a problem is an error. This runner exists already, so only this
                    // tool loses its allowlist, and does not run.
                    tables.narrowed.remove(&entry.index);
                }
            }
            for problem in problems {
                tracing::error!(%problem, "the policy does not fit a tool of a server that connected late");
            }
            tables
        }))
    }

    /// Checks arguments, and adds their violations to `wrong`. `None` if they cannot be checked. A schema that does not
    /// compile is logged once.
    pub(crate) fn check(
        &self,
        entry: &Entry,
        arguments: &Tree<'_>,
        wrong: &mut Vec<Violation>,
    ) -> Option<ValidatorMode> {
        let slot = self.slot(
            self.tables(entry)?.inputs.get(entry.index)?,
            entry,
            &entry.spec.input_schema,
            ValidatorMode::Lazy,
        );
        let (mode, compiled) = slot;
        // An application's validator may panic.
        let checked = caught(|| compiled.as_ref().ok().map(|compiled| compiled.check(arguments)))??;
        if checked.is_err() {
            wrong.extend(violations(checked)?);
        }
        Some(*mode)
    }

    /// Checks a client's result. `None` if it cannot be checked.
    pub(crate) fn check_answer(&self, entry: &Entry, answer: &Tree<'_>) -> Option<Vec<Violation>> {
        let schema = &entry.answer.as_ref()?.schema;
        let (_, compiled) =
            self.slot(self.tables(entry)?.answers.get(&entry.index)?, entry, schema, ValidatorMode::Lazy);
        let checked = caught(|| compiled.as_ref().ok().map(|compiled| compiled.check(answer)))??;
        violations(checked)
    }

    /// Checks a value against a schema that belongs to no tool. A schema that cannot be checked refuses every value.
    pub(crate) fn check_value(&self, schema: &Schema, value: &Tree<'_>) -> Result<(), Vec<Violation>> {
        let checked = caught(|| self.validator.compile(schema).ok().map(|compiled| compiled.check(value))).flatten();
        match checked.and_then(violations) {
            Some(found) if found.is_empty() => Ok(()),
            Some(found) => Err(found),
            None => Err(vec![Violation::new("", "schema", "a schema that the validator can check")]),
        }
    }

    /// Returns the projector for the tool's own value: its output, or the payload for a client. `None` without an
    /// allowlist; such a tool does not run.
    pub(crate) fn projector<'c>(&'c self, entry: &'c Entry) -> Option<&'c Arc<Projector>> {
        let narrowed = self.tables(entry)?.narrowed.get(&entry.index).filter(|_| entry.answer.is_none());
        narrowed.or(entry.projector.as_ref())
    }

    /// Returns the projector for the value that ends a call: the tool's output, or the client's result.
    pub(crate) fn shown<'c>(&'c self, entry: &'c Entry) -> Option<&'c Arc<Projector>> {
        let Some(answer) = &entry.answer else { return self.projector(entry) };
        self.tables(entry)?.narrowed.get(&entry.index).or(Some(&answer.projector))
    }

    /// Compiles every validator.
    pub(crate) fn warm(&self, catalog: &ToolCatalog) -> Result<(), BuildError> {
        let mut problems = Vec::new();
        for entry in catalog.entries() {
            let Some(tables) = self.tables(entry) else { continue };
            let Some(input) = tables.inputs.get(entry.index) else { continue };
            let answer = entry.answer.as_ref().zip(tables.answers.get(&entry.index));
            let answered = answer.map(|(one, slot)| ("answer", slot, &one.schema));
            for (of, slot, schema) in [("arguments", input, &entry.spec.input_schema)].into_iter().chain(answered) {
                if let (_, Err(problem)) = self.slot(slot, entry, schema, ValidatorMode::Eager) {
                    let message = format!("`{}`: schema of the {of}: {problem}", entry.spec.name);
                    problems.push(CatalogProblemKind::Schema.problem(message, entry.location));
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(BuildError::new(problems)) }
    }

    fn slot<'s>(
        &self,
        slot: &'s Slot,
        entry: &Entry,
        schema: &Schema,
        mode: ValidatorMode,
    ) -> &'s (ValidatorMode, Result<Arc<dyn Compiled>, Box<Problem>>) {
        slot.get_or_init(|| {
            let compiled = caught(|| self.validator.compile(schema)).unwrap_or_else(|| {
                Err(Problem::schema("", "the validator panicked", "correct the validator or use the default"))
            });
            if let Err(problem) = &compiled {
                tracing::error!(tool = %entry.spec.name, pointer = %problem.path(), "a schema does not compile");
            }
            (mode, compiled.map_err(Box::new))
        })
    }
}

/// Returns the violations that a validator found. `None` for a refusal without a violation: the value is then
/// treated as not checked.
fn violations(checked: Result<(), Vec<Violation>>) -> Option<Vec<Violation>> {
    match checked {
        Ok(()) => Some(Vec::new()),
        Err(found) => Some(found).filter(|found| !found.is_empty()),
    }
}

/// Compiles the policy's allowlist for a tool, which may only narrow the tool's own. `None` if the policy has none.
fn narrowed(entry: &Entry, policy: &ToolPolicy, problems: &mut Vec<Problem>) -> Option<Arc<Projector>> {
    let spec = &entry.spec;
    let rule = policy.tool(spec.name.as_str()).filter(|_| policy.is_as_pinned(spec))?;
    let path = |key: &str| format!("tools.{}.{key}", spec.name);
    let own = &spec.redaction;
    let Some(allow) = &rule.redact else {
        if !rule.model.is_empty() {
            problems.push(Problem::policy(path("model"), "`model` adds to `redact`; write `redact` too".to_owned()));
        }
        return None;
    };
    let before = problems.len();
    if entry.projector.is_some() {
        let beyond = |key: &'static str, paths: &[String], known: &dyn Fn(&String) -> bool| {
            paths.iter().filter(|one| !known(one)).map(|one| (key, one.clone())).collect::<Vec<_>>()
        };
        let beyond_allow = beyond("redact", allow, &|one| own.allow.contains(one));
        let beyond_model = beyond("model", &rule.model, &|one| own.allow.contains(one) || own.model.contains(one));
        for (key, one) in beyond_allow.into_iter().chain(beyond_model) {
            let message = format!("`{one}` is not on the tool's own allowlist, which a policy only narrows; remove it");
            problems.push(Problem::policy(path(key), message));
        }
    }
    let projector = match entry.shown() {
        None => Projector::without_schema(allow, &rule.model),
        Some(schema) => match Projector::compile(allow, &rule.model, &schema.to_value()) {
            Ok(projector) => projector,
            Err(paths) => {
                problems.extend(paths.iter().map(|one| Problem::policy(path("redact"), one.to_string())));
                return None;
            }
        },
    };
    (problems.len() == before).then(|| Arc::new(projector))
}
