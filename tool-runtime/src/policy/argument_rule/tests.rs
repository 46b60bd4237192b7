//! Cases of argument rules.

use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(rule: &str, cases: &[(Value, bool)]) {
    let rule: ArgumentRule = toml::from_str(rule).unwrap();
    let again: ArgumentRule = serde_json::from_str(&serde_json::to_string(&rule).unwrap()).unwrap();
    assert_eq!(rule, again);
    for (arguments, fires) in cases {
        assert_eq!(rule.fires(&Tree::from_value(arguments)), *fires, "{arguments}");
    }
}

#[test]
fn then_fires_on_a_match() {
    check(
        "pointer = '/to'\nequals = 'a'\nthen = 'deny'",
        &[
            (json!({"to": "a"}), true),
            (json!({"to": ["b", "a"]}), true),
            (json!({"to": "b"}), false),
            (json!({}), false),
        ],
    );
    check("pointer = '/n'\nequals = 5\nthen = 'deny'", &[(json!({"n": 5.0}), true), (json!({"n": "5"}), false)]);
    check(
        "pointer = '/path'\nprefix = '/etc'\nthen = 'deny'",
        &[(json!({"path": "/etc/x"}), true), (json!({"path": {}}), false)],
    );
}

#[test]
fn otherwise_fires_on_a_mismatch_and_on_nothing() {
    check(
        "pointer = '/to'\none_of = ['a', 'b']\notherwise = 'require_approval'",
        &[
            (json!({"to": ["a", "b"]}), false),
            (json!({"to": ["a", "c"]}), true),
            (json!({"to": []}), false),
            (json!({"to": null}), true),
            (json!({"to": [["a"]]}), true),
            (json!({}), true),
        ],
    );
    check(
        "pointer = '/pay/amount'\nat_most = 100\notherwise = 'deny'",
        &[
            (json!({"pay": {"amount": 100}}), false),
            (json!({"pay": {"amount": 100.5}}), true),
            (json!({"pay": {"amount": "1"}}), false),
            (json!({"pay": {"amount": true}}), true),
            (json!({"pay": {"amount": null}}), true),
        ],
    );
}

#[test]
fn a_limit_is_exact_for_numbers_and_for_decimal_texts() {
    let nines = "9".repeat(4000);
    for limit in ["20", "20.0", "'20'", "'2e1'"] {
        let text = |text: &str| json!({ "price": text });
        check(
            &format!("pointer = '/price'\nat_most = {limit}\notherwise = 'deny'"),
            &[
                (json!({"price": 19.99}), false),
                (json!({"price": 20}), false),
                (json!({"price": 20.0}), false),
                (json!({"price": 20.000_000_000_000_004}), true),
                (json!({"price": -1e300}), false),
                (json!({"price": u64::MAX}), true),
                (json!({"price": ["1", 20, "19.99"]}), false),
                (json!({"price": ["1", "20.01"]}), true),
                (text("19.99"), false),
                (text("20.000"), false),
                (text("0020"), false),
                (text("+20"), false),
                (text("-0"), false),
                (text("20.00000000000000000000000001"), true),
                (text("19.99999999999999999999999999"), false),
                (text("1e400"), true),
                (text("-1e400"), false),
                (text("1e-400"), false),
                (text("1e99999999999999999999"), true),
                (text(&nines), true),
                (text("0.1+0.2"), true),
                (text("NaN"), true),
                (text("inf"), true),
                (text("-inf"), true),
                (text("-Infinity"), true),
                (text(" 5"), true),
                (text("1_0"), true),
                (text("1,5"), true),
                (text("0x5"), true),
                (text(""), true),
                (text("\u{665}"), true),
            ],
        );
    }
    // A float equals the decimal number that it is written as, and integers above 2^53 keep their last digit.
    check(
        "pointer = '/n'\nat_most = 0.3\notherwise = 'deny'",
        &[(json!({"n": 0.3}), false), (json!({"n": 0.1 + 0.2}), true), (json!({"n": "0.3"}), false)],
    );
    check(
        "pointer = '/n'\nat_most = 9007199254740992\notherwise = 'deny'",
        &[(json!({"n": 9_007_199_254_740_992_i64}), false), (json!({"n": 9_007_199_254_740_993_i64}), true)],
    );
    check(
        "pointer = '/n'\nat_most = '18446744073709551615.5'\notherwise = 'deny'",
        &[
            (json!({"n": u64::MAX}), false),
            (json!({"n": "18446744073709551615.50"}), false),
            (json!({"n": "18446744073709551615.51"}), true),
        ],
    );
    check(
        "pointer = '/n'\nequals = 9007199254740992.0\nthen = 'deny'",
        &[(json!({"n": 9_007_199_254_740_993_i64}), false)],
    );
}

#[test]
fn a_rule_says_one_thing() {
    for (rule, says) in [
        ("pointer = 'to'\nequals = 1\nthen = 'deny'", "starts with `/`"),
        ("pointer = '/to'\nthen = 'deny'", "exactly one of `equals`"),
        ("pointer = '/to'\nequals = 1\nprefix = 'x'\nthen = 'deny'", "exactly one of `equals`"),
        ("pointer = '/to'\nequals = 1", "exactly one of `then`"),
        ("pointer = '/to'\nat_most = nan\nthen = 'deny'", "finite number"),
        ("pointer = '/to'\nat_most = inf\notherwise = 'deny'", "finite number"),
        ("pointer = '/to'\nat_most = 'NaN'\notherwise = 'deny'", "finite number"),
        ("pointer = '/to'\nat_most = '5 EUR'\notherwise = 'deny'", "finite number"),
        ("pointer = '/to'\nat_most = true\notherwise = 'deny'", "finite number"),
        ("pointer = '/to'\nprefix = ''\notherwise = 'deny'", "empty `prefix`"),
        ("pointer = '/to'\nequal = 1\nthen = 'deny'", "unknown field `equal`"),
    ] {
        let error = toml::from_str::<ArgumentRule>(rule).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
