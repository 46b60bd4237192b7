//! Policies from text and files, and the errors they can have.

use std::time::Duration;

use crate::policy::budget::ToolLimits;
use crate::policy::*;
use crate::tool::ToolEffect;

#[track_caller]
fn check(text: &str, code: &str, says: &str) {
    let read = if text.starts_with('{') { ToolPolicy::from_json(text) } else { ToolPolicy::from_toml(text) };
    let error = read.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert_eq!(error.to_string(), says);
}

#[test]
fn deciders_are_named_as_the_application_names_people() {
    for name in ["grace", "grace@example.com", "auth0|123", "Ada Lovelace", "Grüße"] {
        ToolPolicy::from_toml(&format!("[approvals]\nprincipals = [\"{name}\"]")).unwrap();
        ToolPolicy::from_toml(&format!("[approvals.tools.a__b]\nprincipals = [\"{name}\"]")).unwrap();
    }
    for name in ["", " ", "grace ", "gra\\u0000ce", "gra\\u200Bce"] {
        let error = ToolPolicy::from_toml(&format!("[approvals]\nprincipals = [\"{name}\"]")).unwrap_err().to_string();
        assert!(error.starts_with("policy, line 2, column 14: a principal's name is not empty"), "{error}");
    }
}

#[test]
fn errors_say_where_and_what_to_do() {
    check(
        "parallel = 2\nallowed_tool = []",
        "policy_unknown_key",
        "policy, line 2, column 1: unknown field `allowed_tool`, expected one of `allowed_tools`, `allowed_graphs`, \
         `require_approval_for_effects`, `require_approval_for_tools`, `approvals`, `budgets`, `roles`, `principals`, `attributes`, `tenants`, \
         `callers`, `tags`, `labels`, `tools`, `servers`, `records`, `repair`, `loop_guard`, `mcp`, `notices`, `limits`, `cedar`, `parallel`; did you mean `allowed_tools`?",
    );
    check(
        "allowed_tools = 'core__add'",
        "policy_wrong_type",
        "policy, line 1, column 17: invalid type: string \"core__add\", expected a list of tool names, for example [\"core__add\"]",
    );
    check(
        "allowed_tools = [\n  'core__add',\n  'core__*',\n]",
        "policy_value",
        "policy, line 3, column 3: a policy names tools exactly; write each name instead of a wildcard",
    );
    check(
        "allowed_tools = ['core add']",
        "policy_value",
        "policy, line 1, column 18: the tool name has a character other than ASCII letters, digits, `_` and `-`",
    );
    check(
        "require_approval_for_effects = ['state_chang']",
        "policy_value",
        "policy, line 1, column 33: unknown variant `state_chang`, expected one of `read_only`, `state_change`, \
         `external_side_effect`; did you mean `state_change`?",
    );
    check(
        "[budgets.default]\nmax_runtime_ms = 0",
        "policy_value",
        "policy, line 2, column 18: 0 would refuse everything; write 1 or more, or leave the key out",
    );
    check("[budgets.run]\ncost = nan", "policy_value", "policy, line 2, column 8: write a finite amount of 0 or more");
    check(
        "parallel = 0",
        "policy_value",
        "policy, line 1, column 12: 0 would refuse everything; write 1 or more, or leave the key out",
    );
    check("tags = { a = 'deny', a = 'deny' }", "policy_syntax", "policy, line 1, column 22: duplicate key");
    check(
        "{\"tags\": {\"a\": \"deny\",\n \"a\": \"require_approval\"}}",
        "policy_value",
        "policy, line 2, column 25: this key is written twice; remove one",
    );
    check(
        "{\"parallel\": true}",
        "policy_wrong_type",
        "policy, line 1, column 17: invalid type: boolean `true`, expected usize",
    );
    for text in ["{\"budgets\": []}", "{\"tools\": {\"a\": []}}", "{\"tools\": {\"a\": {\"arguments\": [[\"/to\"]]}}}"]
    {
        let error = ToolPolicy::from_json(text).unwrap_err().to_string();
        assert!(error.ends_with("invalid type: sequence, expected a table"), "{error}");
    }
    check("{\"parallel\": ", "policy_syntax", "policy, line 1, column 13: EOF while parsing a value");
    check(
        "{\"tools\": {\"a\": {\"effekt\": null}}}",
        "policy_unknown_key",
        "policy, line 1, column 25: unknown field `effekt`, expected one of `effect`, `pin`, `redact`, `model`, `arguments`; did you mean `effect`?",
    );
}

