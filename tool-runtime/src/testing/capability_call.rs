//! [`CapabilityCall`]: what a call did with a capability, as the harness recorded it.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::call::CallId;
use crate::capability::{Capabilities, Recorder, Source};
use crate::component::Bindings;

/// A method of a capability that a tool called.
///
/// `Display` writes `Clock::now`, or `Clock::now("Oslo")` under [`record_arguments`](super::Harness::record_arguments).
///
/// ```
/// use serde_json::json;
/// use tool_runtime::capability::Capabilities;
/// use tool_runtime::{ToolCatalog, ToolError, capability, testing, tool};
///
/// /// Counts parts.
/// #[capability(effect = read_only)]
/// trait Stock {
///     /// How many parts there are.
///     fn count(&self, part: &str) -> u32;
/// }
/// # struct Shelf;
/// # impl Stock for Shelf {
/// #     fn count(&self, _: &str) -> u32 { 7 }
/// # }
/// # /// Counts a part.
/// # #[tool(name = "stock__count", effect = read_only, redact = ["$"])]
/// # fn count(
/// #     stock: &dyn Stock,
/// #     /// Which.
/// #     part: String,
/// # ) -> Result<u32, ToolError> { Ok(stock.count(&part)) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let capabilities = Capabilities::new().with::<dyn Stock>(std::sync::Arc::new(Shelf));
/// let harness = testing::Harness::new(ToolCatalog::builder().tool::<count>().build()?).capabilities(capabilities);
/// let call = harness.record_arguments().call("stock__count", json!({ "part": "P-10" })).await;
/// assert_eq!(call.capability_calls()[0].to_string(), r#"Stock::count("P-10")"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapabilityCall {
    /// The call that borrowed the capability.
    pub call: CallId,
    /// The name of the trait.
    pub capability: &'static str,
    /// The method. `None` notes only that the call borrowed the capability, because its methods are not recorded.
    pub method: Option<&'static str>,
    /// Each argument as `Debug` prints it, `_` for one without `Debug`. `None` if the harness records no arguments.
    pub arguments: Option<Vec<String>>,
}

impl fmt::Display for CapabilityCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.capability)?;
        if let Some(method) = self.method {
            write!(f, "::{method}")?;
        }
        match &self.arguments {
            Some(arguments) => write!(f, "({})", arguments.join(", ")),
            None => Ok(()),
        }
    }
}

/// The calls of a harness, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct CapabilityCalls {
    all: Arc<Mutex<Vec<CapabilityCall>>>,
    has_arguments: Arc<AtomicBool>,
}

/// The values that a call borrows, each in a recording adapter if it has one.
pub(super) struct Recorded {
    pub(super) capabilities: Capabilities,
    pub(super) connections: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
}

impl CapabilityCalls {
    pub(super) fn record_arguments(&self) {
        self.has_arguments.store(true, Ordering::Relaxed);
    }

    pub(super) fn all(&self) -> Vec<CapabilityCall> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn of(&self, call: &CallId) -> Vec<CapabilityCall> {
        self.all().into_iter().filter(|one| one.call == *call).collect()
    }

    /// Records everything that a call does with what it borrows.
    pub(super) fn around(&self, bindings: &Bindings<'_>) -> Recorded {
        let mut recorded = Recorded { capabilities: Capabilities::new(), connections: Vec::new() };
        for requirement in bindings.granted {
            let Some(bound) = bindings.shared(requirement.type_id) else { continue };
            let (all, call, capability) = (Arc::clone(&self.all), bindings.context.call_id().clone(), requirement.name);
            let note = move |method, arguments| {
                let call = CapabilityCall { call: call.clone(), capability, method, arguments };
                all.lock().unwrap_or_else(PoisonError::into_inner).push(call);
            };
            let borrowed = note.clone();
            let recorder = Recorder::new(self.has_arguments.load(Ordering::Relaxed), move |method, arguments| {
                note(Some(method), arguments);
            });
            let bound = requirement.recorded(&bound, &recorder).unwrap_or_else(|| {
                borrowed(None, None);
                bound
            });
            match requirement.source {
                Source::Connection(_) => recorded.connections.push((requirement.type_id, bound)),
                Source::Capability | Source::Context => {
                    recorded.capabilities.bind(requirement.type_id, requirement.name, bound);
                }
            }
        }
        recorded
    }
}
