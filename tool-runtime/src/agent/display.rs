//! What a run's listeners see of a model's turn, and the one event that ends it.

use std::collections::{HashMap, HashSet};

use crate::agent::{Ended, StopReason};
use crate::call::{CallId, Event, shown};
use crate::runner::Run;
use crate::wire::{Decoded, DisplayEvent};

/// What a model writes while it writes, told to whoever listens to the run.
pub(super) struct Display {
    run: Run,
    /// Ids that are taken: some providers count from the beginning in every response.
    ids: HashSet<CallId>,
    /// The calls that were announced, by the provider's id.
    announced: HashMap<CallId, Announced>,
    texts: usize,
}

struct Announced {
    /// The id in this conversation.
    id: CallId,
    name: String,
    /// Its argument text may be shown: the tool is known and none of its arguments is sensitive.
    open: bool,
}

impl Display {
    pub(super) fn new(run: Run, ids: HashSet<CallId>) -> Self {
        Self { run, ids, announced: HashMap::new(), texts: 0 }
    }

    pub(super) fn show(&mut self, event: DisplayEvent<'_>) {
        match event {
            DisplayEvent::Text(text) => {
                self.texts += 1;
                self.run.emit(Event::TextDelta { text: text.into_owned() });
            }
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

    /// Tells of a call and gives the id that it has in this conversation.
    fn announce(&mut self, provider: &CallId, name: &str) -> CallId {
        let id = if self.ids.contains(provider) { CallId::generate() } else { provider.clone() };
        let open = self.run.catalog().may_show_arguments(name);
        let name = shown(name);
        self.run.emit(Event::ToolCallDelta { id: id.clone(), name: name.clone(), delta: String::new() });
        self.announced.insert(provider.clone(), Announced { id: id.clone(), name, open });
        id
    }

    /// The decoded turn gets the ids that were shown. What came in one piece was not shown before: it is now.
    pub(super) fn finish(&mut self, decoded: &mut Decoded) {
        if self.texts == 0 && !decoded.text.is_empty() {
            self.run.emit(Event::TextDelta { text: decoded.text.clone() });
        }
        for decoded in &mut decoded.calls {
            let call = &mut decoded.call;
            call.id = match self.announced.remove(&call.id) {
                Some(announced) => announced.id,
                None => self.announce(&call.id, &call.name),
            };
            self.ids.insert(call.id.clone());
        }
    }
}

/// Emits the one `done` event, also when the future is dropped.
pub(super) struct Done {
    run: Run,
    reason: &'static str,
}

impl Done {
    pub(super) fn new(run: &Run) -> Self {
        Self { run: run.clone(), reason: StopReason::Cancelled.code() }
    }

    pub(super) fn with(mut self, ended: Ended) -> Ended {
        self.reason = ended.code();
        ended
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        self.run.emit(Event::Done { reason: self.reason.to_owned() });
    }
}
