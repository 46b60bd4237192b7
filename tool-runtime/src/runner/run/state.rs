//! The state of one run between its calls: call ids, labels, the model's mistakes, begun effects, the summary.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use crate::call::usage::Usage;
use crate::call::{CallId, Outcome, RunSummary};
use crate::policy::Spend;
use crate::runner::run::call_ids::CallIds;
use crate::runner::run::mistakes::{LAST, Mistakes};
use crate::runner::run::offer::Offered;

/// The state of a run behind one mutex that is never held across an await. Most runs have no labels, no failed tools
/// and no picked tools. Flags state this without the lock, so that a call takes the lock twice instead of seven times.
pub(in crate::runner) struct Remembered {
    state: Mutex<RunState>,
    flags: AtomicU8,
    has_earlier: OnceLock<bool>,
}

/// The run has labels. A flag is never cleared.
const LABELLED: u8 = 1;
/// A call had invalid arguments.
const FAILED: u8 = 2;
/// The model was offered a subset of its tools.
const OFFERED: u8 = 4;

impl Remembered {
    pub(in crate::runner) fn new(state: RunState) -> Self {
        let flags = AtomicU8::new(state.flags());
        Self { state: Mutex::new(state), flags, has_earlier: OnceLock::new() }
    }

    /// Locks the state. Change labels, failures and offered tools only through the methods below, which set the flags.
    pub(in crate::runner) fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an earlier process had calls of the run. `None` until it is known.
    pub(in crate::runner) fn has_earlier(&self) -> Option<bool> {
        self.has_earlier.get().copied()
    }

    /// Sets whether an earlier process had calls of the run, unless it is set.
    pub(in crate::runner) fn set_earlier(&self, has_earlier: bool) {
        self.has_earlier.get_or_init(|| has_earlier);
    }

    /// Returns the locked state; `None` if the flag is not set, because there is nothing to read.
    fn lock_if(&self, flag: u8) -> Option<MutexGuard<'_, RunState>> {
        (self.flags.load(Ordering::Acquire) & flag != 0).then(|| self.lock())
    }

    /// Changes the state and sets its flags.
    fn change<T>(&self, change: impl FnOnce(&mut RunState) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state);
        self.flags.fetch_or(state.flags(), Ordering::Release);
        changed
    }

    /// Replaces the state with the state of an earlier process, and keeps the labels of both.
    pub(in crate::runner) fn restore(&self, earlier: RunState) {
        self.change(|state| state.restore(earlier));
    }

    /// Returns the current labels; `None` if there are none.
    #[inline]
    pub(in crate::runner) fn labels(&self) -> Option<Arc<[Arc<str>]>> {
        self.lock_if(LABELLED).map(|state| Arc::clone(&state.labels))
    }

    /// Puts labels on the run. They are never removed.
    pub(in crate::runner) fn label<L: AsRef<str>>(&self, labels: impl IntoIterator<Item = L>) {
        let mut labels = labels.into_iter().peekable();
        if labels.peek().is_some() {
            self.change(|state| labels.for_each(|label| state.label(label.as_ref())));
        }
    }

    /// Returns the labels of the run, if the stored documents of its waiting calls might lack one of them.
    pub(in crate::runner) fn unshared(&self) -> Option<Arc<[Arc<str>]>> {
        let state = self.lock_if(LABELLED)?;
        (state.labels.len() > state.shared).then(|| Arc::clone(&state.labels))
    }

    /// Notes that the stored documents of the waiting calls have the first `labels` labels of the run.
    pub(in crate::runner) fn shared(&self, labels: usize) {
        let mut state = self.lock();
        state.shared = state.shared.max(labels);
    }

    /// Counts the mistakes in the arguments of a tool, and returns the highest number of consecutive failed turns with
    /// one of them. If it is [`LAST`] or more, keeps the text of `ask` as the question for the user.
    pub(in crate::runner) fn failed(
        &self,
        tool: &str,
        mistakes: impl Iterator<Item = u32>,
        ask: impl FnOnce() -> String,
    ) -> u32 {
        self.change(|state| {
            let times = state.failures.entry(tool.to_owned()).or_default().count(state.turn, mistakes);
            if times >= LAST {
                state.clarification.get_or_insert_with(ask);
            }
            times
        })
    }

    /// Notes that a call of the tool passed validation.
    #[inline]
    pub(in crate::runner) fn passed(&self, tool: &str) {
        if let Some(mut state) = self.lock_if(FAILED) {
            state.failures.remove(tool);
        }
    }

    /// Changes the set of tools that the model was offered.
    pub(in crate::runner) fn offer<T>(&self, offer: impl FnOnce(&mut Option<Offered>) -> T) -> T {
        self.change(|state| offer(&mut state.offered))
    }

    /// Whether the latest request offered the tool, or all tools.
    #[inline]
    pub(in crate::runner) fn is_offered(&self, name: &str) -> bool {
        let is_shown = |offered: &Offered| offered.is_shown(name);
        self.lock_if(OFFERED).is_none_or(|state| state.offered.as_ref().is_none_or(is_shown))
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::runner) struct RunState {
    #[serde(rename = "seen")]
    pub(in crate::runner) call_ids: CallIds,
    /// New labels are appended.
    labels: Arc<[Arc<str>]>,
    /// How many of the first labels the stored documents of the waiting calls have.
    #[serde(skip)]
    shared: usize,
    failures: HashMap<String, Mistakes>,
    turn: u64,
    /// The question for the user, once a model has repeated a mistake too often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::runner) clarification: Option<String>,
    pub(in crate::runner) summary: RunSummary,
    /// Calls of tools with effects that began to run and whose result was not returned.
    begun: HashSet<CallId>,
    /// The tools that the model was offered; `None` if it is offered all visible ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offered: Option<Offered>,
    /// Calls that ended in a run without budgets, and the bytes of their results.
    #[serde(skip)]
    counted: Spend,
    /// Whether an earlier process might have begun calls that are new to this one.
    #[serde(skip)]
    continued: bool,
}

