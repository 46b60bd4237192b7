//! What an agent loop asks of its run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::call::{CallId, EventSink};
use crate::runner::Run;
use crate::runner::report::contained::Contained;
use crate::runner::report::telemetry;
use crate::runner::waiting::comparison;
use crate::store::{PendingCall, StoreError};
use crate::tool::ToolEffect;

impl Run {
    /// How far a tool reaches, as the policy takes it. `None` if there is no such tool.
    pub(crate) fn effect_of(&self, name: &str) -> Option<ToolEffect> {
        let shared = self.shared();
        shared.catalog.get(name).map(|spec| self.policy().effect_of(name, spec.effect))
    }

    /// How many `read_only` calls of one turn the policy lets run at the same time; at least one.
    pub(crate) fn parallel(&self) -> usize {
        self.policy().parallel()
    }

    /// Returns the stored document of a call of this run that waits. `None` if the call does not wait.
    ///
    /// # Errors
    /// The store cannot be reached, or its documents cannot be read.
    pub async fn pending(&self, call_id: &CallId) -> Result<Option<PendingCall>, StoreError> {
        let waiting = self.shared().store.waiting(self.waiting_key(call_id)).await;
        let waiting = waiting.map_err(|error| telemetry::store_unread(self, error))?.map(|waiting| waiting.call);
        Ok(waiting.filter(|call| comparison::owns(self, call.principal.as_deref(), call.tenant.as_deref())))
    }

    /// Sets or removes the sink that hears the run in addition to its own.
    pub(crate) fn listen(&self, sink: Option<Arc<dyn EventSink>>) {
        let failures = &self.shared().failures;
        self.listener().set(sink.map(|sink| Arc::new(Contained::new(sink, failures.clone()))));
    }
}

/// A sink that hears one turn of a conversation.
#[derive(Default)]
pub(in crate::runner) struct Listener {
    /// Read first, so that a call of a run without a listener takes no lock.
    set: AtomicBool,
    sink: Mutex<Option<Arc<Contained<dyn EventSink>>>>,
}

impl Listener {
    pub(in crate::runner) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    pub(in crate::runner) fn get(&self) -> Option<Arc<Contained<dyn EventSink>>> {
        if self.is_set() { self.sink.lock().unwrap_or_else(PoisonError::into_inner).clone() } else { None }
    }

    fn set(&self, sink: Option<Arc<Contained<dyn EventSink>>>) {
        let mut kept = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        self.set.store(sink.is_some(), Ordering::Release);
        let before = std::mem::replace(&mut *kept, sink);
        // Dropped without the lock: a sink's destructor is the application's code.
        drop(kept);
        drop(before);
    }
}
