//! From a description to the authoritative [`ToolSpec`], with or without a catalog.

use std::fmt;
use std::sync::Arc;

use crate::component::Tool;
use crate::component::declaration::Declaration;
use crate::registration::{Behaviour, Registration};
use crate::schema::{self, SchemaProblem};
use crate::tool::{Execution, Hash, NameError, Redaction, Schema, ToolEffect, ToolName, ToolSpec};

/// What the shim knows of a tool: constants, compiled schemas, behaviour.
pub(crate) struct Described {
    pub(crate) meta: &'static Declaration,
    pub(crate) effect: ToolEffect,
    /// Nothing under `allow_no_schema`.
    pub(crate) input: Option<Result<Schema, Vec<SchemaProblem>>>,
    pub(crate) output: Result<Schema, Vec<SchemaProblem>>,
    pub(crate) answer: Result<Schema, Vec<SchemaProblem>>,
    pub(crate) behaviour: Arc<dyn Behaviour>,
}

/// Why a tool has no definition: everything at once.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DefinitionError {
    /// The name is not legal.
    pub name: Option<NameError>,
    /// What is wrong with the schema of the arguments.
    pub input: Vec<SchemaProblem>,
    /// What is wrong with the schema of the output, or of a client's answer.
    pub output: Vec<SchemaProblem>,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.iter().map(ToString::to_string);
        let input = self.input.iter().map(|problem| format!("arguments: {problem}"));
        let output = self.output.iter().map(|problem| format!("output: {problem}"));
        f.write_str(&name.chain(input).chain(output).collect::<Vec<_>>().join("; "))
    }
}

impl std::error::Error for DefinitionError {}

/// The definition of a tool, read without a catalog.
///
/// # Errors
/// Name or schemas are not what a definition may hold.
pub fn definition<T: Tool>() -> Result<ToolSpec, DefinitionError> {
    authored_spec(&(Registration::of::<T>().describe)())
}

/// Builds the definition of an authored tool.
pub(crate) fn authored_spec(described: &Described) -> Result<ToolSpec, DefinitionError> {
    let meta = described.meta;
    let mut error = DefinitionError { name: None, input: Vec::new(), output: Vec::new() };
    let name = ToolName::parse(meta.name).map_err(|problem| error.name = Some(problem)).ok();
    let input = match &described.input {
        None => Some(Schema::from_text(r#"{"type":"object"}"#)),
        Some(compiled) => compiled.as_ref().map_err(|problems| error.input.clone_from(problems)).ok().cloned(),
    };
    let output = match meta.execution {
        Execution::Server => &described.output,
        Execution::Client => &described.answer,
    };
    let output = output.as_ref().map_err(|problems| error.output.clone_from(problems)).ok();
    let (Some(name), Some(input), Some(output)) = (name, input, output) else {
        return Err(error);
    };
    let mut spec = ToolSpec {
        name,
        title: meta.title.map(Into::into),
        description: meta.description.into(),
        input_schema: schema::publish_require_any(&input, meta.require_any),
        output_schema: output.clone(),
        effect: described.effect,
        redaction: Redaction { allow: owned(meta.redact), model: owned(meta.model), prepare: owned(meta.prepare) },
        execution: meta.execution,
        tags: meta.tags.iter().map(|tag| (*tag).into()).collect(),
        definition_hash: Hash([0; 32]),
    };
    spec.definition_hash = schema::definition_hash(&spec);
    Ok(spec)
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
