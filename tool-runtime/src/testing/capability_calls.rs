//! [`CapabilityCalls`]: the method calls on capabilities that a harness recorded.

use std::any::{Any, TypeId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::call::CallId;
use crate::capability::{Capabilities, InjectedFrom, Recorder};
use crate::component::Bindings;

/// The method calls on capabilities that a harness recorded, in order. Each has the id of the tool call that borrowed
/// the capability, and a text: `Clock::now`, or `Clock::now("Oslo")` with arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct CapabilityCalls {
    all: Arc<Mutex<Vec<(CallId, String)>>>,
    has_arguments: Arc<AtomicBool>,
}

/// The values that a call borrows, each wrapped in its recording adapter if it has one.
pub(super) struct Recorded {
    pub(super) capabilities: Capabilities,
    pub(super) connections: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
}

impl CapabilityCalls {
    pub(super) fn record_arguments(&self) {
        self.has_arguments.store(true, Ordering::Relaxed);
    }

    pub(super) fn all(&self) -> Vec<(CallId, String)> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn of(&self, call: &CallId) -> Vec<String> {
        self.all().into_iter().filter(|(of, _)| of == call).map(|(_, text)| text).collect()
    }

    /// Wraps the values that a call borrows in recording adapters.
    pub(super) fn around(&self, bindings: &Bindings<'_>) -> Recorded {
        let mut recorded = Recorded { capabilities: Capabilities::new(), connections: Vec::new() };
        for requirement in bindings.granted {
            let Some(bound) = bindings.shared(requirement.type_id) else { continue };
            let (all, call, capability) = (Arc::clone(&self.all), bindings.context.call_id().clone(), requirement.name);
            let note = move |method: Option<&'static str>, arguments: Option<Vec<String>>| {
                let method = method.map(|method| format!("::{method}")).unwrap_or_default();
                let arguments = arguments.map(|all| format!("({})", all.join(", "))).unwrap_or_default();
                let text = format!("{capability}{method}{arguments}");
                all.lock().unwrap_or_else(PoisonError::into_inner).push((call.clone(), text));
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
                InjectedFrom::Connection(_) => recorded.connections.push((requirement.type_id, bound)),
                InjectedFrom::Capability | InjectedFrom::Context => {
                    recorded.capabilities.bind(requirement.type_id, requirement.name, bound);
                }
            }
        }
        recorded
    }
}
