//! [`CatalogBuilder`]: gathers tools and reports all of their problems together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::catalog::{Answer, CatalogError, CatalogProblem, Entry, Semantics, ToolCatalog};
use crate::component::{Named, Tool, Visitor};
use crate::redact::Projector;
use crate::registration::{Described, DynamicTool, Handled, Registration, authored_spec};
use crate::schema::{self, IdArguments};
use crate::tool::{Execution, Hash, Location, Redaction, Schema, ToolName, ToolSpec};

/// Gathers tools. What is gathered is checked by [`build`](Self::build).
#[derive(Debug, Default)]
#[must_use]
pub struct CatalogBuilder {
    linked: bool,
    crates: Option<BTreeSet<String>>,
    namespaces: Option<BTreeSet<String>>,
    chosen: Vec<Registration>,
    dynamic: Vec<DynamicTool>,
}

impl CatalogBuilder {
    /// Takes every linked registration, narrowed by [`crates`](Self::crates) and [`namespaces`](Self::namespaces).
    pub fn collect(mut self) -> Self {
        self.linked = true;
        self
    }

    /// Of the linked registrations, takes those of these crates only (as Rust paths spell them).
    pub fn crates<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.crates = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Of the linked registrations, takes those of these namespaces only.
    pub fn namespaces<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.namespaces = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Takes one authored tool, by its struct or by the name of its function.
    pub fn tool<T: Named>(mut self) -> Self {
        struct Register;

        impl Visitor for Register {
            type Answer = Registration;

            fn visit<T: Tool>(self) -> Registration {
                Registration::of::<T>()
            }
        }

        self.chosen.push(T::visit(Register));
        self
    }

    /// Takes a dynamic tool.
    pub fn dynamic(mut self, tool: DynamicTool) -> Self {
        self.dynamic.push(tool);
        self
    }

    /// Checks everything and makes the catalog.
    ///
    /// # Errors
    /// Every problem of every tool.
    pub fn build(self) -> Result<ToolCatalog, CatalogError> {
        let registrations = self.registrations();
        if registrations.is_empty() && self.dynamic.is_empty() && self.linked {
            let message =
                "no tools are linked; write `use my_tools as _;` for each crate of tools, or nothing of it is linked";
            return Err(CatalogError::new(vec![CatalogProblem::new("empty", message, None)]));
        }
        let mut problems = Vec::new();
        let mut entries = Vec::with_capacity(registrations.len() + self.dynamic.len());
        for registration in registrations {
            entries.extend(authored(&(registration.describe)(), &mut problems).map(Arc::new));
        }
        for tool in self.dynamic {
            entries.extend(dynamic(tool, &mut problems).map(Arc::new));
        }
        collisions(&entries, &mut problems);
        if problems.is_empty() { Ok(ToolCatalog::new(entries)) } else { Err(CatalogError::new(problems)) }
    }

    /// Chosen and linked ones, sorted, so that messages come in one order.
    fn registrations(&self) -> Vec<Registration> {
        let mut found = self.chosen.clone();
        if self.linked {
            let wanted = |registration: &&Registration| {
                let namespace = registration.meta.name.split("__").next().unwrap_or_default();
                self.crates.as_ref().is_none_or(|names| names.contains(registration.meta.location.krate))
                    && self.namespaces.as_ref().is_none_or(|names| names.contains(namespace))
            };
            found.extend(inventory::iter::<Registration>().filter(wanted));
        }
        found.sort_by_key(|registration| (registration.meta.name, registration.meta.location));
        // A tool that was both chosen and linked is one tool.
        found.dedup_by_key(|registration| (registration.meta.name, registration.meta.location));
        found
    }
}

