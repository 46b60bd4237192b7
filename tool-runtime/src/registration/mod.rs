//! How a tool comes into a catalog: [`Registration`] for authored ones, [`DynamicTool`] for those made at run time.
//!
//! [`Behaviour`] and [`Instance`] erase the tool's type; the shim behind them is the only generic code per tool.

mod definition;
mod dynamic;
mod shim;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::tool::{
    EffectLevel, Hash, Meta, NameError, Redaction, Schema, Tool, ToolComponent, ToolEffect, ToolName, ToolSpec,
};

use crate::call::Violation;
use crate::capability::{Bindings, Requirement};
use crate::error::ToolError;
use crate::json::{DeError, Tree};
use crate::redact::{ProjectError, Projected, Projector};
use crate::tool::{Location, Meta, Tool};

/// What `#[tool]` hands to `inventory`: the constants and one function pointer.
#[derive(Clone, Copy)]
pub struct Registration {
    pub(crate) meta: &'static Meta,
    pub(crate) describe: fn() -> Described,
}

impl Registration {
    /// The registration of a tool.
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self { meta: &T::META, describe: shim::describe::<T> }
    }

    /// Where the tool is written.
    #[must_use]
    pub const fn location(&self) -> Location {
        self.meta.location
    }
}

inventory::collect!(Registration);

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("name", &self.meta.name).finish_non_exhaustive()
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
