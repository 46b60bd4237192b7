//! What a run's listeners see of a model's turn, and the one event that ends it.

use std::collections::{HashMap, HashSet};

use crate::agent::{Ended, StopReason};
use crate::call::{CallId, Event};
use crate::runner::Run;
use crate::wire::{Decoded, DisplayEvent};

/// What a model writes while it writes, told to whoever listens to the run.
pub(super) struct Display {
    run: Run,
    /// Ids that are taken: some providers count from the beginning in every response.
    ids: HashSet<CallId>,
    renamed: HashMap<CallId, Option<(CallId, String)>>,
    texts: usize,
}

impl Display {
    pub(super) fn new(run: Run, ids: HashSet<CallId>) -> Self {
        Self { run, ids, renamed: HashMap::new(), texts: 0 }
    }

    pub(super) fn show(&mut self, event: DisplayEvent<'_>) {
        match event {
            DisplayEvent::Text(text) => {
                self.texts += 1;
                self.run.emit(Event::TextDelta { text: text.into_owned() });
            }
            DisplayEvent::CallStarted { id, name } => {
                let own = self.own(&id);
                // Argument text of a tool with sensitive arguments, or of none that is known, stays inside.
                let open = self.run.catalog().may_show_arguments(&name);
                self.renamed.insert(id, open.then(|| (own, name.into_owned())));
            }
            DisplayEvent::ArgumentsDelta { id, text } => {
                if let Some(Some((id, name))) = self.renamed.get(&id) {
                    let (id, name) = (id.clone(), name.clone());
                    self.run.emit(Event::ToolCallDelta { id, name, delta: text.into_owned() });
                }
            }
        }
    }

    /// The id that a call has in this conversation.
    fn own(&mut self, id: &CallId) -> CallId {
        if self.ids.contains(id) { CallId::generate() } else { id.clone() }
    }

    /// The decoded turn gets the ids that were shown, and text that nobody showed is shown now.
    pub(super) fn finish(&mut self, decoded: &mut Decoded) {
        if self.texts == 0 && !decoded.text.is_empty() {
            self.run.emit(Event::TextDelta { text: decoded.text.clone() });
        }
        for decoded in &mut decoded.calls {
            decoded.call.id = match self.renamed.remove(&decoded.call.id) {
                Some(Some((own, _))) => own,
                _ => self.own(&decoded.call.id),
            };
            self.ids.insert(decoded.call.id.clone());
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
