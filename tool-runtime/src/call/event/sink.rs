//! [`EventSink`]: takes the events of a run.

use std::sync::Arc;

use crate::call::Event;

/// Takes the events of a run. Called inline: hand the event on and do not block. A panic in it is contained.
///
/// Every function or closure that takes an [`Event`] is a sink:
///
/// ```
/// use tool_runtime::{Event, RunOptions};
///
/// let (sender, _receiver) = std::sync::mpsc::channel();
/// let options = RunOptions::new().events(move |event: Event| drop(sender.send(event)));
/// ```
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync> EventSink for F {
    fn emit(&self, event: Event) {
        self(event);
    }
}

impl<S: EventSink + ?Sized> EventSink for Arc<S> {
    fn emit(&self, event: Event) {
        (**self).emit(event);
    }
}
