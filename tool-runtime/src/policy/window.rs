//! [`Window`]: the period after which the used amounts of a shared budget start again at zero.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The period after which the account of a principal or a tenant starts again at zero, in whole seconds, written as
/// `"90s"`, `"15m"`, `"1h"` or `"30d"`.
///
/// Windows follow each other without a gap from the beginning of 1970 in UTC, so all processes agree on them. An
/// account, the used amounts of a budget, is one small document, regardless of its number of calls. Calls around the
/// end of a window can use the budgets of both windows within a time that is shorter than one window. The times of the
/// table `[mcp]` are written in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Window(NonZeroU64);

const DAY: u64 = 24 * 60 * 60;
const LONGEST: u64 = 366 * DAY;
const UNITS: [(char, u64); 4] = [('d', DAY), ('h', 60 * 60), ('m', 60), ('s', 1)];

impl Window {
    /// The longest window.
    pub(crate) const LONGEST: Self = Self(match NonZeroU64::new(LONGEST) {
        Some(seconds) => seconds,
        None => NonZeroU64::MIN,
    });

    fn parse(text: &str) -> Option<Self> {
        let unit = text.chars().next_back()?;
        let (_, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        let digits = text.strip_suffix(unit)?;
        let number: u64 =
            Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
        let seconds = number.checked_mul(seconds).filter(|seconds| *seconds <= LONGEST)?;
        NonZeroU64::new(seconds).map(Self)
    }

    /// Returns its length in seconds.
    pub(crate) const fn seconds(self) -> u64 {
        self.0.get()
    }

    /// Returns its length.
    pub(crate) const fn length(self) -> Duration {
        Duration::from_secs(self.0.get())
    }

    /// Returns the start of the window that contains `now`.
    pub(crate) fn start(self, now: Timestamp) -> Timestamp {
        let length = i64::try_from(self.seconds()).unwrap_or(i64::MAX);
        let start = now.as_second().div_euclid(length).saturating_mul(length);
        Timestamp::from_second(start).unwrap_or(Timestamp::MIN)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds();
        let (unit, length) = UNITS.into_iter().find(|(_, length)| seconds.is_multiple_of(*length)).unwrap_or(('s', 1));
        write!(f, "{}{unit}", seconds / length)
    }
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The visitor checks the text, so that the error points at the value.
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Window;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"1h\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Window, E> {
                Window::parse(text).ok_or_else(|| {
                    E::custom("write a whole number of `s`, `m`, `h` or `d`, up to 366 days, for example \"1h\"")
                })
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_number_and_a_unit() {
        for (text, seconds) in [("1s", 1), ("90s", 90), ("15m", 900), ("1h", 3600), ("366d", LONGEST), ("007m", 420)] {
            let window = Window::parse(text).unwrap();
            assert_eq!(window.seconds(), seconds, "{text}");
            assert_eq!(Window::parse(&window.to_string()), Some(window), "{text}");
        }
        assert_eq!(Window::parse("24h").unwrap().to_string(), "1d");
        for text in ["", "h", "1", "0s", "-1h", "+1h", "1.5h", "1 h", "1w", "367d", "99999999999999999999d", "1\u{e4}"]
        {
            assert_eq!(Window::parse(text), None, "{text}");
        }
    }

    #[test]
    fn windows_follow_each_other_from_the_epoch() {
        let window = Window::parse("1h").unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        for (now, start) in [(0, 0), (3599, 0), (3600, 3600), (7201, 7200), (-1, -3600), (-3600, -3600)] {
            assert_eq!(window.start(at(now)), at(start), "{now}");
        }
        for end in [Timestamp::MIN, Timestamp::MAX] {
            assert!(Window::LONGEST.start(end) <= end);
        }
    }
}