impl RunState {
    pub(in crate::runner) fn new(labels: &[Arc<str>], continued: bool) -> Self {
        // Most runs have no labels, and `into` would allocate for an empty slice too.
        let labels: Arc<[_]> = if labels.is_empty() { Arc::default() } else { labels.into() };
        // A waiting call of an earlier process might lack these labels, so none of them is known to be shared.
        let shared = if continued { 0 } else { labels.len() };
        Self { labels, shared, continued, ..Self::default() }
    }

    fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(!self.labels.is_empty(), LABELLED)
            | flag(!self.failures.is_empty(), FAILED)
            | flag(self.offered.is_some(), OFFERED)
    }

    fn restore(&mut self, earlier: Self) {
        let labels = std::mem::replace(self, earlier).labels;
        labels.iter().for_each(|label| self.label(label));
        self.continued = true;
    }

    /// Whether a call that is new to this process might have begun in an earlier one.
    pub(in crate::runner) const fn is_continued(&self) -> bool {
        self.continued
    }

    /// Returns the tools that the model was offered; `None` if it is offered all visible ones.
    pub(in crate::runner) const fn offered(&self) -> Option<&Offered> {
        self.offered.as_ref()
    }

    fn label(&mut self, label: &str) {
        if self.labels.iter().all(|known| **known != *label) {
            self.labels = self.labels.iter().cloned().chain([label.into()]).collect();
        }
    }

    /// Notes that a tool with effects begins to run.
    pub(in crate::runner) fn begin(&mut self, id: &CallId) {
        self.begun.insert(id.clone());
    }

    /// Notes that the result of a call is returned.
    pub(in crate::runner) fn hand_out(&mut self, id: &CallId) {
        self.begun.remove(id);
    }

    /// Whether a tool with effects began under this id and its result was not returned.
    pub(in crate::runner) fn began(&self, id: &CallId) -> bool {
        self.begun.contains(id)
    }

    /// Begins a new turn of the model. If the mistakes led to a question for the user, all counts of mistakes start
    /// again.
    pub(in crate::runner) fn begin_turn(&mut self) {
        self.turn += 1;
        if self.clarification.take().is_some() {
            self.failures.clear();
        }
    }

    /// Adds a model's usage to the summary.
    pub(in crate::runner) fn charge(&mut self, usage: Usage, cost: f64) {
        let summary = &mut self.summary;
        summary.usage = summary.usage.plus(usage);
        // `max` turns NaN into 0; `min` keeps the sum a number that JSON can write.
        summary.cost = (summary.cost + cost.max(0.0)).min(f64::MAX);
    }

    /// Counts a call that ended without a reservation, and the bytes of its result. `None` if it does not count.
    pub(in crate::runner) fn count(&mut self, used: Option<u64>) {
        if let Some(bytes) = used {
            self.counted.calls = self.counted.calls.saturating_add(1);
            self.counted.bytes = self.counted.bytes.saturating_add(bytes);
        }
    }

    /// Returns the amount used by calls without a reservation.
    pub(in crate::runner) const fn counted(&self) -> Spend {
        self.counted
    }

    /// Adds an ended call to the summary.
    pub(in crate::runner) fn account(&mut self, outcome: Outcome, latency_ms: u64, result_bytes: usize) {
        *self.summary.calls.entry(outcome).or_default() += 1;
        self.summary.latency_ms = self.summary.latency_ms.saturating_add(latency_ms);
        self.summary.result_bytes += result_bytes as u64;
    }
}
