//! [`Described`]: the declaration of a tool, authored or dynamic, and the one place that turns it into a [`ToolSpec`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::capability::Requirement;
use crate::component::Tool;
use crate::component::declaration::Declaration;
use crate::error::{BuildError, ParseError, Problem};
use crate::json;
use crate::registration::{Behaviour, GraphDeclaration, Published, Registration};
use crate::schema;
use crate::tool::{Execution, Hash, Location, NoSchemaMode, Once, Redaction, Schema, ToolEffect, ToolName, ToolSpec};

/// A schema, or all problems of it.
pub(crate) type Checked = Result<Schema, Vec<Problem>>;

/// The declaration of a tool before it is checked as a whole.
pub(crate) struct Described {
    /// The name as written.
    pub(crate) written: String,
    pub(crate) name: Result<ToolName, ParseError>,
    pub(crate) title: Option<Arc<str>>,
    pub(crate) description: Arc<str>,
    pub(crate) summary: Vec<Arc<str>>,
    pub(crate) input: Checked,
    /// The schema of the tool's output, or of a client tool's payload; `None` for a dynamic tool without an output
    /// schema.
    pub(crate) output: Option<Checked>,
    /// The schema of a client's result; `None` for server tools.
    pub(crate) answer: Option<Checked>,
    pub(crate) effect: ToolEffect,
    /// `None` without an allowlist.
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) model: Vec<String>,
    pub(crate) prepare: Vec<String>,
    pub(crate) tags: Vec<Arc<str>>,
    pub(crate) also: Vec<Arc<str>>,
    pub(crate) sensitive: Vec<String>,
    pub(crate) evidence: BTreeMap<String, String>,
    pub(crate) require_any: Vec<String>,
    pub(crate) idempotent: bool,
    pub(crate) once: Option<Once>,
    pub(crate) no_schema: Option<NoSchemaMode>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_bytes: Option<usize>,
    pub(crate) location: Option<Location>,
    /// Whether the output can have attached files; `None` if only the tool's handler knows.
    pub(crate) has_media: Option<bool>,
    pub(crate) requirements: Vec<Requirement>,
    /// The hash of the definition that an MCP server published; `None` for every other tool.
    pub(crate) pin: Option<Hash>,
    /// The definition that the server publishes now; `None` for a tool that no server can change.
    pub(crate) published: Option<Arc<dyn Published>>,
    /// The declaration of a graph (an agent or a script that runs as a tool); `None` for every other tool.
    pub(crate) graph: Option<GraphDeclaration>,
    pub(crate) behaviour: Arc<dyn Behaviour>,
}

/// Returns the definition of a tool, without a catalog.
///
/// # Errors
/// The name or a schema is not allowed in a definition.
pub fn definition<T: Tool>() -> Result<ToolSpec, BuildError> {
    Registration::of::<T>().describe().spec()
}

impl Described {
    /// Combines the keys of the attribute with the compiler's facts about the types.
    pub(crate) fn authored(
        declared: &Declaration,
        effect: ToolEffect,
        schemas: Schemas,
        behaviour: Arc<dyn Behaviour>,
    ) -> Self {
        let is_client = declared.execution == Execution::Client;
        Self {
            written: declared.name.to_owned(),
            name: ToolName::parse(declared.name),
            title: declared.title.map(Into::into),
            description: declared.description.into(),
            summary: declared.summary.iter().map(|sentence| (*sentence).into()).collect(),
            input: match schemas.input {
                Some(input) => input.map(|input| schema::publish_require_any(&input, declared.require_any)),
                None => Ok(Schema::from_text(ANY_OBJECT)),
            },
            output: Some(schemas.output),
            answer: is_client.then_some(schemas.answer),
            effect,
            allow: Some(owned(declared.redact)),
            model: owned(declared.model),
            prepare: owned(declared.prepare),
            tags: declared.tags.iter().map(|tag| (*tag).into()).collect(),
            also: declared.also.iter().map(|words| (*words).into()).collect(),
            sensitive: owned(declared.sensitive),
            evidence: declared.evidence.iter().map(|(argument, tool)| ((*argument).into(), (*tool).into())).collect(),
            require_any: owned(declared.require_any),
            idempotent: declared.idempotent,
            once: declared.once.map(|(key, scope, keep)| Once {
                key: key.into(),
                scope,
                keep: keep.map(|keep| keep.as_secs()),
            }),
            no_schema: declared.no_schema,
            timeout: declared.timeout,
            max_result_bytes: declared.max_result_bytes,
            location: Some(declared.location),
            has_media: Some(schemas.has_media),
            requirements: behaviour.requirements(),
            pin: None,
            published: None,
            graph: None,
            behaviour,
        }
    }

    /// Creates the definition.
    ///
    /// # Errors
    /// The name or a schema is not allowed in a definition.
    pub(crate) fn spec(&self) -> Result<ToolSpec, BuildError> {
        let mut found = Vec::new();
        let name = self.name.clone().map_err(|error| found.push(Problem::of("name", error.to_string(), None))).ok();
        let mut add = |of, problems: &[Problem]| {
            found.extend(problems.iter().map(|problem| problem.clone().in_schema_of(of)));
        };
        let input = self.input.clone().map_err(|problems| add("arguments", &problems)).ok();
        let mut output = Schema::from_text("{}");
        for found in [&self.output, &self.answer].into_iter().flatten() {
            match found {
                // A client's answer replaces the payload as the output of the tool.
                Ok(schema) => output = schema.clone(),
                Err(problems) => add("output", problems),
            }
        }
        let (Some(name), Some(input_schema), true) = (name, input, found.is_empty()) else {
            return Err(BuildError::new(found));
        };
        let mut spec = ToolSpec {
            name,
            title: self.title.clone(),
            description: Arc::clone(&self.description),
            input_schema,
            output_schema: output,
            summary: self.summary.clone(),
            effect: self.effect,
            redaction: Redaction {
                allow: self.allow.clone().unwrap_or_default(),
                model: self.model.clone(),
                prepare: self.prepare.clone(),
            },
            execution: if self.answer.is_some() { Execution::Client } else { Execution::Server },
            tags: self.tags.clone(),
            also: self.also.clone(),
            sensitive: self.sensitive.clone(),
            evidence: self.evidence.clone(),
            require_any: self.require_any.clone(),
            idempotent: self.idempotent,
            once: self.once.clone(),
            no_schema: self.no_schema,
            pin: self.pin,
            definition_hash: Hash([0; 32]),
        };
        spec.definition_hash = schema::definition_hash(&spec, &self.requirements);
        if let Some(pin) = self.pin {
            // The pin covers all published members, so an approval also covers those that this library does not read.
            spec.definition_hash = json::digest([spec.definition_hash.0, pin.0].concat());
        }
        if let Some(graph) = &self.graph {
            spec.definition_hash = graph.hash(spec.definition_hash);
        }
        Ok(spec)
    }
}

/// The compiled schemas of an authored tool.
pub(crate) struct Schemas {
    /// `None` under `allow_no_schema`.
    pub(crate) input: Option<Checked>,
    pub(crate) output: Checked,
    pub(crate) answer: Checked,
    /// Whether the output can have attached files.
    pub(crate) has_media: bool,
}

/// The schema in the definition of a tool without one.
pub(crate) const ANY_OBJECT: &str = r#"{"type":"object"}"#;

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