/// Equal for names that a model would take for each other: those that differ only in case or in `-` and `_`.
pub(crate) fn look_alike(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

fn collisions(entries: &[Arc<Entry>], problems: &mut Vec<CatalogProblem>) {
    let mut alike: BTreeMap<String, Vec<&Arc<Entry>>> = BTreeMap::new();
    for entry in entries {
        alike.entry(look_alike(entry.spec.name.as_str())).or_default().push(entry);
    }
    for same in alike.into_values().filter(|same| same.len() > 1) {
        let names: BTreeSet<_> = same.iter().map(|entry| format!("`{}`", entry.spec.name)).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(" and ");
        let mut problem = CatalogProblem::new(
            "collision",
            format!(
                "{} tools are called {names}; rename all but one; names have to differ in more than case, `-` and `_`",
                same.len()
            ),
            None,
        );
        problem.locations = same.iter().filter_map(|entry| entry.location).collect();
        problem.locations.sort_unstable();
        problems.push(problem);
    }
}

fn authored(described: &Described, problems: &mut Vec<CatalogProblem>) -> Option<Entry> {
    let meta = described.meta;
    let location = Some(meta.location);
    let spec = match authored_spec(described) {
        Ok(spec) => Arc::new(spec),
        Err(error) => {
            let name = meta.name;
            problems
                .extend(error.name.map(|error| CatalogProblem::new("name", format!("`{name}`: {error}"), location)));
            let schemas =
                error.input.iter().map(|one| ("arguments", one)).chain(error.output.iter().map(|one| ("output", one)));
            problems.extend(schemas.map(|(of, one)| {
                CatalogProblem::new("schema", format!("`{name}`: schema of the {of}: {one}"), location)
            }));
            return None;
        }
    };
    // `described.output` is the payload's schema for a client tool; `spec.output_schema` is the answer's.
    let payload = described.output.as_ref().ok()?;
    let (projector, answer) = projectors(&spec, payload, location, problems)?;
    let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let requirements = described.behaviour.requirements();
    for beyond in requirements.iter().filter(|requirement| requirement.effect > spec.effect) {
        // The compiler refuses this; a tool that was not written by the macro comes as far as here.
        let message = format!(
            "`{}` is declared `{}`, but `{}` reaches `{}`; declare the stronger effect",
            spec.name, spec.effect, beyond.name, beyond.effect
        );
        problems.push(CatalogProblem::new("effect", message, location));
    }
    Some(Entry {
        location,
        timeout: meta.timeout,
        max_result_bytes: meta.max_result_bytes,
        semantics: Semantics {
            require_any: strings(meta.require_any),
            evidence: meta.evidence.iter().map(|(argument, tool)| ((*argument).into(), (*tool).into())).collect(),
            sensitive: strings(meta.sensitive),
        },
        identifiers: IdArguments::of(&spec.input_schema),
        requirements,
        behaviour: Arc::clone(&described.behaviour),
        projector: Some(projector),
        answer,
        no_schema: meta.no_schema,
        validator: OnceLock::new(),
        spec,
    })
}

/// The projector of the value and, for client tools, that of the answer.
fn projectors(
    spec: &ToolSpec,
    payload: &Schema,
    location: Option<Location>,
    problems: &mut Vec<CatalogProblem>,
) -> Option<(Arc<Projector>, Option<Answer>)> {
    let mut compile = |key: &str, allow: &[String], model: &[String], schema: &Schema| match Projector::compile(
        allow,
        model,
        &schema.to_value(),
    ) {
        Ok(projector) => Some(Arc::new(projector)),
        Err(found) => {
            problems.extend(
                found
                    .iter()
                    .map(|one| CatalogProblem::new("redaction", format!("`{}`: `{key}`: {one}", spec.name), location)),
            );
            None
        }
    };
    let Redaction { allow, model, prepare } = &spec.redaction;
    let shown = compile("redact", allow, model, &spec.output_schema);
    if spec.execution == Execution::Server {
        return Some((shown?, None));
    }
    let prepared = compile("prepare", prepare, &[], payload);
    let answer = Answer { schema: spec.output_schema.clone(), projector: shown?, compiled: OnceLock::new() };
    Some((prepared?, Some(answer)))
}

fn dynamic(tool: DynamicTool, problems: &mut Vec<CatalogProblem>) -> Option<Entry> {
    let execution = tool.execution();
    let parts = tool.0;
    let full = parts.namespace.map_or_else(|| parts.name.clone(), |namespace| format!("{namespace}__{}", parts.name));
    let before = problems.len();
    let name = ToolName::foreign(&full)
        .map_err(|error| {
            problems.push(CatalogProblem::new("name", format!("`{}`: {error}", full.escape_debug()), None));
        })
        .ok();
    let mut check = |of: &str, value: &Value| {
        schema::check_foreign(value)
            .map_err(|found| {
                problems.extend(found.iter().map(|one| {
                    CatalogProblem::new("schema", format!("`{}`: schema of the {of}: {one}", full.escape_debug()), None)
                }));
            })
            .ok()
    };
    let input = check("arguments", &parts.input);
    let untyped = Value::Bool(true);
    let payload = parts.output.as_ref().map(|schema| check("output", schema));
    let answer = parts.answer.as_ref().map(|schema| check("answer", schema));
    if parts.description.trim().is_empty() {
        let message = format!("`{}`: the description is empty; say what the tool is for", full.escape_debug());
        problems.push(CatalogProblem::new("description", message, None));
    }
    if problems.len() > before {
        return None;
    }
    let payload = payload.flatten();
    let output_schema = answer.clone().flatten().or_else(|| payload.clone()).unwrap_or_else(|| Schema::from_text("{}"));
    let mut spec = ToolSpec {
        name: name?,
        title: parts.title.map(Into::into),
        description: parts.description.into(),
        input_schema: input?,
        output_schema,
        effect: parts.effect,
        redaction: Redaction {
            allow: parts.redact.clone().unwrap_or_default(),
            model: parts.model,
            prepare: parts.prepare,
        },
        execution,
        tags: parts.tags,
        definition_hash: Hash([0; 32]),
    };
    spec.definition_hash = schema::definition_hash(&spec);
    let spec = Arc::new(spec);
    let (projector, answer) = match (&parts.redact, &payload) {
        (None, _) => (None, None),
        // Without a schema there is nothing to check the paths against.
        (Some(allow), None) if execution == Execution::Server => {
            (Some(Arc::new(Projector::without_schema(allow, &spec.redaction.model))), None)
        }
        (Some(_), payload) => {
            let any = Schema::from_text(untyped.to_string());
            let (projector, answer) = projectors(&spec, payload.as_ref().unwrap_or(&any), None, problems)?;
            (Some(projector), answer)
        }
    };
    Some(Entry {
        location: None,
        timeout: parts.timeout,
        max_result_bytes: parts.max_result_bytes,
        semantics: Semantics { require_any: parts.require_any, evidence: parts.evidence, sensitive: parts.sensitive },
        identifiers: IdArguments::of(&spec.input_schema),
        requirements: Vec::new(),
        behaviour: Arc::new(Handled { handler: parts.handler, output: payload, compiled: Arc::default() }),
        projector,
        answer,
        no_schema: parts.no_schema,
        validator: OnceLock::new(),
        spec,
    })
}
