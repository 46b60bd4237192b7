//! [`Listener`]: a sink that receives the events of one turn of a conversation, in addition to the sink of its run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::call::EventSink;
use crate::runner::report::contained::Contained;

/// A sink that receives the events of one turn of a conversation.
#[derive(Default)]
pub(in crate::runner) struct Listener {
    /// Whether there is a sink. It is read first, so that a call of a run without a listener takes no lock.
    set: AtomicBool,
    sink: Mutex<Option<Arc<Contained<EventSink>>>>,
}

impl Listener {
    pub(in crate::runner) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    pub(in crate::runner) fn get(&self) -> Option<Arc<Contained<EventSink>>> {
        if self.is_set() { self.sink.lock().unwrap_or_else(PoisonError::into_inner).clone() } else { None }
    }

    pub(in crate::runner) fn set(&self, sink: Option<Arc<Contained<EventSink>>>) {
        let mut kept = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        self.set.store(sink.is_some(), Ordering::Release);
        let before = std::mem::replace(&mut *kept, sink);
        // Dropped outside the lock, because a sink's destructor is the application's code.
        drop(kept);
        drop(before);
    }
}
