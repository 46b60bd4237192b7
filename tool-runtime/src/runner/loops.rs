//! What an agent loop asks of its run.

use std::sync::{Arc, PoisonError};

use crate::call::{CallId, EventSink};
use crate::runner::Run;
use crate::store::{PendingCall, StoreError};
use crate::tool::ToolEffect;

impl Run {
    /// How far a tool reaches, as the policy takes it. `None` if there is no such tool.
    pub(crate) fn effect_of(&self, name: &str) -> Option<ToolEffect> {
        let shared = &self.0.shared;
        shared.catalog.get(name).map(|spec| shared.policy.effect_of(name, spec.effect))
    }

    /// How many `read_only` calls of one turn the policy lets run at the same time; at least one.
    pub(crate) fn parallel(&self) -> usize {
        self.0.shared.policy.parallel()
    }

    /// The stored document of a call of this run that waits.
    pub(crate) async fn pending(&self, call_id: &CallId) -> Result<Option<PendingCall>, StoreError> {
        self.0.shared.store.pending(self.id(), call_id).await
    }

    /// Sets or removes the sink that hears the run in addition to its own.
    pub(crate) fn listen(&self, sink: Option<Arc<dyn EventSink>>) {
        let mut listener = self.0.listener.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *listener, sink);
        // Dropped without the lock: a sink's destructor is the application's code.
        drop(listener);
        drop(before);
    }

    pub(super) fn listener(&self) -> Option<Arc<dyn EventSink>> {
        self.0.listener.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
