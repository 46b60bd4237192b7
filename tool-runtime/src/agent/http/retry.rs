//! When a request is repeated, and how long to wait before it is.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Bounded repetitions with growing waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retries {
    pub(super) times: u32,
    pub(super) first: Duration,
    pub(super) longest: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { times: 2, first: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }
}

impl Retries {
    /// The wait before repetition `at` (from 0), or nothing when there is none: all are used up, or the endpoint
    /// asks for more patience than there is.
    pub(super) fn wait(&self, at: u32, asked: Option<Duration>) -> Option<Duration> {
        if at >= self.times {
            return None;
        }
        match asked {
            Some(asked) => (asked <= self.longest).then_some(asked),
            None => {
                let full = self.first.saturating_mul(1 << at.min(16)).min(self.longest);
                // Between half and all of it, so that clients which failed together do not come back together.
                Some(full.mul_f64(0.5 + jitter() / 2.0))
            }
        }
    }
}

/// A number from 0 to 1.
fn jitter() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

/// The answers that another attempt may change (RFC 9110, 15.5 and 15.6).
pub(super) const fn is_worth_it(status: u16) -> bool {
    matches!(status, 429 | 500..=599)
}

/// The value of a `retry-after` header: seconds or a date (RFC 9110, 10.2.3).
pub(super) fn after(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = DateTimeParser::new().parse_timestamp(value.trim()).ok()?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_bounded() {
        let retries = Retries { times: 8, ..Retries::default() };
        for at in 0..8 {
            let full = Duration::from_millis(500 * (1 << at)).min(retries.longest);
            let wait = retries.wait(at, None).unwrap();
            assert!(wait >= full / 2 && wait <= full, "{at}: {wait:?}");
        }
        assert_eq!(retries.wait(8, None), None);
    }

    #[test]
    fn the_endpoint_is_asked_how_long() {
        let retries = Retries::default();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let cases = [
            ("3", Some(3)),
            (" 0 ", Some(0)),
            ("Thu, 01 Jan 2026 00:00:20 GMT", Some(20)),
            ("Wed, 31 Dec 2025 23:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(after(text, now), expected.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retries.wait(0, after("3", now)), Some(Duration::from_secs(3)));
        assert_eq!(retries.wait(0, after("3600", now)), None, "an hour is more than there is patience for");
    }
}
