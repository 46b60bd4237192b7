//! [`Decimal`]: a decimal number of any size, compared exactly.

use std::cmp::Ordering;

/// A decimal number. Its value is `0.DIGITS` times ten to the power of `exponent`, so that no digit is ever rounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    /// Never `true` for zero.
    negative: bool,
    /// The digits without zeros at either end. Empty for zero.
    digits: String,
    /// `i64::MIN` for zero. An exponent outside `i64` becomes the nearest value; no limit of a policy is that extreme.
    exponent: i64,
}

impl Decimal {
    /// Reads a number such as `19.99`, `-0.5`, `+7`, `007` or `1e400`. `None` for any other text: words such as `NaN`,
    /// spaces, separators between digits, digits of other scripts, and sums such as `1+2`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, power) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, exponent(power)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.len() + fraction.len() == 0 || !(are_digits(whole) && are_digits(fraction)) {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let places = i64::try_from(whole.len()).ok()? - i64::try_from(all.len() - digits.len()).ok()?;
        let digits = digits.trim_end_matches('0');
        Some(if digits.is_empty() {
            Self { negative: false, digits: String::new(), exponent: i64::MIN }
        } else {
            // `i64::MIN` is reserved for zero.
            let exponent = power.saturating_add(places).max(i64::MIN + 1);
            Self { negative, digits: digits.to_owned(), exponent }
        })
    }

    /// Returns the shortest decimal number that reads as this float. `None` if the float is not finite.
    pub(super) fn of_float(number: f64) -> Option<Self> {
        Self::parse(&format!("{number:e}"))
    }
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !are_digits(digits) {
        return None;
    }
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(limit))
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        match (self.negative, other.negative) {
            (false, false) => size,
            (true, true) => size.reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    #[test]
    fn texts_that_are_numbers_and_texts_that_are_not() {
        for (one, same) in [
            ("19.99", "1999e-2"),
            ("007", "7"),
            ("+7", "7.000"),
            ("-0.0", "0"),
            ("0e999999999999999999999", "0"),
            ("5.", ".5e1"),
            ("1E+2", "100"),
            ("0.0000001", "1e-7"),
        ] {
            assert_eq!(Decimal::parse(one).unwrap(), Decimal::parse(same).unwrap(), "{one} {same}");
        }
        for text in [
            "",
            ".",
            "-",
            "+",
            "e5",
            "1e",
            "1e+",
            "--1",
            "+-1",
            "1.2.3",
            "1,5",
            "1_000",
            " 1",
            "1 ",
            "NaN",
            "nan",
            "inf",
            "-Infinity",
            "0x10",
            "0.1+0.2",
            "1e1.5",
            "\u{661}",
            "\u{ff11}",
            "1\u{0}",
            "$5",
            "5 EUR",
            "1e--2",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
        for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Decimal::of_float(float), None);
        }
    }

    /// Every number is less than the next one.
    #[test]
    fn numbers_are_ordered_by_their_value() {
        let nines = "9".repeat(5000);
        let ordered = [
            "-1e99999999999999999999",
            "-1e400",
            "-20.000000000000000000001",
            "-20",
            "-19.99",
            "-1e-99999999999999999999",
            "0",
            "1e-99999999999999999999",
            "1e-400",
            "0.1",
            "0.3",
            "0.30000000000000004",
            "1.9",
            "19.99",
            "19.999999999999999999999999",
            "20",
            "20.000000000000000000001",
            "100",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551616",
            "1e400",
            &nines,
            "1e99999999999999999999",
        ];
        let numbers: Vec<_> = ordered.iter().map(|text| Decimal::parse(text).unwrap()).collect();
        for (at, one) in numbers.iter().enumerate() {
            for (place, other) in numbers.iter().enumerate() {
                assert_eq!(one.cmp(other), at.cmp(&place), "{} {}", ordered[at], ordered[place]);
            }
        }
    }

    #[test]
    fn a_float_is_the_number_that_it_is_written_as() {
        for (float, text) in
            [(0.1, "0.1"), (0.1 + 0.2, "0.30000000000000004"), (1e300, "1e300"), (-2.5, "-2.5"), (-0.0, "0")]
        {
            assert_eq!(Decimal::of_float(float), Decimal::parse(text), "{text}");
        }
    }
}
