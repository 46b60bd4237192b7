//! The events of a model's turn, and the `done` event that ends a request.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::Span;

use crate::agent::telemetry::Invocation;
use crate::agent::{ModelClient, Step, StopReason, TurnOutcome, shown};
use crate::call::{CallId, Event, shown as shown_name};
use crate::runner::Run;
use crate::wire::{Decoded, DecodedCall, DisplayEvent};

/// Forwards a model's stream to the run's event sinks.
pub(in crate::agent) struct Display {
    run: Run,
    /// The call ids of earlier turns, which must not occur again: some providers count from the beginning in every
    /// response.
    earlier: Arc<HashSet<CallId>>,
    ids: HashSet<CallId>,
    /// The calls that were announced, by the provider's id.
    announced: HashMap<CallId, Announced>,
    texts: usize,
    thoughts: usize,
    activity: Arc<AtomicUsize>,
    /// The tool whose call is the answer, which is shown as text.
    answer: Option<String>,
}

struct Announced {
    /// The id in this conversation.
    id: CallId,
    name: String,
    /// Whether the argument text may be shown: the tool is known and none of its arguments is sensitive.
    open: bool,
}

impl Display {
    pub(in crate::agent) fn new(run: Run, earlier: Arc<HashSet<CallId>>, answer: Option<String>) -> Self {
        Self {
            run,
            earlier,
            ids: HashSet::new(),
            announced: HashMap::new(),
            texts: 0,
            thoughts: 0,
            activity: Arc::default(),
            answer,
        }
    }

    /// Returns the counter of the model's shown parts.
    pub(in crate::agent) fn activity(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.activity)
    }

    pub(in crate::agent) fn show(&mut self, event: DisplayEvent<'_>) {
        self.activity.fetch_add(1, Ordering::Relaxed);
        match event {
            DisplayEvent::Text(text) => {
                self.texts += 1;
                self.run.emit(Event::TextDelta { text: text.into_owned() });
            }
            DisplayEvent::Reasoning(text) => {
                self.thoughts += 1;
                self.run.emit(Event::ReasoningDelta { text: text.into_owned() });
            }
            DisplayEvent::CallStarted { name, .. } if self.answer.as_deref() == Some(&*name) => {}
            DisplayEvent::CallStarted { id, name } => {
                self.announce(&id, &name);
            }
            DisplayEvent::ArgumentsDelta { id, text } => {
                if let Some(Announced { id, name, open: true }) = self.announced.get(&id) {
                    let (id, name) = (id.clone(), name.clone());
                    self.run.emit(Event::ToolCallDelta { id, name, delta: text.into_owned() });
                }
            }
        }
    }

    fn is_taken(&self, id: &CallId) -> bool {
        self.earlier.contains(id) || self.ids.contains(id)
    }

    /// Announces a call and returns the id that it has in this conversation.
    fn announce(&mut self, provider: &CallId, name: &str) -> CallId {
        let id = if self.is_taken(provider) { CallId::generate() } else { provider.clone() };
        let open = self.run.catalog().may_show_arguments(name);
        let name = shown_name(name);
        self.run.emit(Event::ToolCallDelta { id: id.clone(), name: name.clone(), delta: String::new() });
        self.announced.insert(provider.clone(), Announced { id: id.clone(), name, open });
        id
    }

    /// Replaces the call ids of the decoded turn by the announced ids, and shows every part that was not streamed:
    /// reasoning and text that came in one piece, a refusal, sources and files.
    pub(in crate::agent) fn finish(&mut self, decoded: &mut Decoded) {
        let parts = decoded.parts();
        if self.thoughts == 0 {
            for text in parts.iter().filter_map(shown::reasoning) {
                self.run.emit(Event::ReasoningDelta { text });
            }
        }
        if self.texts == 0 && !decoded.text.is_empty() {
            self.run.emit(Event::TextDelta { text: decoded.text.clone() });
        }
        if let Some(refusal) = decoded.refusal.as_deref().filter(|refusal| !refusal.is_empty()) {
            let separator = if decoded.text.is_empty() { "" } else { "\n\n" };
            self.run.emit(Event::TextDelta { text: format!("{separator}{refusal}") });
        }
        shown::extras(&parts).for_each(|event| self.run.emit(event));
        // An application's `ModelClient` may use one id twice. The answers come last, so that a call keeps its id.
        let (answers, calls): (Vec<_>, Vec<_>) =
            decoded.calls.iter_mut().partition(|decoded| self.answer.as_deref() == Some(&*decoded.call.name));
        for DecodedCall { call, .. } in calls {
            call.id = match self.announced.remove(&call.id) {
                Some(announced) => announced.id,
                None => self.announce(&call.id, &call.name),
            };
            self.ids.insert(call.id.clone());
        }
        for DecodedCall { call, .. } in answers {
            if self.earlier.contains(&call.id) || !self.ids.insert(call.id.clone()) {
                call.id = CallId::generate();
            }
        }
    }
}

