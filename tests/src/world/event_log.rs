//! [`EventLog`]: an event sink that keeps all events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tool_runtime::Event;

/// Keeps the events of a run. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct EventLog(Arc<Mutex<Vec<Event>>>);

impl EventLog {
    /// The sink for the options of a run.
    pub fn sink(&self) -> impl Fn(Event) + Send + Sync + use<> {
        let log = self.clone();
        move |event| log.events().push(event)
    }

    /// The events since the last [`Self::take`].
    pub fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the events since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events())
    }

    /// Takes the events since the last time, and returns the reasons of their `done` events.
    #[must_use]
    pub fn done(&self) -> Vec<String> {
        let done = |event: Event| match event {
            Event::Done { reason, .. } => Some(reason),
            _ => None,
        };
        self.take().into_iter().filter_map(done).collect()
    }
}
