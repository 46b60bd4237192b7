//! [`LoopGuard`]: stops a model that repeats one call over and over.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::tool::{Digested, Hash};

/// When repeated calls are warned about and stopped. Written as `[loop_guard]`; 0 means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub(crate) struct LoopThresholds {
    /// The repetition from which the model is warned.
    pub warn_at: u32,
    /// The repetition from which the call is refused.
    pub stop_at: u32,
}

impl Default for LoopThresholds {
    fn default() -> Self {
        Self { warn_at: 2, stop_at: 3 }
    }
}

/// The guard's verdict on a call. The number includes this call: 2 is the first repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopVerdict {
    /// Not a repetition, or not yet too many.
    Go,
    /// Run it, and tell the model that it repeats itself.
    Warn(u32),
    /// Refuse it.
    Stop(u32),
}

/// Counts calls of the same tool with the same canonical arguments, one after the other, in one run.
#[derive(Debug, Default)]
pub(crate) struct LoopGuard {
    thresholds: LoopThresholds,
    last: Mutex<Option<Last>>,
}

/// The last call that a guard saw, and how often in a row.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Last {
    tool: Box<str>,
    digest: Arguments,
    times: u32,
}

/// The arguments of the last call. Only their hash leaves the process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Hash", from = "Hash")]
enum Arguments {
    Seen(Digested),
    Restored(Hash),
}

impl Arguments {
    /// Texts are compared where both are known: that costs less than a hash.
    fn are(&self, arguments: &Digested) -> bool {
        match self {
            Self::Seen(seen) => seen.text() == arguments.text(),
            Self::Restored(hash) => *hash == arguments.hash(),
        }
    }
}

impl From<Arguments> for Hash {
    fn from(arguments: Arguments) -> Self {
        match arguments {
            Arguments::Seen(seen) => seen.hash(),
            Arguments::Restored(hash) => hash,
        }
    }
}

impl From<Hash> for Arguments {
    fn from(hash: Hash) -> Self {
        Self::Restored(hash)
    }
}

impl LoopGuard {
    /// A guard for one run.
    #[must_use]
    pub(crate) const fn new(thresholds: LoopThresholds) -> Self {
        Self { thresholds, last: Mutex::new(None) }
    }

    /// The last call, for a run that continues in another process.
    pub(crate) fn last(&self) -> Option<Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over what a guard of the same run saw in an earlier process.
    pub(crate) fn restore(&self, last: Option<Last>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    /// The verdict on a call with these effective arguments if it were counted now.
    pub(crate) fn foresee(&self, tool: &str, arguments: &Digested) -> LoopVerdict {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.as_ref().filter(|last| *last.tool == *tool && last.digest.are(arguments));
        self.verdict(before.map_or(0, |last| last.times).saturating_add(1))
    }

    /// Counts a call with its effective arguments.
    pub(crate) fn observe(&self, tool: &str, arguments: &Digested) -> LoopVerdict {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let times = match &mut *last {
            Some(last) if *last.tool == *tool && last.digest.are(arguments) => {
                last.times = last.times.saturating_add(1);
                last.times
            }
            Some(last) => {
                if *last.tool != *tool {
                    last.tool = tool.into();
                }
                (last.digest, last.times) = (Arguments::Seen(arguments.clone()), 1);
                1
            }
            None => {
                let digest = Arguments::Seen(arguments.clone());
                *last = Some(Last { tool: tool.into(), digest, times: 1 });
                1
            }
        };
        drop(last);
        self.verdict(times)
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
struct Written {
    warn_at: u32,
    stop_at: u32,
}

impl Default for Written {
    fn default() -> Self {
        let LoopThresholds { warn_at, stop_at } = LoopThresholds::default();
        Self { warn_at, stop_at }
    }
}

impl TryFrom<Written> for LoopThresholds {
    type Error = &'static str;

    fn try_from(Written { warn_at, stop_at }: Written) -> Result<Self, Self::Error> {
        if warn_at == 1 || stop_at == 1 {
            return Err("1 would meet every call; write 2 or more, or 0 for never");
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
    fn check(thresholds: &str, calls: &[(&str, u8, LoopVerdict)]) {
        let guard = LoopGuard::new(toml::from_str(thresholds).unwrap());
        // The same calls across processes: each guard continues where the one before ended.
        let mut saved = serde_json::to_string(&guard.last()).unwrap();
        for (at, (tool, number, verdict)) in calls.iter().enumerate() {
            let arguments = Digested::of(number.to_string());
            assert_eq!(guard.observe(tool, &arguments), *verdict, "call {at}");
            let restored = LoopGuard::new(toml::from_str(thresholds).unwrap());
            restored.restore(serde_json::from_str(&saved).unwrap());
            assert_eq!(restored.observe(tool, &arguments), *verdict, "call {at} of a restored run");
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
