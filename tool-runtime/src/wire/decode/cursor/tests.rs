use serde::de::IgnoredAny;

use super::*;

/// Values as servers send them, and at the limits of the grammar.
const VALUES: &[&str] = &[
    r#"{"a":[{"b":{"c":[1,-0.5e+3,true,false,null,"d\"\\\u00e9\ud83d\ude00"]}}],"":{}}"#,
    r#" { "half" : "\ud800" , "\udc00" : [ ] } "#,
    r#"[[[[[[[[[[1,{"deep":[{}]}]]]]]]]]]]"#,
    r#"{"a":{"b":{"c":{"d":{"e":{"f":[1,2]}}}}}}"#,
    "[0,1,-1,10,0.0,1E5,1e-5,123456789012345678901234567890]",
    "\"caf\u{e9}\u{1f600}\"",
    "[1 ,2\t,\r\n3]",
];

/// Replacements for a byte.
const BYTES: &[&str] =
    &["", "\"", "\\", ",", ":", "{", "}", "[", "]", "0", "1", "-", ".", "e", "n", " ", "\u{1}", "\u{e9}"];

#[test]
fn what_is_skipped_is_what_serde_json_skips() {
    let mut refused = 0;
    for value in VALUES {
        for (at, character) in value.char_indices() {
            for other in BYTES {
                let (before, after) = (&value[..at], &value[at + character.len_utf8()..]);
                for text in [[before, other, after].concat(), [before, other].concat()] {
                    let expected = serde_json::from_str::<IgnoredAny>(&text).is_ok();
                    let mut json = Json::new(&text);
                    assert_eq!(json.skip().and_then(|()| json.end()).is_ok(), expected, "{text}");
                    refused += usize::from(!expected);
                }
            }
        }
    }
    assert!(refused > 1_000);
}

#[test]
fn integers_are_those_of_the_grammar() {
    let numbers = ["0", "7", "-7", "-0", "10", "123", "9223372036854775807", "-9223372036854775808"];
    for text in numbers {
        for (text, expected) in
            [(format!("{text} "), text.parse().ok()), (format!("{text}.5,"), None), (format!("{text}e2]"), None)]
        {
            assert_eq!(Json::new(&text).integer().ok(), Some(expected), "{text}");
        }
        assert_eq!(Json::new(text).integer().ok(), Some(text.parse().ok()));
    }
    for (text, expected) in
        [("9223372036854775808", Some(None)), ("", None), ("-", None), ("x", None), ("1.", None), ("1e", None)]
    {
        assert_eq!(Json::new(text).integer().ok(), expected, "{text}");
    }
    // After a leading zero the number ends, so the next digit is not JSON.
    let mut json = Json::new("01");
    assert!(json.integer().is_ok_and(|number| number == Some(0)) && json.end().is_err());
}
