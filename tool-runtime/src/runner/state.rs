//! What one run remembers between its calls: ids, labels, consecutive failures, begun effects, the summary.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::usage::Usage;
use crate::call::{CallId, Outcome, RunSummary};
use crate::runner::offer::Offered;

/// The most distinct call ids that a run takes; their set is bounded.
pub(super) const MAX_CALLS: usize = 100_000;

/// Guarded by one mutex that is never held across an await.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunState {
    seen: HashSet<CallId>,
    labels: Arc<[Arc<str>]>,
    failures: HashMap<String, Failures>,
    turn: u64,
    pub(super) end_turn: bool,
    pub(super) summary: RunSummary,
    /// Calls whose tool has effects, began to run, and whose result was not handed out.
    begun: HashSet<CallId>,
    /// What the model was offered; `None` if it is offered all that it may see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) offered: Option<Offered>,
    /// Earlier processes may have had this run, so a call that is new to this one may have begun in them.
    #[serde(skip)]
    continued: bool,
}

/// What became of a call id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    First,
    /// The id was used before; no second call may run under it.
    Again,
    /// The run has as many ids as it may.
    TooMany,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Failures {
    in_a_row: u32,
    turn: u64,
}

impl RunState {
    pub(super) fn new(labels: &[Arc<str>], continued: bool) -> Self {
        Self { labels: labels.into(), continued, ..Self::default() }
    }

    /// Takes over what the run remembered in an earlier process; its labels are added to those of this one.
    pub(super) fn restore(&mut self, earlier: Self) {
        let labels = std::mem::replace(self, earlier).labels;
        labels.iter().for_each(|label| self.label(label));
        self.continued = true;
    }

    /// Whether a call that is new to this process may have begun in an earlier one.
    pub(super) const fn is_continued(&self) -> bool {
        self.continued
    }

    /// The current labels.
    pub(super) fn labels(&self) -> Arc<[Arc<str>]> {
        Arc::clone(&self.labels)
    }

    /// Puts a label on the run. Labels are never removed.
    pub(super) fn label(&mut self, label: &str) {
        if self.labels.iter().all(|known| **known != *label) {
            self.labels = self.labels.iter().cloned().chain([label.into()]).collect();
        }
    }

    /// Takes a call id into use.
    pub(super) fn take_id(&mut self, id: &CallId) -> Taken {
        if self.seen.len() >= MAX_CALLS && !self.seen.contains(id) {
            Taken::TooMany
        } else if self.seen.insert(id.clone()) {
            Taken::First
        } else {
            Taken::Again
        }
    }

    /// A tool with effects begins to run.
    pub(super) fn begin(&mut self, id: &CallId) {
        self.begun.insert(id.clone());
    }

    /// The result of a call is handed out.
    pub(super) fn hand_out(&mut self, id: &CallId) {
        self.begun.remove(id);
    }

    /// Whether a tool with effects began under this id and its result was not handed out.
    pub(super) fn began(&self, id: &CallId) -> bool {
        self.begun.contains(id)
    }

    /// A new turn of the model begins.
    pub(super) fn begin_turn(&mut self) {
        self.turn += 1;
        self.end_turn = false;
    }

    /// Counts a validation failure of a tool and returns its consecutive failed turns, this one included.
    ///
    /// Several failures of one announced turn count once; without announced turns each call is a turn.
    pub(super) fn failed(&mut self, tool: &str) -> u32 {
        let failures = self.failures.entry(tool.to_owned()).or_default();
        if self.turn == 0 || failures.turn != self.turn {
            failures.turn = self.turn;
            failures.in_a_row += 1;
        }
        if failures.in_a_row >= 3 {
            self.end_turn = true;
        }
        failures.in_a_row
    }

    /// A call of the tool passed validation.
    pub(super) fn passed(&mut self, tool: &str) {
        self.failures.remove(tool);
    }

    /// Accounts what a model consumed.
    pub(super) fn charge(&mut self, usage: Usage, cost: f64) {
        let summary = &mut self.summary;
        summary.usage = summary.usage.plus(usage);
        // `max` turns what is not a number into 0; `min` keeps the sum a number that JSON can write.
        summary.cost = (summary.cost + cost.max(0.0)).min(f64::MAX);
    }

    /// Accounts an ended call.
    pub(super) fn account(&mut self, outcome: Outcome, latency_ms: u64, result_bytes: usize) {
        *self.summary.calls.entry(outcome).or_default() += 1;
        self.summary.latency_ms += latency_ms;
        self.summary.result_bytes += result_bytes as u64;
    }
}
