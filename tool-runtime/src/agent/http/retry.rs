//! The rules for retries, and the wait before each.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Whether a request is worth another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    /// After a wait that this client chooses.
    Later,
    /// After the wait that the endpoint asks for.
    After(Duration),
}

/// Bounded retries with growing waits.
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
    /// Returns the wait before retry `at` (from 0). `None` if the retries are used up, or if the endpoint asks for a
    /// longer wait than allowed.
    pub(super) fn wait(&self, at: u32, again: Again) -> Option<Duration> {
        if at >= self.times {
            return None;
        }
        match again {
            Again::Never => None,
            Again::After(wait) => (wait <= self.longest).then_some(wait),
            Again::Later => Some(spread(self.first.saturating_mul(1 << at.min(16)).min(self.longest))),
        }
    }
}

/// Returns a random wait between half of `full` and `full`, so that requests that failed together are not repeated
/// together.
pub(super) fn spread(full: Duration) -> Duration {
    let random = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
    full.mul_f64(0.5 + random / 2.0)
}

/// Returns whether a request that got this answer is worth another attempt, and the wait that the endpoint asks for.
///
/// The `x-should-retry` header, which OpenAI and Anthropic send, takes precedence over the status (RFC 9110, 15.5 and
/// 15.6).
pub(super) fn asked(status: u16, headers: &HeaderMap, now: Timestamp) -> Again {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let again = match text("x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(status, 408 | 409 | 429 | 500..=599),
    };
    // The header in milliseconds takes precedence, because it is more precise.
    let millis = text("retry-after-ms").and_then(seconds).map(|wait| wait / 1000);
    let wait = || millis.or_else(|| text(RETRY_AFTER.as_str()).and_then(|value| after(value, now)));
    if again { wait().map_or(Again::Later, Again::After) } else { Again::Never }
}

/// Reads a `retry-after` header: seconds, which some endpoints write with a fraction, or a date (RFC 9110, 10.2.3).
fn after(value: &str, now: Timestamp) -> Option<Duration> {
    seconds(value).or_else(|| {
        let at = DateTimeParser::new().parse_timestamp(value).ok()?;
        Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
    })
}

fn seconds(value: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(value.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_bounded() {
        let retries = Retries { times: 8, ..Retries::default() };
        for at in 0..8 {
            let full = Duration::from_millis(500 * (1 << at)).min(retries.longest);
            let wait = retries.wait(at, Again::Later).unwrap();
            assert!(wait >= full / 2 && wait <= full, "{at}: {wait:?}");
        }
        assert_eq!(retries.wait(8, Again::Later), None);
    }

    #[test]
    fn the_endpoint_says_when_to_come_back() {
        type Headers = &'static [(&'static str, &'static str)];
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let ms = Duration::from_millis;
        let cases: [(u16, Headers, Again); 18] = [
            (429, &[("retry-after", "3")], Again::After(ms(3000))),
            (429, &[("retry-after", " 0 ")], Again::After(ms(0))),
            (429, &[("retry-after", "1.5")], Again::After(ms(1500))),
            (503, &[("retry-after", "Thu, 01 Jan 2026 00:00:20 GMT")], Again::After(ms(20_000))),
            (503, &[("retry-after", "Wed, 31 Dec 2025 23:00:00 GMT")], Again::After(ms(0))),
            (429, &[("retry-after", "soon")], Again::Later),
            (429, &[("retry-after", "-1")], Again::Later),
            (429, &[("retry-after", "NaN")], Again::Later),
            (429, &[("retry-after", "1e300")], Again::Later),
            (429, &[("retry-after-ms", "250"), ("retry-after", "9")], Again::After(ms(250))),
            (429, &[("retry-after-ms", "?"), ("retry-after", "9")], Again::After(ms(9000))),
            (408, &[], Again::Later),
            (409, &[], Again::Later),
            (500, &[], Again::Later),
            (400, &[], Again::Never),
            (404, &[("retry-after", "1")], Again::Never),
            (400, &[("x-should-retry", "true")], Again::Later),
            (503, &[("x-should-retry", "false"), ("retry-after", "1")], Again::Never),
        ];
        for (status, pairs, expected) in cases {
            let headers = pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            assert_eq!(asked(status, &headers.collect(), now), expected, "{status} {pairs:?}");
        }
        let retries = Retries::default();
        assert_eq!(retries.wait(0, Again::After(ms(3000))), Some(ms(3000)));
        assert_eq!(retries.wait(0, Again::After(ms(3_600_000))), None, "an hour is longer than allowed");
    }
}
