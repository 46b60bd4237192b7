//! The one generic shim: everything else is compiled once for all tools.

use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;

use crate::call::Violation;
use crate::capability::Requirement;
use crate::component::{Bindings, Call, CapabilityList, Reconciled, Tool, ToolComponent, ToolOutput};
use crate::json::{self, DeError, Tree};
use crate::redact::Projector;
use crate::registration::{Behaviour, Described, Instance, Purpose, RunFailure, Running, Schemas};
use crate::schema;
use crate::tool::level::EffectLevel;

/// Schemas and behaviour of a tool.
pub(super) fn describe<T: Tool>() -> Described {
    let schemas = Schemas {
        input: T::DECLARATION.no_schema.is_none().then(|| {
            // The macro gives no schema only together with `allow_no_schema`.
            schema::compile_input(|generator| T::input_schema(generator).unwrap_or_default())
        }),
        output: schema::compile_output(Value::<T>::json_schema),
        answer: schema::compile_output(T::Answer::json_schema),
        has_media: <<T as ToolComponent>::Output as ToolOutput>::HAS_MEDIA,
    };
    Described::authored(&T::DECLARATION, T::Effect::EFFECT, schemas, Arc::new(Shim::<T>(PhantomData)))
}

/// What a tool returns without the files beside it.
type Value<T> = <<T as ToolComponent>::Output as ToolOutput>::Value;

struct Shim<T>(PhantomData<fn() -> T>);

impl<T: Tool> Behaviour for Shim<T> {
    fn requirements(&self) -> Vec<Requirement> {
        T::Capabilities::requirements()
    }

    fn instantiate(&self, arguments: &Tree<'_>) -> Result<Box<dyn Instance>, DeError> {
        Ok(Box::new(Typed(json::from_tree::<T>(arguments)?)))
    }
}

struct Typed<T>(T);

impl<T: Tool> Instance for Typed<T> {
    fn validate(&self) -> Result<(), Violation> {
        self.0.validate()
    }

    fn run(
        self: Box<Self>,
        purpose: Purpose,
        bindings: &Bindings<'_>,
        projector: Arc<Projector>,
        max_bytes: usize,
    ) -> Option<Running> {
        let capabilities = T::Capabilities::bind(bindings)?;
        let call = Call::<T>::new(Arc::clone(bindings.context));
        Some(Box::pin(async move {
            let output = match purpose {
                Purpose::Work => self.0.run(capabilities, &call).await.map_err(RunFailure::Tool)?,
                Purpose::Reconcile => match self.0.reconcile(capabilities, &call).await.map_err(RunFailure::Tool)? {
                    Reconciled::TookEffect(output) => output,
                    Reconciled::Prevented => return Err(RunFailure::Prevented),
                    Reconciled::Unknown => return Err(RunFailure::Unknown),
                },
            };
            let (value, media) = output.split();
            let projected = projector.project(&value, max_bytes).map_err(RunFailure::Output)?;
            Ok(projector.with_media(projected, media))
        }))
    }
}