#[test]
fn files_are_read_by_what_they_are_called() {
    let folder = std::env::temp_dir().join(format!("policy-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir(&folder).unwrap();
    let error = |name: &str, bytes: Option<&[u8]>| {
        let path = folder.join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        let error = ToolPolicy::from_path(&path).unwrap_err();
        let text = error.to_string();
        (error.code(), text.strip_prefix(folder.to_str().unwrap()).unwrap().trim_start_matches(['/', '\\']).to_owned())
    };
    let missing = error("missing.toml", None);
    assert_eq!(
        missing,
        ("policy_missing", "missing.toml: the file does not exist; write one, or correct the path".to_owned())
    );
    let format = error("policy.yaml", None);
    assert_eq!(
        format,
        ("policy_format", "policy.yaml: name the file `*.toml` or `*.json`, after its format".to_owned())
    );
    let bytes = error("bytes.toml", Some(b"parallel = 1\n# \xff"));
    assert_eq!(bytes, ("policy_not_utf8", "bytes.toml:2:3: the text is not UTF-8; save the file as UTF-8".to_owned()));
    let syntax = error("bad.json", Some(b"[]"));
    assert_eq!(syntax.0, "policy_wrong_type");
    std::fs::create_dir(folder.join("folder.toml")).unwrap();
    assert_eq!(error("folder.toml", None).0, "policy_unreadable");
    std::fs::write(folder.join("good.json"), "{\"allowed_tools\": [\"core__add\"]}").unwrap();
    assert_eq!(ToolPolicy::from_path(folder.join("good.json")).unwrap(), ToolPolicy::allow(["core__add"]));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_revision_is_that_of_the_meaning() {
    let revision = |text: &str| ToolPolicy::from_toml(text).unwrap().revision();
    assert_eq!(revision(""), ToolPolicy::deny_all().revision());
    assert_eq!(revision("allowed_tools = ['a', 'b']"), revision("# words\nallowed_tools = ['b', 'a', 'b']"));
    assert_eq!(revision("allowed_tools = ['a', 'b']"), ToolPolicy::allow(["b", "a"]).revision());
    assert_eq!(revision("parallel = 1"), revision(""));
    assert_ne!(revision("parallel = 2"), revision(""));
    let policy =
        ToolPolicy::from_toml("[tools.a]\narguments = [{ pointer = '/x', equals = 1, then = 'deny' }]").unwrap();
    let again: ToolPolicy = serde_json::from_str(&serde_json::to_string(&policy).unwrap()).unwrap();
    assert_eq!((&again, again.revision()), (&policy, policy.revision()));
}

#[test]
fn budgets_fall_back() {
    let policy = ToolPolicy::from_toml(
        "[limits]\nargument_bytes = 100\n[budgets.default]\nmax_runtime_ms = 50\n[budgets.tools.a]\nmax_result_bytes = 7\n[budgets.tools.b]\nmax_runtime_ms = 9",
    )
    .unwrap();
    let limits = |runtime, result_bytes| ToolLimits {
        runtime: Some(Duration::from_millis(runtime)),
        result_bytes,
        argument_bytes: 100,
    };
    for (name, expected) in [("a", limits(50, 7)), ("b", limits(9, 32_768)), ("c", limits(50, 32_768))] {
        assert_eq!(policy.terms_of(name, ToolEffect::ReadOnly).limits, expected, "{name}");
    }
    assert_eq!(ToolPolicy::deny_all().terms_of("a", ToolEffect::ReadOnly).limits.runtime, None);
}

#[test]
fn a_policy_in_code_is_the_one_in_a_file() {
    let built = ToolPolicy::allow(["a"]).with_approval_for_effects([ToolEffect::StateChange]);
    let written = r#"
        allowed_tools = ["a"]
        require_approval_for_effects = ["state_change"]
    "#;
    assert_eq!(built, ToolPolicy::from_toml(written).unwrap());
}

#[test]
fn calls_run_one_after_the_other_unless_the_policy_says_so() {
    assert_eq!(ToolPolicy::from_toml("parallel = 2").unwrap().parallel(), 2);
    assert_eq!(ToolPolicy::deny_all().parallel(), 1);
}

#[test]
fn the_documented_policy_is_one_and_names_every_key() {
    let example = include_str!("../example.toml");
    let policy = ToolPolicy::from_toml(example).unwrap();
    let serde_json::Value::Object(keys) = serde_json::to_value(&policy).unwrap() else { panic!("a policy is a table") };
    let written: toml::Table = example.parse().unwrap();
    for key in keys.keys() {
        assert!(written.contains_key(key), "`{key}` is not in the example");
    }
    assert_eq!(policy, ToolPolicy::from_json(&serde_json::to_string(&policy).unwrap()).unwrap());
}

#[cfg(not(feature = "cedar"))]
#[test]
fn a_build_without_cedar_refuses_policies_that_it_could_not_ask() {
    check(
        "[cedar]\npolicies = 'permit(principal, action, resource);'",
        "policy_value",
        "policy, line 1, column 1: this build has no Cedar engine; enable the feature `cedar` of `tool-runtime`",
    );
}

#[test]
fn a_shared_budget_has_a_window_and_a_limit() {
    let value = "policy_value";
    check(
        "[budgets.tenant]\ncalls = 1",
        value,
        "policy, line 1, column 1: this budget has no `window`; write the period after which it starts again at zero, for example `window = \"1h\"`",
    );
    check(
        "[budgets.principal]\nwindow = '1h'",
        value,
        "policy, line 1, column 1: this budget limits nothing; write `calls`, `tokens`, `cost` or another limit",
    );
    check(
        "[budgets.principal]\nwindow = '1 hour'\ncalls = 1",
        value,
        "policy, line 2, column 10: write a whole number of `s`, `m`, `h` or `d`, up to 366 days, for example \"1h\"",
    );
    check(
        "[budgets.run]\nwindow = '1h'\ncalls = 1",
        value,
        "policy, line 1, column 1: `window` is for the budgets of a principal or a tenant; remove it",
    );
    check(
        "[[budgets.tenant]]\nwindow = '60m'\ncalls = 1\n[[budgets.tenant]]\nwindow = '1h'\ntokens = 1",
        value,
        "policy, line 1, column 1: two budgets have the same `window`; write them as one",
    );
    check(
        "[budgets.tenant]\nwindow = '1h'\nbites = 1",
        "policy_unknown_key",
        "policy, line 3, column 1: unknown field `bites`, expected one of `window`, `calls`, `turns`, `time_ms`, `bytes`, `tokens`, \
         `input_tokens`, `output_tokens`, `reasoning_tokens`, `cost`; did you mean `bytes`?",
    );
    let many: Vec<_> = (1..=9).map(|hours| format!("{{ window = '{hours}h', calls = 1 }}")).collect();
    let error = ToolPolicy::from_toml(&format!("budgets.tenant = [{}]", many.join(", "))).unwrap_err();
    assert!(error.to_string().ends_with("more than 8 windows; write fewer"), "{error}");
    let one = ToolPolicy::from_toml("[budgets.tenant]\nwindow = '1h'\ncalls = 1").unwrap();
    let list = ToolPolicy::from_json(r#"{"budgets":{"tenant":[{"window":"60m","calls":1}]}}"#).unwrap();
    assert_eq!(one.revision(), list.revision());
    // The form in a snapshot reads the same.
    let text = serde_json::to_string(one.data()).unwrap();
    assert_eq!(ToolPolicy::from_json(&text).unwrap().revision(), one.revision());
}
