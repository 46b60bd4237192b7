//! Valid and invalid JSON, similar to the JSON parsing test suite, and the limits.

use super::{WIDE, read, refusal};
use crate::call::Outcome;
use crate::json::{Limits, MAX_DEPTH, ParseErrorKind as Kind, Tree, parse, parse_value};

#[rustfmt::skip]
const TAKEN: &[&str] = &[
    "[]", "{}", "[[]   ]", "[\"\"]", "[ \n\t\r]", "null", "true", "false", "42", "\"\"", "\" \"", "[false]", "[1\n]",
    " [1]", "[1,null,null,null,2]", "[2] ", "[123e65]", "[0e+1]", "[0e1]", "[ 4]", "[-0.000000000000000000000001]",
    "[20e1]", "[-0]", "[-123]", "[-1]", "[1E22]", "[1E-2]", "[1E+2]", "[123e45]", "[123.456e78]", "[1e-2]", "[1e+2]",
    "[123]", "[123.456789]", "{\"asd\":\"sdf\", \"dfg\":\"fgh\"}", "{\"asd\":\"sdf\"}", "{\"\":0}",
    "{\"foo\\u0000bar\": 42}", "{\"min\": -1.0e+28, \"max\": 1.0e+28}", "{\"a\":[]}",
    "{\"title\":\"\\u041f\\u043e\"}", "{\n\"a\": \"b\"\n}", "[\"\\u0060\\u012a\\u12AB\"]", "[\"\\uD801\\udc37\"]",
    "[\"\\ud83d\\ude39\\ud83d\\udc8d\"]", "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "[\"\\\\u0000\"]", "[\"\\\"\"]",
    "[\"a/*b*/c/*d//e\"]", "[\"\\\\a\"]", "[\"\\u0012\"]", "[\"\\uFFFF\"]", "[\"asd\"]", "[\"\\uDBFF\\uDFFF\"]",
    "[\"new\\u00A0line\"]", "[\"\u{10ffff}\"]", "[\"\u{ffff}\"]", "[\"\\u0000\"]", "[\"\\u002c\"]", "[\"π\"]",
    "[\"asd \"]", "\" \"", "[\"\\uD834\\uDd1e\"]", "[\"\\u0821\"]", "[\"\\u0123\"]", "[\"\u{2028}\"]",
    "[\"\u{2029}\"]", "[\"\\u0061\\u30af\\u30EA\\u30b9\"]", "[\"new\\u000Aline\"]", "[\"\u{7f}\"]", "[\"\\uA66D\"]",
    "[\"\\u005C\"]", "[\"⍂㈴⍂\"]", "[\"\\u0022\"]", "[\"\\uFDD0\"]", "[\"\\uFFFE\"]", "[\"\u{feff}\"]",
    "[\"a\u{7f}a\"]", "[[[[[[[[1]]]]]]]]",
];

#[rustfmt::skip]
const REFUSED: &[&str] = &[
    "", " ", "[1 true]", "[a]", "[\"\": 1]", "[\"\"],", "[,1]", "[1,,2]", "[\"x\",,]", "[\"x\"]]", "[\"\",]",
    "[\"x\"", "[x", "[3[4]]", "[1:2]", "[,]", "[-]", "[   , \"\"]", "[\"a\",\n4\n,1,", "[1,]", "[1,,]",
    "[\"a\u{b}\"\\f]", "[*]", "[1,", "[1,\n1\n,1", "[{}", "[fals]", "[nul]", "[tru]", "[++1234]", "[+1]", "[+Inf]",
    "[-01]", "[-1.0.]", "[-2.]", "[-NaN]", "[.-1]", "[.2e-3]", "[0.1.2]", "[0.3e+]", "[0.3e]", "[0.e1]", "[0E+]",
    "[0E]", "[0e+]", "[0e]", "[1.0e+]", "[1.0e-]", "[1.0e]", "[1 000.0]", "[1eE2]", "[2.e+3]", "[2.e-3]", "[2.e3]",
    "[9.e+]", "[Inf]", "[NaN]", "[1+2]", "[0x1]", "[0x42]", "[Infinity]", "[0e+-1]", "[-123.123foo]",
    "[-Infinity]", "[-foo]", "[- 1]", "[-012]", "[-.123]", "[-1x]", "[1ea]", "[1.]", "[.123]", "[1.2a-3]",
    "[1.8011670033376514H-308]", "[012]", "[\"x\", truth]", "{[: \"x\"}", "{x,}", "{\"x\", null}", "{\"x\"::\"b\"}",
    "{🇨🇭}", "{\"a\":\"a\" 123}", "{key: 'value'}", "{\"x\":'y'}", "{\"a\" b}", "{:\"b\"}", "{\"a\" \"b\"}", "{\"a\":",
    "{\"a\"", "{1:1}", "{9999E9999:1}", "{null:null,null:null}", "{\"id\":0,,,,,}", "{'a':0}", "{\"id\":0,}",
    "{\"a\":\"b\"}/**/", "{\"a\":\"b\"}//", "{\"a\":\"b\"}#", "{\"a\":\"b\",,\"c\":\"d\"}", "{a: \"b\"}",
    "{\"a\":\"a", "{ \"foo\" : \"bar\", \"a\" }", "{\"a\":\"b\"}#", "[\"\\uD800\\\"]", "[\"\\uD800\\u\"]",
    "[\"\\uD800\\u1\"]", "[\"\\uD800\\u1x\"]", "[é]", "[\"\\x00\"]", "[\"\\\\\\\"]", "[\"\\\t\"]", "[\"\\🌀\"]",
    "[\"\\\"]", "[\"\\u00A\"]", "[\"\\uD834\\uDd\"]", "[\"\\uD800\\uD800\\x\"]", "[\"\\a\"]", "[\"\\uqqqq\"]",
    "[\\u0020\"asd\"]", "[\\n]", "\"", "['single quote']", "abc", "[\"\\", "[\"a\u{0}a\"]", "[\"new\nline\"]",
    "[\"\t\"]", "\"\\UA66D\"", "[\u{2060}]", "\u{feff}", "\u{feff}{}", "<.>", "[<null>]", "[1]x", "[1]]", "[\"asd]",
    "aå", "[True]", "1]", "{\"x\": true,", "[][]", "]", "{}}", "{", "{\"\":", "[", "[\"", "{]", "}", "[{\"\":[{\"\":",
    "{\"a\":\"b", "*", "{\"a\":/*comment*/\"b\"}", "{\"a\": true} \"x\"", "[\"a", "{,", "{[", "{\"a",
    "[\"\\{[\"\\{[\"\\{[\"\\{", "\u{a0}[]", "[\u{c}]", "\u{b}{}", "[\u{2003}1]", "nulll", "truefalse", "// x\n{}",
    "{\"a\": undefined}", "{\"a\": 1;}", "\u{0}{}", "{}\u{0}", "0x10", "--1", "1..2", "1e", "1e+", ".5", "5.",
    "\\u0031",
];

#[test]
fn what_is_json_is_taken() {
    for text in TAKEN {
        let tree = read(text);
        // Written text reads back as the same value.
        assert!(read(&serde_json::to_string(&tree).unwrap()) == tree, "{text}");
        assert!(tree == Tree::from_value(&serde_json::from_str(text).unwrap()), "{text}");
    }
}

#[test]
fn what_is_not_json_is_refused() {
    for text in REFUSED {
        let error = parse_value(text, &WIDE).err().unwrap_or_else(|| panic!("{text} was accepted"));
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text} is JSON");
        assert!(error.offset <= text.len() && text.is_char_boundary(error.offset), "{text}");
    }
}

