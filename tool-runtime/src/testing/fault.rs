//! [`Fault`]: a fault that a test injects into a tool.

#![allow(clippy::panic, reason = "a panic is one of the faults")]

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::call::Violation;
use crate::capability::{Capabilities, Requirement};
use crate::component::Bindings;
use crate::error::ToolError;
use crate::json::{DeError, Tree};
use crate::redact::Projector;
use crate::registration::{Behaviour, Instance, Purpose, RunFailure, Running, Stating};
use crate::testing::capability_calls::CapabilityCalls;

/// A fault that a test injects into a tool. It replaces, delays or spoils the work of the tool, and the runner treats
/// it like a real one.
///
/// ```
/// use serde_json::json;
/// use tool_runtime::testing::{Fault, harness};
/// use tool_runtime::{ToolCatalog, ToolError, tool};
///
/// /// Sends a letter.
/// #[tool(name = "post__send", effect = external_side_effect, redact = ["$"], timeout = "5s")]
/// fn send() -> Result<u32, ToolError> {
///     Ok(1)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let catalog = ToolCatalog::builder().tool::<send>().build()?;
/// let harness = harness(catalog).fault("post__send", Fault::Hang);
/// // The test's clock of tokio is paused, so the five seconds take no time.
/// harness.call("post__send", json!({})).await.assert_outcome("outcome_unknown");
/// harness.heal("post__send");
/// // The first letter may have been sent, so a person decides on a second one.
/// harness.call("post__send", json!({})).await.assert_outcome("approval_required");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// The tool panics.
    Panic,
    /// The tool never ends by itself; only a timeout or a cancellation ends it.
    Hang,
    /// The tool begins after this time. With tokio's paused clock, the test does not wait.
    Slow(Duration),
    /// The tool runs, but its output is larger than the limit, even when it is cut. To test a cut output, lower
    /// `max_result_bytes` in the policy.
    Oversize,
    /// The tool runs, and its output is replaced by the number NaN, which no schema allows.
    InvalidOutput,
    /// The tool fails with this text, as a [`ToolError::internal`], whose text only operators see.
    Error(String),
}

/// The faults of a harness, by the name of the tool.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults(Arc<Mutex<HashMap<String, Fault>>>);

impl Faults {
    pub(super) fn set(&self, tool: &str, fault: Option<Fault>) {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Some(fault) => faults.insert(tool.to_owned(), fault),
            None => faults.remove(tool),
        };
    }

    /// Returns the names of the tools that have a fault.
    pub(super) fn tools(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn of(&self, tool: &str) -> Option<Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(tool).cloned()
    }

    /// Wraps a tool: it runs with the fault that is set at that time, and its calls of capabilities are recorded.
    pub(super) fn around(
        &self,
        tool: &str,
        behaviour: Arc<dyn Behaviour>,
        calls: &CapabilityCalls,
    ) -> Arc<dyn Behaviour> {
        Arc::new(Faulty { tool: tool.into(), behaviour, faults: self.clone(), calls: calls.clone() })
    }
}

struct Faulty {
    tool: Arc<str>,
    behaviour: Arc<dyn Behaviour>,
    faults: Faults,
    calls: CapabilityCalls,
}

impl Behaviour for Faulty {
    fn requirements(&self) -> Vec<Requirement> {
        self.behaviour.requirements()
    }

    fn instantiate(&self, arguments: &Tree<'_>) -> Result<Box<dyn Instance>, DeError> {
        let instance = self.behaviour.instantiate(arguments)?;
        let (tool, faults, calls) = (Arc::clone(&self.tool), self.faults.clone(), self.calls.clone());
        Ok(Box::new(FaultyInstance { tool, instance, faults, calls }))
    }

    fn may_reconcile(&self) -> bool {
        self.behaviour.may_reconcile()
    }

    fn states(&self) -> bool {
        self.behaviour.states()
    }
}

struct FaultyInstance {
    tool: Arc<str>,
    instance: Box<dyn Instance>,
    faults: Faults,
    calls: CapabilityCalls,
}

impl Instance for FaultyInstance {
    fn validate(&self) -> Result<(), Violation> {
        self.instance.validate()
    }

    fn run(
        self: Box<Self>,
        purpose: Purpose,
        bindings: Bindings<'_>,
        projector: Arc<Projector>,
        max_bytes: usize,
    ) -> Option<Running> {
        let recorded = self.calls.around(&bindings);
        let (capabilities, connections) = (&recorded.capabilities, &*recorded.connections);
        let bindings = Bindings { capabilities, client: None, connections, ..bindings };
        let fault = self.faults.of(&self.tool);
        let Some(fault) = fault.filter(|_| purpose == Purpose::Work) else {
            return self.instance.run(purpose, bindings, projector, max_bytes);
        };
        Some(match fault {
            Fault::Panic => Box::pin(async { panic!("the test injected this panic") }),
            Fault::Hang => Box::pin(pending()),
            Fault::Slow(time) => {
                let running = self.instance.run(purpose, bindings, projector, max_bytes)?;
                Box::pin(async move {
                    tokio::time::sleep(time).await;
                    running.await
                })
            }
            // No JSON text has zero bytes.
            Fault::Oversize => self.instance.run(purpose, bindings, projector, 0)?,
            Fault::InvalidOutput => {
                let running = self.instance.run(purpose, bindings, Arc::clone(&projector), max_bytes)?;
                Box::pin(async move {
                    running.await?;
                    // NaN is not JSON, so it fits no schema.
                    projector.project(&f64::NAN, max_bytes).map_err(RunFailure::Output)
                })
            }
            Fault::Error(text) => Box::pin(async move { Err(RunFailure::Tool(ToolError::internal(text))) }),
        })
    }

    fn precondition(self: Box<Self>, capabilities: Capabilities) -> Option<Stating> {
        self.instance.precondition(capabilities)
    }
}
