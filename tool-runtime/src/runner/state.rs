//! What one run remembers between its calls: ids seen, failures in a row, evidence, the summary.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{CallId, Outcome, RunSummary};

/// More distinct call ids than any run has; past it a run takes no further calls.
const MAX_CALLS: usize = 100_000;

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
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Failures {
    in_a_row: u32,
    turn: u64,
}

impl RunState {
    pub(super) fn with_labels(labels: &[Arc<str>]) -> Self {
        Self { labels: labels.into(), ..Self::default() }
    }

    /// Takes over what the run remembered in an earlier process; labels of this one stay.
    pub(super) fn restore(&mut self, earlier: Self) {
        let labels = std::mem::replace(self, earlier).labels;
        labels.iter().for_each(|label| self.label(label));
    }

    /// The labels so far.
    pub(super) fn labels(&self) -> Arc<[Arc<str>]> {
        Arc::clone(&self.labels)
    }

    /// Puts a label on the run, for good.
    pub(super) fn label(&mut self, label: &str) {
        if self.labels.iter().all(|known| **known != *label) {
            self.labels = self.labels.iter().cloned().chain([label.into()]).collect();
        }
    }

    /// Takes a call id into use. `false` when it was used before, or when there are too many.
    pub(super) fn take_id(&mut self, id: &CallId) -> bool {
        self.seen.len() < MAX_CALLS && self.seen.insert(id.clone())
    }

    /// A new answer of the model begins.
    pub(super) fn begin_turn(&mut self) {
        self.turn += 1;
        self.end_turn = false;
    }

    /// Counts a validation failure of a tool: the number of failed turns running, this one included.
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

    /// Accounts an ended call.
    pub(super) fn account(&mut self, outcome: Outcome, latency_ms: u64, result_bytes: usize) {
        *self.summary.calls.entry(outcome).or_default() += 1;
        self.summary.latency_ms += latency_ms;
        self.summary.result_bytes += result_bytes as u64;
    }
}
