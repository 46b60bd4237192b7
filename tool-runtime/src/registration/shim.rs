//! The only generic code of a tool. All other code is compiled once for all tools.
//!
//! Generic code is compiled again for each tool of an application. So this file contains only code that needs the
//! types, and calls functions without type parameters for the rest. `tests/compile-time.sh` counts the instructions.

use std::sync::Arc;

use schemars::{JsonSchema, SchemaGenerator};

use crate::call::Violation;
use crate::capability::{Capabilities, Requirement};
use crate::component::declaration::Declaration;
use crate::component::{Bindings, Call, CapabilityList, Precondition, Reconciled, Tool, ToolComponent, ToolOutput};
use crate::error::{ErrorKind, ToolError};
use crate::json::{self, DeError, Tree};
use crate::redact::{Projected, Projector};
use crate::registration::{Behaviour, Described, Instance, Purpose, RunFailure, Running, Schemas, Stating};
use crate::schema;
use crate::tool::ToolEffect;
use crate::tool::level::EffectLevel;

/// The compiler's facts about a tool, without its type.
pub(crate) struct Types {
    effect: ToolEffect,
    output: fn(&mut SchemaGenerator) -> schemars::Schema,
    answer: fn(&mut SchemaGenerator) -> schemars::Schema,
    has_media: bool,
    shim: Shim,
}

/// The value that a tool returns, without the attached files.
type Value<T> = <<T as ToolComponent>::Output as ToolOutput>::Value;

impl Types {
    pub(super) const fn of<T: Tool>() -> Self {
        Self {
            effect: T::Effect::EFFECT,
            output: Value::<T>::json_schema,
            answer: T::Answer::json_schema,
            has_media: <<T as ToolComponent>::Output as ToolOutput>::HAS_MEDIA,
            shim: Shim {
                requirements: T::Capabilities::requirements,
                instantiate: instantiate::<T>,
                may_reconcile: T::Capabilities::MAY_RECONCILE,
                states: states::<T>,
            },
        }
    }

    /// Returns the schemas and the behaviour of a tool.
    pub(super) fn describe(&self, declaration: &Declaration) -> Described {
        let schemas = Schemas {
            input: declaration.input.map(|input| schema::compile_input(&input, declaration.constraints)),
            output: schema::compile_output(&self.output),
            answer: schema::compile_output(&self.answer),
            has_media: self.has_media,
        };
        Described::authored(declaration, self.effect, schemas, Arc::new(self.shim))
    }
}

#[derive(Clone, Copy)]
struct Shim {
    requirements: fn() -> Vec<Requirement>,
    instantiate: fn(&Tree<'_>) -> Result<Box<dyn Instance>, DeError>,
    may_reconcile: bool,
    states: fn() -> bool,
}

impl Behaviour for Shim {
    fn requirements(&self) -> Vec<Requirement> {
        (self.requirements)()
    }

    fn instantiate(&self, arguments: &Tree<'_>) -> Result<Box<dyn Instance>, DeError> {
        (self.instantiate)(arguments)
    }

    fn may_reconcile(&self) -> bool {
        self.may_reconcile
    }

    fn states(&self) -> bool {
        (self.states)()
    }
}

/// Whether a tool has a precondition.
fn states<T: Tool>() -> bool {
    T::Capabilities::MAY_STATE && !Precondition::is_silent(T::precondition)
}

fn instantiate<T: Tool>(arguments: &Tree<'_>) -> Result<Box<dyn Instance>, DeError> {
    Ok(Box::new(Typed(json::from_tree::<T>(arguments)?)))
}

struct Typed<T>(T);

impl<T: Tool> Instance for Typed<T> {
    fn validate(&self) -> Result<(), Violation> {
        self.0.validate()
    }

    fn run(
        self: Box<Self>,
        purpose: Purpose,
        bindings: Bindings<'_>,
        projector: Arc<Projector>,
        max_bytes: usize,
    ) -> Option<Running> {
        let end = End { projector, max_bytes };
        let capabilities = T::Capabilities::bind(&bindings)?;
        let call = Call::new(bindings.context);
        match purpose {
            Purpose::Work => Some(Box::pin(async move { end.ended(self.0.run(capabilities, &call).await) })),
            Purpose::Reconcile if T::Capabilities::MAY_RECONCILE => Some(reconcile(self.0, capabilities, call, end)),
            Purpose::Reconcile => Some(Box::pin(std::future::ready(Err(RunFailure::Unknown)))),
        }
    }

    fn precondition(self: Box<Self>, capabilities: Capabilities) -> Option<Stating> {
        if T::Capabilities::MAY_STATE { Some(Box::pin(self.0.precondition(capabilities))) } else { None }
    }
}

/// A separate function, so that it is not compiled for function tools.
fn reconcile<T: Tool>(tool: T, capabilities: T::Capabilities, call: Call<T>, end: End) -> Running {
    Box::pin(async move { end.reconciled(tool.reconcile(capabilities, &call).await) })
}

/// The projector, which writes the allowed leaves of an output, and the size limit.
struct End {
    projector: Arc<Projector>,
    max_bytes: usize,
}

impl End {
    fn ended<O: ToolOutput>(&self, ended: Result<O, ToolError>) -> Result<Projected, RunFailure> {
        let (value, media) = ended.map_err(failure)?.split();
        let projected = self.projector.project(&value, self.max_bytes).map_err(RunFailure::Output)?;
        Ok(self.projector.with_media(projected, media))
    }

    fn reconciled<O: ToolOutput>(&self, found: Result<Reconciled<O>, ToolError>) -> Result<Projected, RunFailure> {
        match found.map_err(failure)? {
            Reconciled::TookEffect(output) => self.ended(Ok(output)),
            Reconciled::Prevented => Err(RunFailure::Prevented),
            Reconciled::Unknown => Err(RunFailure::Unknown),
        }
    }
}

/// Classifies a tool's error for the runner.
fn failure(error: ToolError) -> RunFailure {
    if error.kind() == ErrorKind::Lost { RunFailure::Lost(error) } else { RunFailure::Tool(error) }
}
