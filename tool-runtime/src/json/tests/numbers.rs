//! Numbers in every notation.

use super::{WIDE, read, refusal};
use crate::json::{ParseErrorKind, Tree, parse_value};

#[test]
fn integral_numbers_are_integers_up_to_two_to_the_53() {
    for (texts, expected) in [
        (&["0", "-0", "0.0", "-0.0", "0e9", "0E-9", "-0e0", "0.000"][..], 0),
        (&["5", "5.0", "5.000", "0.5e1", "50e-1", "500E-2", "5e0", "5E+0"], 5),
        (&["100", "1e2", "1E2", "1.0e+2", "10000e-2", "0.01e4"], 100),
        (&["-7", "-7.0", "-70e-1", "-0.7e1"], -7),
        (&["9007199254740992", "9007199254740992.0", "9.007199254740992e15"], 9_007_199_254_740_992),
        (&["-9007199254740992", "-9007199254740992.0"], -9_007_199_254_740_992),
        (&["9223372036854775807"], i64::MAX),
        (&["-9223372036854775808"], i64::MIN),
        (&["9007199254740993"], 9_007_199_254_740_993),
    ] {
        for text in texts {
            assert!(matches!(read(text), Tree::Int(number) if number == expected), "{text}");
        }
    }
    assert!(matches!(read("9223372036854775808"), Tree::UInt(9_223_372_036_854_775_808)));
    assert!(matches!(read("18446744073709551615"), Tree::UInt(u64::MAX)));
}

#[test]
fn other_numbers_are_the_nearest_float() {
    for text in [
        "0.1",
        "-1.5",
        "5e-324",
        "1.7976931348623157e308",
        "0.30000000000000004",
        "2.2250738585072014e-308",
        "1e17",
        "1e300",
        "9007199254740994.0",
        "123456789.123456789",
        "1e-7",
        "4.35",
        "0.000001",
    ] {
        let expected: f64 = text.parse().unwrap();
        assert!(matches!(read(text), Tree::Float(number) if number.to_bits() == expected.to_bits()), "{text}");
    }
}

#[test]
fn what_no_type_holds_is_refused() {
    for digits in [20, 21, 100, 5_000] {
        assert_eq!(refusal(&"9".repeat(digits)), ParseErrorKind::IntegerRange, "{digits}");
        assert_eq!(refusal(&format!("-{}", "9".repeat(digits))), ParseErrorKind::IntegerRange, "{digits}");
        assert_eq!(refusal(&format!("1e{}", "9".repeat(digits))), ParseErrorKind::NotFinite, "{digits}");
    }
    assert_eq!(refusal("-9223372036854775809"), ParseErrorKind::IntegerRange);
    assert_eq!(refusal("-18446744073709551615"), ParseErrorKind::IntegerRange);
    assert_eq!(refusal("1.8e308"), ParseErrorKind::NotFinite);
}

/// The parser has a separate code path for integers in containers.
#[test]
fn a_number_is_the_same_in_a_container() {
    let digits = |count: usize| ["1", "9", "0"].map(|digit| digit.repeat(count)).to_vec();
    let mut texts: Vec<String> = [1, 2, 17, 18, 19, 20, 21, 10_000].into_iter().flat_map(digits).collect();
    let limits = ["9223372036854775807", "9223372036854775808", "9223372036854775809", "18446744073709551615"];
    let odd = ["", "18446744073709551616", "5.0", "5.", "5.x", "1e2", "1E", "0e9", ".5", "+5", "0x1", "1_0", "NaN"];
    texts.extend(limits.into_iter().chain(odd).map(str::to_owned));
    for text in texts.iter().cloned().chain(texts.iter().map(|text| format!("-{text}"))) {
        let alone = parse_value(&text, &WIDE).ok();
        for (before, after) in [("[", "]"), ("[ ", " ]"), ("{\"a\":", "}"), ("{\"a\": ", ",\"b\":1}"), ("[7,", ",7]")] {
            let all = format!("{before}{text}{after}");
            // Empty text gives an empty array or invalid JSON.
            let whole = parse_value(&all, &WIDE).ok().filter(|_| !text.is_empty());
            let at = if before.starts_with('{') {
                "/a"
            } else if before == "[7," {
                "/1"
            } else {
                "/0"
            };
            assert_eq!(whole.as_ref().and_then(|whole| whole.pointer(at)), alone.as_ref(), "{all:.60}");
        }
    }
}
