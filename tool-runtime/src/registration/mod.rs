//! [`Registration`]: what `#[tool]` leaves for the catalog to collect.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::tool::{
    EffectLevel, Hash, Meta, NameError, Redaction, Schema, Tool, ToolComponent, ToolEffect, ToolName, ToolSpec,
};

/// One tool that is linked into the program.
pub struct Registration {
    pub(crate) meta: &'static Meta,
    pub(crate) definition: fn() -> Result<ToolSpec, DefinitionError>,
}

impl Registration {
    /// The registration of an authored tool.
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self { meta: &T::META, definition: definition::<T> }
    }

    /// The definition of the registered tool.
    pub fn definition(&self) -> Result<ToolSpec, DefinitionError> {
        (self.definition)()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.meta.name).finish()
    }
}

inventory::collect!(Registration);

/// Why a tool has no definition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name is illegal.
    Name(NameError),
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DefinitionError {}

/// Makes the definition of a tool from the tool alone.
pub fn definition<T: Tool>() -> Result<ToolSpec, DefinitionError> {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let input = T::input_schema(&mut generator).unwrap_or_default().to_value();
    let output = <<T as ToolComponent>::Output as schemars::JsonSchema>::json_schema(&mut generator).to_value();
    build(&T::META, T::Effect::EFFECT, &input, &output)
}

fn build(
    meta: &Meta,
    effect: ToolEffect,
    input: &serde_json::Value,
    output: &serde_json::Value,
) -> Result<ToolSpec, DefinitionError> {
    let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    let mut spec = ToolSpec {
        name: ToolName::parse(meta.name).map_err(DefinitionError::Name)?,
        title: meta.title.map(Into::into),
        description: meta.description.into(),
        input_schema: Schema::from_text(input.to_string()),
        output_schema: Schema::from_text(output.to_string()),
        effect,
        redaction: Redaction { allow: owned(meta.redact), model: owned(meta.model), prepare: owned(meta.prepare) },
        execution: meta.execution,
        tags: meta.tags.iter().map(|tag| (*tag).into()).collect(),
        definition_hash: Hash([0; 32]),
    };
    let text = format!(
        "{:?} {:?} {:?}",
        (&spec.name, effect),
        (input, output),
        (&spec.redaction, &spec.tags, &spec.description)
    );
    spec.definition_hash = Hash(Sha256::digest(text).into());
    Ok(spec)
}