/// The silence of a model before the first `status` event, and the longest time between two `status` events.
const SILENCE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));

/// Waits for a model's answer and emits a `status` event while the model is silent.
pub(in crate::agent) async fn with_status<T>(run: &Run, activity: &AtomicUsize, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    let (mut seen, mut since, mut wait) = (activity.load(Ordering::Relaxed), Instant::now(), SILENCE.0);
    loop {
        if let Ok(answer) = timeout(wait, answer.as_mut()).await {
            return answer;
        }
        let now = activity.load(Ordering::Relaxed);
        if now == seen {
            let text = format!("The model has been silent for {} seconds.", since.elapsed().as_secs());
            run.emit(Event::Status { text });
            wait = (wait * 2).min(SILENCE.1);
        } else {
            (seen, since, wait) = (now, Instant::now(), SILENCE.0);
        }
    }
}

/// A guard that emits the one `done` event, releases the sink of the request, and ends its span. It does so even if the
/// future is dropped.
pub(in crate::agent) struct Done {
    run: Run,
    /// `None` if the request continues after this step.
    reason: Option<&'static str>,
    invocation: Invocation,
}

impl Done {
    pub(in crate::agent) fn new(run: &Run, model: &dyn ModelClient) -> Self {
        let mut done = Self::of_step(run, model);
        done.reason = Some(StopReason::Cancelled.code());
        done
    }

    /// Creates the guard for one step. If its future is dropped, there is no `done` event, because another process may
    /// take the step.
    pub(in crate::agent) fn of_step(run: &Run, model: &dyn ModelClient) -> Self {
        Self { run: run.clone(), reason: None, invocation: Invocation::begin(run, model) }
    }

    /// Returns the span of the request.
    pub(in crate::agent) fn span(&self) -> Span {
        self.invocation.span()
    }

    pub(in crate::agent) fn with(mut self, ended: TurnOutcome) -> TurnOutcome {
        self.ends(ended.code(), matches!(ended, TurnOutcome::Stopped { .. }));
        ended
    }

    pub(in crate::agent) fn stepped(mut self, step: Step) -> Step {
        match &step {
            Step::Asked | Step::Ran => self.invocation.ended(None),
            Step::Waits(_) => self.ends(step.code(), false),
            Step::Ended(ended) => self.ends(step.code(), matches!(ended, TurnOutcome::Stopped { .. })),
        }
        step
    }

    pub(in crate::agent) fn refused(mut self, code: &'static str) {
        self.ends(code, true);
    }

    fn ends(&mut self, code: &'static str, failed: bool) {
        self.reason = Some(code);
        self.invocation.ended(failed.then_some(code));
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(reason) = self.reason {
            self.run.emit(Event::Done { reason: reason.to_owned() });
            self.run.listen(None);
        }
    }
}
