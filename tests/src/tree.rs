//! A `tracing` layer that keeps spans as a tree, and the events that are metrics.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::spans::Traced;

/// Fields as text.
pub type Fields = BTreeMap<String, String>;

/// A span.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The name that `OpenTelemetry` exports.
    pub name: String,
    /// The names of its ancestors, nearest first.
    pub parents: Vec<String>,
    /// All fields, including those that were recorded later.
    pub fields: Fields,
    /// The number of times it was entered.
    pub entered: usize,
    /// Whether it was closed: all its handles were dropped.
    pub closed: bool,
    id: u64,
}

/// An event.
#[derive(Debug, Clone)]
pub struct Logged {
    /// Its target.
    pub target: String,
    /// All fields, the message included.
    pub fields: Fields,
    /// The names of its span and of that span's ancestors.
    pub spans: Vec<String>,
}

#[derive(Default)]
struct Inner {
    spans: Vec<Seen>,
    events: Vec<Logged>,
}

/// Spans and events, as they happened.
#[derive(Clone, Default)]
pub struct Tree(Arc<Mutex<Inner>>);

impl Tree {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A subscriber that writes here.
    #[must_use]
    pub fn dispatch(&self) -> Dispatch {
        // `Traced::subscriber` explains why a second subscriber has to exist.
        drop(Traced::default().subscriber());
        Dispatch::new(Registry::default().with(self.clone()))
    }

    /// Makes a subscriber that writes here the one of this thread, until the guard is dropped.
    #[must_use]
    pub fn listen(&self) -> tracing::subscriber::DefaultGuard {
        tracing::dispatcher::set_default(&self.dispatch())
    }

    /// The spans with this operation, in the order in which they began.
    #[must_use]
    pub fn spans(&self, operation: &str) -> Vec<Seen> {
        let is = |seen: &&Seen| seen.fields.get("gen_ai.operation.name").is_some_and(|name| name == operation);
        self.inner().spans.iter().filter(is).cloned().collect()
    }

    /// The events that have this field, in order.
    #[must_use]
    pub fn events(&self, field: &str) -> Vec<Logged> {
        self.inner().events.iter().filter(|event| event.fields.contains_key(field)).cloned().collect()
    }

    /// Everything, as text.
    #[must_use]
    pub fn text(&self) -> String {
        let inner = self.inner();
        format!("{:#?}\n{:#?}", inner.spans, inner.events)
    }
}

struct Writer<'a>(&'a mut Fields);

impl Visit for Writer<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Tree {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut seen = Seen { id: id.into_u64(), ..Seen::default() };
        attributes.record(&mut Writer(&mut seen.fields));
        seen.name = seen.fields.get("otel.name").cloned().unwrap_or_else(|| attributes.metadata().name().to_owned());
        let scope =
            context.span(id).map(|span| span.scope().skip(1).map(|one| one.id().into_u64()).collect::<Vec<_>>());
        let mut inner = self.inner();
        let name = |id: u64| inner.spans.iter().rev().find(|one| one.id == id).map(|one| one.name.clone());
        seen.parents = scope.into_iter().flatten().filter_map(name).collect();
        inner.spans.push(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        if let Some(seen) = self.inner().spans.iter_mut().rev().find(|one| one.id == id.into_u64()) {
            values.record(&mut Writer(&mut seen.fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::new();
        event.record(&mut Writer(&mut fields));
        let mut inner = self.inner();
        let name = |id: u64| inner.spans.iter().rev().find(|one| one.id == id).map(|one| one.name.clone());
        let scope = context.event_scope(event).into_iter().flatten();
        let spans = scope.filter_map(|span| name(span.id().into_u64())).collect();
        inner.events.push(Logged { target: event.metadata().target().to_owned(), fields, spans });
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        if let Some(seen) = self.inner().spans.iter_mut().rev().find(|one| one.id == id.into_u64()) {
            seen.entered += 1;
        }
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        if let Some(seen) = self.inner().spans.iter_mut().rev().find(|one| one.id == id.into_u64()) {
            seen.closed = true;
        }
    }
}