#[test]
fn every_cut_of_a_value_is_refused_as_incomplete_or_wrong() {
    let text = r#"{"a": [1.5e3, "\u00e9\ud83d\ude00", {"b": [true, false, null]}], "c": "é"}"#;
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        assert!(parse_value(&text[..at], &WIDE).is_err(), "{at}");
    }
}

#[test]
fn what_json_leaves_open_is_decided() {
    for (text, expected) in [
        (r#"{"a":1,"a":2}"#, Kind::DuplicateKey),
        (r#"{"a":1,"\u0061":2}"#, Kind::DuplicateKey),
        (r#"[{"a":{"b":1,"b":1}}]"#, Kind::DuplicateKey),
        (r#"["\uD800"]"#, Kind::LoneSurrogate),
        (r#"["\uDFAA"]"#, Kind::LoneSurrogate),
        (r#"["\uD888\u1234"]"#, Kind::LoneSurrogate),
        (r#"["\uD800\n"]"#, Kind::LoneSurrogate),
        (r#"["\uD83D\uD83D"]"#, Kind::LoneSurrogate),
        ("[18446744073709551616]", Kind::IntegerRange),
        ("[-9223372036854775809]", Kind::IntegerRange),
        ("[100000000000000000000000000000000000000]", Kind::IntegerRange),
        ("[1e400]", Kind::NotFinite),
        ("[-1.5E+9999]", Kind::NotFinite),
        ("{} {}", Kind::Trailing),
        ("{\"a\":", Kind::Incomplete),
        ("tru", Kind::Incomplete),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

#[test]
fn duplicates_are_found_however_many_members_there_are() {
    for count in [1, 31, 32, 33, 34, 1_000] {
        let members = |last: usize| {
            let names: Vec<_> = (0..count).chain([last]).map(|at| format!("\"k{at}\":{at}")).collect();
            format!("{{{}}}", names.join(","))
        };
        assert_eq!(read(&members(count)).as_object().map(<[_]>::len), Some(count + 1));
        for last in [0, count / 2, count - 1] {
            assert_eq!(refusal(&members(last)), Kind::DuplicateKey, "{count} {last}");
        }
    }
}

#[test]
fn arguments_are_one_object_or_nothing() {
    for blank in ["", " ", "\n", "\t \r\n"] {
        assert_eq!(parse(blank, &WIDE).unwrap(), Tree::Object(Vec::new()));
    }
    for text in ["[]", "42", "null", "\"{}\"", " true "] {
        let error = parse(text, &WIDE).unwrap_err();
        assert_eq!((error.kind, error.outcome()), (Kind::NotAnObject, Outcome::ValidationError));
        assert_eq!(error.violation().unwrap().keyword, "type");
    }
    for text in ["\u{feff}{}", "\u{a0}{}", "{}{}", "{} x", "nope", "[", "\"", "[1] 2"] {
        assert_eq!(parse(text, &WIDE).unwrap_err().outcome(), Outcome::InvalidJson, "{text}");
    }
}

#[test]
fn limits_hold_and_nothing_crashes() {
    let limits = Limits::default();
    for (text, expected) in [
        (format!("{{\"a\":\"{}\"}}", "x".repeat(8192 - 8)), Ok(())),
        (format!("{{\"a\":\"{}\"}}", "x".repeat(8192 - 7)), Err(Kind::Bytes { limit: 8192 })),
        (" ".repeat(8192), Ok(())),
        (" ".repeat(8193), Err(Kind::Bytes { limit: 8192 })),
        (format!("{{\"a\":{}{}}}", "[".repeat(63), "]".repeat(63)), Ok(())),
        (format!("{{\"a\":{}{}}}", "[".repeat(64), "]".repeat(64)), Err(Kind::Depth { limit: 64 })),
        ("[".repeat(8192), Err(Kind::Depth { limit: 64 })),
        ("{\"a\":".repeat(1000), Err(Kind::Depth { limit: 64 })),
    ] {
        let got = parse(&text, &limits).map(drop);
        assert_eq!(got.as_ref().map_err(|error| error.kind), expected.as_ref().map_err(|kind| *kind));
        assert!(got.is_ok_and(|()| true) || parse(&text, &limits).unwrap_err().outcome() == Outcome::LimitExceeded);
    }
    for deep in [
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)),
        "[{\"a\":".repeat(500_000),
    ] {
        assert_eq!(refusal(&deep), Kind::Depth { limit: MAX_DEPTH });
    }
    let long = format!("{{\"a\":\"{}\\n{}\"}}", "é".repeat(500_000), "x".repeat(1_000_000));
    assert_eq!(read(&long).get("a").and_then(Tree::as_str).map(str::len), Some(2_000_001));
    assert_eq!(read(&format!("[{}1]", "1,".repeat(1_000_000))).as_array().map(<[_]>::len), Some(1_000_001));
}

#[test]
fn errors_say_where_and_never_quote() {
    for (text, place, message) in [
        ("{\"a\": 1,\n  'b': 2}", (2, 3), "expected a property name in double quotes"),
        ("{\"é\": sécret}", (1, 7), "expected a JSON value"),
        ("{\"a\": 1} secret", (1, 10), "something follows the JSON object; send exactly one object"),
        ("{\"a\": NaN}", (1, 7), "expected a value; JSON has no `NaN` and no `Infinity`"),
        ("{\"a\": -Infinity}", (1, 8), "expected a number; JSON has no `Infinity`"),
        ("{\"a\": 'secret'}", (1, 7), "expected a value; strings are written in double quotes"),
        ("{\"secret\": 1, \"secret\": 2}", (1, 15), "a property name occurs twice in one object"),
        (
            "{\"a\": 99999999999999999999}",
            (1, 7),
            "an integer outside -2^63 to 2^64-1; send it as a string if the argument takes one",
        ),
        ("{\"a\": 1,}", (1, 9), "expected a property name in double quotes"),
        ("{\"a\" 1}", (1, 6), "expected `:` after a property name"),
        ("{\"a\": 1", (1, 8), "the JSON ends too early"),
    ] {
        let error = parse(text, &WIDE).unwrap_err();
        assert_eq!((error.line, error.column), place, "{text}");
        assert_eq!(error.to_string(), format!("line {}, column {}: {message}", place.0, place.1));
        assert!(!format!("{error:?}").contains("secret"));
    }
}
