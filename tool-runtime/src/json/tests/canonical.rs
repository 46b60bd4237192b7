//! Canonical text: RFC 8785's own examples, and exact integers where it rounds.

use serde_json::json;

use super::read;
use crate::json::{canonical, digest};

#[test]
fn numbers_are_laid_out_as_ecmascript_does() {
    // Bits and text from RFC 8785, appendix B.
    for (bits, expected) in [
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        assert_eq!(canonical::rfc8785(&json!(f64::from_bits(bits))), expected);
    }
}

#[test]
fn names_are_sorted_by_utf_16_units_and_only_what_must_be_is_escaped() {
    let tree = read(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#,
    );
    let names: Vec<_> = {
        let text = canonical::rfc8785(&tree);
        read(&text).as_object().unwrap().iter().map(|(name, _)| name.clone().into_owned()).collect()
    };
    assert_eq!(names, ["\r", "1", "\u{80}", "ö", "€", "😀", "\u{fb33}"]);
    let text = read(r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\b\f\t\u007f""#);
    assert_eq!(canonical::rfc8785(&text), "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\\b\\f\\t\u{7f}\"");
}

#[test]
fn integers_are_exact_in_what_is_sent_and_doubles_in_what_is_hashed() {
    let tree = read(r#"{"b":18446744073709551615,"a":[9007199254740993,1.0,-0.0,1e21,0.1]}"#);
    assert_eq!(canonical::to_text(&tree), r#"{"a":[9007199254740993,1,0,1e+21,0.1],"b":18446744073709551615}"#);
    assert_eq!(canonical::rfc8785(&tree), r#"{"a":[9007199254740992,1,0,1e+21,0.1],"b":18446744073709552000}"#);
    assert_eq!(canonical::to_text(&json!({"b": 1, "a": [true, null]})), r#"{"a":[true,null],"b":1}"#);
}

#[test]
fn other_software_writes_the_same_text() {
    for value in [
        json!({"b": [1, -1, 0.5, 1e21, 1e-7, 123_456_789], "a": {"z": null, "\u{e9}": true, "\u{1f600}": "\u{1}\n\"\\/"}}),
        json!({"\u{fb33}": 1, "\u{1f600}": 2, "\u{20ac}": 3, "\r": 4, "1": 5, "\u{80}": 6, "\u{f6}": 7}),
        json!([f64::MAX, f64::MIN_POSITIVE, 9_007_199_254_740_991_i64, 333_333_333.333_333_3, -0.0]),
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": -5, "maximum": 1.5e300}}}),
        json!(""),
        json!({}),
        json!([[], {}, "\u{7f}\u{2028}"]),
    ] {
        assert_eq!(canonical::rfc8785(&value), serde_jcs::to_string(&value).unwrap());
    }
}

#[test]
fn digests_are_sha_256() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(digest("").to_string(), empty);
    assert_eq!(digest(b"abc").to_string()[..16], *"ba7816bf8f01cfea");
}
