//! A `tracing` subscriber that keeps everything as text.

use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// The text of all spans and events at every level, with their fields.
#[derive(Debug, Clone, Default)]
pub struct Traced(Arc<Mutex<String>>);

impl Traced {
    /// The text so far.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns a subscriber that writes to this text.
    ///
    /// `tracing` caches for each callsite whether a subscriber is interested. While only one subscriber exists, it asks
    /// the current thread's only, so a test on a thread without a subscriber could disable a callsite for all threads.
    /// A second subscriber, which is never dropped, prevents that.
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
