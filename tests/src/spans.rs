//! A `tracing` subscriber that keeps everything as text.

use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Everything that was traced, fields included, at every level.
#[derive(Debug, Clone, Default)]
pub struct Traced(Arc<Mutex<String>>);

impl Traced {
    /// What was traced up to now.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A subscriber that writes here.
    ///
    /// `tracing` remembers for each place in the code whether anyone listens. While one subscriber exists it asks the
    /// current thread only, so that a test on a thread without one could switch a place off for all: hence the second.
    #[must_use]
    pub fn subscriber(&self) -> impl Subscriber + use<> {
        static SECOND: LazyLock<Dispatch> = LazyLock::new(|| {
            let traced = Traced::default();
            Dispatch::new(Listener { traced, spans: AtomicU64::new(0) })
        });
        LazyLock::force(&SECOND);
        Listener { traced: self.clone(), spans: AtomicU64::new(0) }
    }

    fn line(&self, kind: &str, name: &str, fields: impl FnOnce(&mut Fields)) {
        let mut visited = Fields(String::new());
        fields(&mut visited);
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(text, "{kind} {name}{}", visited.0);
    }
}

struct Listener {
    traced: Traced,
    spans: AtomicU64,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.traced.line("span", span.metadata().name(), |fields| span.record(fields));
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.traced.line("record", "", |fields| values.record(fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.traced.line("event", event.metadata().name(), |fields| event.record(fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
