//! [`LoopGuard`]: stops a model that repeats one call over and over.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::tool::{Digested, Hash};

/// The numbers of identical calls in a row at which the guard warns and refuses. Written as `[loop_guard]`; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "LoopGuardTable")]
pub(crate) struct LoopThresholds {
    /// The number of identical calls from which the model is warned.
    pub warn_at: u32,
    /// The number of identical calls from which the call is refused.
    pub stop_at: u32,
}

impl LoopThresholds {
    /// No warnings and no refusals.
    pub(crate) const NEVER: Self = Self { warn_at: 0, stop_at: 0 };
}

impl Default for LoopThresholds {
    fn default() -> Self {
        Self { warn_at: 2, stop_at: 3 }
    }
}

/// The guard's verdict on a call. The number includes this call: 2 is the first repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopVerdict {
    /// Run the call.
    Go,
    /// Run the call, and warn the model of the repetition.
    Warn(u32),
    /// Refuse the call.
    Stop(u32),
}

/// Counts calls of the same tool with the same canonical arguments, one after the other, in one run.
#[derive(Debug, Default)]
pub(crate) struct LoopGuard {
    thresholds: LoopThresholds,
    last: Mutex<Option<Last>>,
}

/// The last call of a run, and the number of times that it occurred in a row. A snapshot contains only its hash.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Saved", from = "Saved")]
pub(crate) struct Last {
    call: Call,
    times: u32,
}

#[derive(Clone)]
enum Call {
    Seen(Arc<dyn Digested>),
    Restored { tool: Box<str>, digest: Hash },
}

impl Call {
    /// Compares tools, original texts and fingerprints first. Canonical texts, which cost more, are compared only if
    /// the fingerprints are equal.
    fn is(&self, call: &dyn Digested) -> bool {
        match self {
            Self::Seen(seen) => {
                seen.tool() == call.tool()
                    && (seen.read() == call.read()
                        || seen.fingerprint() == call.fingerprint() && seen.effective() == call.effective())
            }
            // A snapshot contains only the digest.
            Self::Restored { tool, digest } => **tool == *call.tool() && *digest == call.effective_digest(),
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    tool: Box<str>,
    digest: Hash,
    times: u32,
}

impl From<Last> for Saved {
    fn from(Last { call, times }: Last) -> Self {
        let (tool, digest) = match call {
            Call::Seen(seen) => (seen.tool().into(), seen.effective_digest()),
            Call::Restored { tool, digest } => (tool, digest),
        };
        Self { tool, digest, times }
    }
}

impl From<Saved> for Last {
    fn from(Saved { tool, digest, times }: Saved) -> Self {
        Self { call: Call::Restored { tool, digest }, times }
    }
}

impl LoopGuard {
    /// Creates a guard for one run.
    #[must_use]
    pub(crate) const fn new(thresholds: LoopThresholds) -> Self {
        Self { thresholds, last: Mutex::new(None) }
    }

    /// Returns the last call, for a run that continues in another process.
    pub(crate) fn last(&self) -> Option<Last> {
        self.lock().clone()
    }

    /// Takes over the state of a guard of the same run from an earlier process.
    pub(crate) fn restore(&self, last: Option<Last>) {
        *self.lock() = last;
    }

    /// Returns the verdict that a call would get if it were counted now.
    pub(crate) fn foresee(&self, call: &dyn Digested) -> LoopVerdict {
        let last = self.lock();
        let before = last.as_ref().filter(|last| last.call.is(call));
        self.verdict(before.map_or(0, |last| last.times).saturating_add(1))
    }

    /// Counts a call and returns the verdict.
    pub(crate) fn observe(&self, call: Arc<dyn Digested>) -> LoopVerdict {
        let mut last = self.lock();
        let times = match &mut *last {
            Some(last) if last.call.is(&*call) => {
                last.times = last.times.saturating_add(1);
                last.times
            }
            last => {
                *last = Some(Last { call: Call::Seen(call), times: 1 });
                1
            }
        };
        drop(last);
        self.verdict(times)
    }

    /// Withdraws the call that was counted last, because it did not run.
    pub(crate) fn withdraw(&self, call: &dyn Digested) {
        let mut last = self.lock();
        if let Some(counted) = last.as_mut().filter(|last| last.call.is(call)) {
            counted.times = counted.times.saturating_sub(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn verdict(&self, times: u32) -> LoopVerdict {
        const fn reached(threshold: u32, times: u32) -> bool {
            threshold != 0 && times >= threshold
        }
        if reached(self.thresholds.stop_at, times) {
            LoopVerdict::Stop(times)
        } else if reached(self.thresholds.warn_at, times) {
            LoopVerdict::Warn(times)
        } else {
            LoopVerdict::Go
        }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LoopGuardTable {
    warn_at: u32,
    stop_at: u32,
}

impl Default for LoopGuardTable {
    fn default() -> Self {
        let LoopThresholds { warn_at, stop_at } = LoopThresholds::default();
        Self { warn_at, stop_at }
    }
}

impl TryFrom<LoopGuardTable> for LoopThresholds {
    type Error = &'static str;

    fn try_from(LoopGuardTable { warn_at, stop_at }: LoopGuardTable) -> Result<Self, Self::Error> {
        if warn_at == 1 || stop_at == 1 {
            return Err("1 would apply to every call; write 2 or more, or 0 for never");
        }
        if stop_at != 0 && warn_at > stop_at {
            return Err("`warn_at` comes after `stop_at`; write a smaller number, or 0 for never");
        }
        Ok(Self { warn_at, stop_at })
    }
}

#[cfg(test)]
mod tests {
    use super::LoopVerdict::{Go, Stop, Warn};
    use super::*;

    #[track_caller]
    fn check(thresholds: &str, calls: &[(&'static str, u8, LoopVerdict)]) {
        let guard = LoopGuard::new(toml::from_str(thresholds).unwrap());
        // Each call also goes through a new guard, restored from the state of the previous one, as across processes.
        let mut saved = serde_json::to_string(&guard.last()).unwrap();
        for (at, (tool, number, verdict)) in calls.iter().enumerate() {
            let call = || Arc::new((*tool, number.to_string()));
            assert_eq!(guard.foresee(&*call()), *verdict, "call {at}");
            assert_eq!(guard.observe(call()), *verdict, "call {at}");
            let restored = LoopGuard::new(toml::from_str(thresholds).unwrap());
            restored.restore(serde_json::from_str(&saved).unwrap());
            assert_eq!(restored.observe(call()), *verdict, "call {at} of a restored run");
            saved = serde_json::to_string(&restored.last()).unwrap();
        }
    }

    #[test]
    fn repetitions_are_counted_in_a_row() {
        check("", &[("a", 1, Go), ("a", 1, Warn(2)), ("a", 1, Stop(3)), ("a", 1, Stop(4)), ("a", 2, Go), ("a", 1, Go)]);
        check("", &[("a", 1, Go), ("b", 1, Go), ("a", 1, Go), ("a", 1, Warn(2)), ("b", 1, Go)]);
        check("warn_at = 0\nstop_at = 2", &[("a", 1, Go), ("a", 1, Stop(2))]);
        check("warn_at = 2\nstop_at = 0", &[("a", 1, Go), ("a", 1, Warn(2)), ("a", 1, Warn(3)), ("a", 1, Warn(4))]);
    }

    #[test]
    fn thresholds_make_sense() {
        for (text, says) in
            [("stop_at = 1", "every call"), ("warn_at = 4", "comes after"), ("warn = 2", "unknown field `warn`")]
        {
            let error = toml::from_str::<LoopThresholds>(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
