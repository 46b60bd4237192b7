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
            (json!({"pay": {"amount": "1"}}), true),
        ],
    );
}

#[test]
fn a_rule_says_one_thing() {
    for (rule, says) in [
        ("pointer = 'to'\nequals = 1\nthen = 'deny'", "starts with `/`"),
        ("pointer = '/to'\nthen = 'deny'", "exactly one of `equals`"),
        ("pointer = '/to'\nequals = 1\nprefix = 'x'\nthen = 'deny'", "exactly one of `equals`"),
        ("pointer = '/to'\nequals = 1", "exactly one of `then`"),
        ("pointer = '/to'\nat_most = nan\nthen = 'deny'", "exactly one of `equals`"),
        ("pointer = '/to'\nat_most = inf\notherwise = 'deny'", "finite number"),
        ("pointer = '/to'\nprefix = ''\notherwise = 'deny'", "empty `prefix`"),
        ("pointer = '/to'\nequal = 1\nthen = 'deny'", "unknown field `equal`"),
    ] {
        let error = toml::from_str::<ArgumentRule>(rule).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
