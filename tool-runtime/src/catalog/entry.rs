//! [`Entry`]: a definition together with everything the runner needs to run it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::capability::Requirement;
use crate::redact::Projector;
use crate::registration::Behaviour;
use crate::schema::validator::{Compiled, Validator};
use crate::schema::{IdArguments, SchemaProblem};
use crate::tool::{Location, NoSchemaMode, Schema, ToolSpec};

/// One tool of a catalog.
#[non_exhaustive]
pub struct Entry {
    /// The definition.
    pub spec: Arc<ToolSpec>,
    /// Where it is written; nothing for dynamic tools.
    pub location: Option<Location>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_bytes: Option<usize>,
    pub(crate) semantics: Semantics,
    pub(crate) identifiers: IdArguments,
    pub(crate) behaviour: Arc<dyn Behaviour>,
    /// What the tool borrows. None of it reaches further than the tool declares.
    pub(crate) requirements: Vec<Requirement>,
    /// Of the value, or of the prepared payload of a client tool. Nothing when no allowlist was given.
    pub(crate) projector: Option<Arc<Projector>>,
    /// What a client answers with.
    pub(crate) answer: Option<Answer>,
    pub(crate) no_schema: Option<NoSchemaMode>,
    pub(crate) validator: OnceLock<Result<Arc<dyn Compiled>, SchemaProblem>>,
}

/// Rules beyond the schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Semantics {
    pub(crate) require_any: Vec<String>,
    /// Argument, and the tool that lists such values.
    pub(crate) evidence: Vec<(String, String)>,
    pub(crate) sensitive: Vec<String>,
}

/// How a client's answer is checked and shown.
pub(crate) struct Answer {
    pub(crate) schema: Schema,
    pub(crate) projector: Arc<Projector>,
    pub(crate) compiled: OnceLock<Result<Arc<dyn Compiled>, SchemaProblem>>,
}

impl Entry {
    /// The compiled input schema: the first caller compiles it.
    pub(crate) fn validator(&self, validator: &dyn Validator) -> Result<&Arc<dyn Compiled>, SchemaProblem> {
        compiled(&self.validator, &self.spec.input_schema, validator)
    }
}

impl Answer {
    /// The compiled schema of the answer: the first caller compiles it.
    pub(crate) fn validator(&self, validator: &dyn Validator) -> Result<&Arc<dyn Compiled>, SchemaProblem> {
        compiled(&self.compiled, &self.schema, validator)
    }
}

fn compiled<'c>(
    cell: &'c OnceLock<Result<Arc<dyn Compiled>, SchemaProblem>>,
    schema: &Schema,
    validator: &dyn Validator,
) -> Result<&'c Arc<dyn Compiled>, SchemaProblem> {
    cell.get_or_init(|| validator.compile(schema)).as_ref().map_err(Clone::clone)
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.spec.name).finish_non_exhaustive()
    }
}
