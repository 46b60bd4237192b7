//! Policies checked against a catalog.

use crate::policy::tests::spec;
use crate::policy::*;
use crate::tool::{Schema, ToolEffect, ToolSpec};

#[track_caller]
fn check(policy: &str, expected: &[&str]) {
    let schema = Schema::from_text(
        r#"{"type":"object","properties":{"to":{"type":"array","items":{"type":"object","properties":{"mail":{}},"additionalProperties":false}},"a/b":{}},"additionalProperties":false}"#,
    );
    let known = [
        ToolSpec { input_schema: schema, ..spec("mail__send", ToolEffect::StateChange) },
        ToolSpec { tags: vec!["money".into(), "web".into()], ..spec("core__add", ToolEffect::ReadOnly) },
        spec("mcp__x__get", ToolEffect::ExternalSideEffect),
    ];
    let policy = ToolPolicy::from_toml(policy).unwrap();
    let problems: Vec<String> = policy.check(&known, ["fenced_json"]).iter().map(ToString::to_string).collect();
    assert_eq!(problems, expected);
}

#[test]
fn every_name_must_exist() {
    check("allowed_tools = ['core__add', 'mcp__later__tool']", &[]);
    check(
        "allowed_tools = ['core__ad', 'other']",
        &[
            "policy, `allowed_tools`: there is no tool `core__ad`; did you mean `core__add`?",
            "policy, `allowed_tools`: there is no tool `other`",
        ],
    );
    check(
        "require_approval_for_tools = ['a']\nroles.r.denied_tools = ['b']\nlabels.l = { from_tools = ['c'], deny_effects = ['state_change'] }\nbudgets.tools.d.max_runtime_ms = 1\ntools.e.model = []",
        &[
            "policy, `require_approval_for_tools`: there is no tool `a`",
            "policy, `roles.r.denied_tools`: there is no tool `b`",
            "policy, `labels.l.from_tools`: there is no tool `c`",
            "policy, `budgets.tools.d`: there is no tool `d`",
            "policy, `tools.e`: there is no tool `e`",
        ],
    );
}

/// The linker drops a crate that the program never uses, so its tools are missing.
#[test]
fn a_namespace_without_a_tool_is_named_once() {
    let hint = "; no tool of the namespace `stock` is linked: write `use my_tools as _;` for the crate that has them";
    check(
        "allowed_tools = ['stock__search', 'stock__count', 'core__nothing_alike']",
        &[
            "policy, `allowed_tools`: there is no tool `core__nothing_alike`",
            &format!("policy, `allowed_tools`: there is no tool `stock__count`{hint}"),
            "policy, `allowed_tools`: there is no tool `stock__search`",
        ],
    );
}

#[test]
fn a_name_is_what_it_looks_like() {
    let grant = "denied_tools = ['core__add']";
    check(&format!("[roles.\"a b\"]\n{grant}\n[principals.'Zo\u{eb}']\n{grant}"), &[]);
    for (table, kind) in [
        ("roles.''", "roles"),
        ("roles.'reader '", "roles"),
        ("roles.\"rea\\u200bder\"", "roles"),
        ("principals.\"ada\\u0000\"", "principals"),
        ("attributes.' '.x", "attributes"),
        ("attributes.x.\"y\\u202e\"", "attributes"),
        ("tenants.' acme'", "tenants"),
        ("tenants.acme.roles.\"\\u3164\"", "roles"),
    ] {
        let known = [spec("core__add", ToolEffect::ReadOnly)];
        let problems = ToolPolicy::from_toml(&format!("[{table}]\n{grant}")).unwrap().check(&known, []);
        let said: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(said.len() == 1 && said[0].starts_with(&format!("policy, `{kind}`: ")), "{table}: {said:?}");
    }
    check(
        "approvals.tools.mail__send.roles = ['', 'manager']",
        &[
            "policy, `approvals`: \"\" is empty, begins or ends with a space, or has invisible characters; write it as the application does",
        ],
    );
}

#[test]
fn a_policy_does_not_lower_the_effect_of_an_authored_tool() {
    check("tools.mail__send.effect = 'external_side_effect'\ntools.mcp__x__get.effect = 'read_only'", &[]);
    check(
        "tools.mail__send.effect = 'read_only'",
        &[
            "policy, `tools.mail__send.effect`: `read_only` is less than the tool declares; write `state_change` or more, or change the tool",
        ],
    );
    let pin = "0".repeat(64);
    check(&format!("tools.mcp__x__get.pin = '{pin}'"), &[]);
    check(
        &format!("tools.mail__send.pin = '{pin}'"),
        &["policy, `tools.mail__send.pin`: an authored tool is part of the program; pin it with `tools.lock`"],
    );
}

#[test]
fn a_name_that_nothing_has_decides_nothing() {
    check(
        "tags.moeny = 'deny'\nlabels.untrusted = { from_tags = ['web', 'wbe'], deny_effects = ['state_change'] }\nrepair.allowed = ['fenced_jsn', 'fenced_json']",
        &[
            "policy, `tags.moeny`: there is no tag `moeny`; did you mean `money`?",
            "policy, `labels.untrusted.from_tags`: there is no tag `wbe`; did you mean `web`?",
            "policy, `repair.allowed`: there is no repairer `fenced_jsn`; did you mean `fenced_json`?",
        ],
    );
    check(
        "labels.untrustd.deny_effects = ['state_change']\ncallers.grahp.denied_tools = ['core__add']",
        &[
            "policy, `labels.untrustd`: no rule puts this label on a run; write `from_tools`, `from_tags`, or `from_run = true` for a label that the application sets; did you mean `untrusted`?",
            "policy, `callers.grahp`: unknown caller; write `direct`, `graph` or `graph:NAME`; did you mean `graph`?",
        ],
    );
    check(
        "labels.vip = { from_run = true, deny_effects = ['state_change'] }\ncallers.'graph:report'.allowed_tools = []",
        &["policy, `callers.graph:report`: there is no graph `report`"],
    );
    let unread = "the label decides nothing; write `deny_effects` or `require_approval_for_effects`";
    check(
        "labels.vip.from_run = true\nlabels.untrusted.deny_effects = []",
        &[&format!("policy, `labels.untrusted`: {unread}"), &format!("policy, `labels.vip`: {unread}")],
    );
}

#[test]
fn a_table_that_decides_nothing_is_refused() {
    let idle = |path: &str| {
        let graphs = if path.starts_with("callers") { "" } else { ", `allowed_graphs`" };
        format!("policy, `{path}`: this decides nothing; write `allowed_tools`{graphs} or `denied_tools`")
    };
    for path in ["roles.r", "principals.p", "attributes.a.v", "tenants.t", "tenants.t.roles.r", "callers.graph"] {
        check(&format!("[{path}]"), &[&idle(path)]);
        check(&format!("[{path}]\ndenied_tools = []"), &[&idle(path)]);
        check(&format!("[{path}]\ndenied_tools = ['core__add']"), &[]);
        check(
            &format!("[{path}]\ndenied_tools = ['core__ad']"),
            &[&format!("policy, `{path}.denied_tools`: there is no tool `core__ad`; did you mean `core__add`?")],
        );
    }
    check(
        "attributes.a = {}",
        &["policy, `attributes.a`: this decides nothing; write a table for a value, `attributes.a.VALUE`"],
    );
    check(
        "callers.graph.allowed_tools = ['core__add']\nroles.r.denied_tools = ['core__add']",
        &[
            "policy, `callers.graph.allowed_tools`: no run is allowed `core__add`, and a caller grants no tools; add it to `allowed_tools`, or to those of a role, a principal, an attribute or a tenant",
        ],
    );
    check("callers.graph.allowed_tools = ['core__add']\ntenants.t.roles.r.allowed_tools = ['core__add']", &[]);
}

#[test]
fn pointers_lead_somewhere() {
    let policy =
        |pointer: &str| format!("[[tools.mail__send.arguments]]\npointer = '{pointer}'\nequals = 1\nthen = 'deny'");
    for pointer in ["/to/0/mail", "/to/0/mail/any", "/a~1b"] {
        check(&policy(pointer), &[]);
    }
    check(
        &policy("/too"),
        &["policy, `tools.mail__send.arguments[0].pointer`: the arguments have nothing at `/too`; did you mean `/to`?"],
    );
    check(
        &policy("/to/0/mai"),
        &[
            "policy, `tools.mail__send.arguments[0].pointer`: the arguments have nothing at `/to/0/mai`; did you mean `/to/0/mail`?",
        ],
    );
    for (index, none) in [("", "/to/"), ("01", "/to/01")] {
        let place = "policy, `tools.mail__send.arguments[0].pointer`: the arguments have nothing at";
        check(&policy(none), &[&format!("{place} `/to/{index}`")]);
    }
    let error = ToolPolicy::from_toml(&policy("/a~2b")).unwrap_err().to_string();
    assert!(error.contains("`~` is written as `~0`"), "{error}");
    check(
        &policy("/to/mail"),
        &["policy, `tools.mail__send.arguments[0].pointer`: the arguments have nothing at `/to/mail`"],
    );
}

#[test]
fn conditions_compare_with_the_type_of_the_argument() {
    let schema = Schema::from_text(
        r#"{"type":"object","properties":{"to":{"type":"array","items":{"type":"string"}},"count":{"type":["integer","null"]},"open":{},"price":{"type":["string","number"],"pattern":"^-?\\d+(\\.\\d+)?$"},"cost":{"type":"string","pattern":"^\\d+\\.\\d{2}$"}}}"#,
    );
    let known = [ToolSpec { input_schema: schema, ..spec("mail__send", ToolEffect::StateChange) }];
    let problems = |condition: &str| -> Vec<String> {
        let policy = format!("[[tools.mail__send.arguments]]\n{condition}\nthen = 'deny'");
        let policy = ToolPolicy::from_toml(&policy).unwrap();
        policy.check(&known, []).iter().map(ToString::to_string).collect()
    };
    for fitting in [
        "pointer = '/to'\nprefix = 'a'",
        "pointer = '/to/0'\none_of = ['a', 'b']",
        "pointer = '/count'\nat_most = 3",
        "pointer = '/count'\nequals = 3",
        "pointer = '/price'\nat_most = 20",
        "pointer = '/cost'\nat_most = '19.99'",
        "pointer = '/open'\none_of = ['a', 3, true]",
    ] {
        assert_eq!(problems(fitting), [""; 0], "{fitting}");
    }
    for (misfit, key, is) in [
        ("pointer = '/count'\nprefix = 'a'", "prefix", "integer"),
        ("pointer = '/to'\nat_most = 3", "at_most", "string"),
        ("pointer = '/count'\nequals = '3'", "equals", "integer"),
        ("pointer = '/to/0'\none_of = ['a', 3]", "one_of", "string"),
    ] {
        let message = format!(
            "policy, `tools.mail__send.arguments[0]`: `{key}` compares with another type than the argument, which is `{is}`"
        );
        assert_eq!(problems(misfit), [message], "{misfit}");
    }
}

#[test]
fn conditions_can_be_met_by_some_value_of_the_argument() {
    let schema = Schema::from_text(
        r##"{"type":"object","$defs":{"unit":{"type":"string","enum":["celsius","kelvin"]}},"properties":{"unit":{"$ref":"#/$defs/unit"},"units":{"type":"array","items":{"$ref":"#/$defs/unit"}},"state":{"type":["string","null"],"enum":["open","closed",null]},"code":{"type":"string","pattern":"^[a-z]{2}$"},"count":{"type":"integer","minimum":1,"maximum":9},"share":{"type":"number","exclusiveMinimum":0},"any":{"anyOf":[{"type":"boolean"},{"const":"auto"}]}}}"##,
    );
    let known = [ToolSpec { input_schema: schema, ..spec("lab__set", ToolEffect::StateChange) }];
    let problems = |condition: &str| -> Vec<String> {
        let policy = format!("[[tools.lab__set.arguments]]\n{condition}\nthen = 'deny'");
        let policy = ToolPolicy::from_toml(&policy).unwrap();
        policy.check(&known, []).iter().map(ToString::to_string).collect()
    };
    for fitting in [
        "pointer = '/unit'\nequals = 'kelvin'",
        "pointer = '/units'\none_of = ['kelvin', 'celsius']",
        "pointer = '/state'\nprefix = 'clo'",
        "pointer = '/code'\nequals = 'de'",
        "pointer = '/count'\nat_most = 1",
        "pointer = '/count'\nequals = 9.0",
        "pointer = '/share'\nat_most = 0.5",
        "pointer = '/any'\nequals = true",
    ] {
        assert_eq!(problems(fitting), [""; 0], "{fitting}");
    }
    let units =
        "names a value that the argument can never have; write one of `celsius`, `kelvin`; did you mean `kelvin`?";
    for (misfit, says) in [
        ("pointer = '/unit'\nequals = 'kelvn'", format!("`equals` {units}")),
        ("pointer = '/units'\none_of = ['celsius', 'kelvn']", format!("`one_of` {units}")),
        (
            "pointer = '/state'\nequals = 'done'",
            "`equals` names a value that the argument can never have; write one of `open`, `closed`".to_owned(),
        ),
        (
            "pointer = '/state'\nprefix = 'x'",
            "`prefix` names a value that the argument can never have; write one of `open`, `closed`".to_owned(),
        ),
        (
            "pointer = '/code'\nequals = 'DE'",
            "`equals` names a value that the argument can never have; see its schema".to_owned(),
        ),
        (
            "pointer = '/count'\nequals = 10",
            "`equals` names a value that the argument can never have; see its schema".to_owned(),
        ),
        (
            "pointer = '/count'\nat_most = 0",
            "`at_most` is below every value of the argument, which is at least 1".to_owned(),
        ),
        (
            "pointer = '/share'\nat_most = 0",
            "`at_most` is below every value of the argument, which is more than 0".to_owned(),
        ),
        (
            "pointer = '/any'\nequals = 'manual'",
            "`equals` names a value that the argument can never have; see its schema".to_owned(),
        ),
    ] {
        assert_eq!(problems(misfit), [format!("policy, `tools.lab__set.arguments[0]`: {says}")], "{misfit}");
    }
    let error = ToolPolicy::from_toml("[[tools.lab__set.arguments]]\npointer = '/unit'\none_of = []\nthen = 'deny'");
    assert!(error.unwrap_err().to_string().contains("`one_of` names at least one value"));
}

#[test]
fn a_call_fits_into_each_budget() {
    check("budgets.tenant = { window = '1h', bytes = 32768 }\nbudgets.run.bytes = 0", &[]);
    check(
        "budgets.tenant = { window = '1h', bytes = 32767 }\nbudgets.run.bytes = 1",
        &[
            "policy, `budgets.run.bytes`: a call reserves the size limit of its result, 32768 bytes; write that or \
             more, or a lower `budgets.default.max_result_bytes`",
            "policy, `budgets.tenant.bytes`: a call reserves the size limit of its result, 32768 bytes; write that \
             or more, or a lower `budgets.default.max_result_bytes`",
        ],
    );
    check("budgets.default.max_result_bytes = 100\nbudgets.principal = { window = '1h', bytes = 100 }", &[]);
    let time = "budgets.principal = { window = '1h', time_ms = 5000 }";
    check(&format!("{time}\nbudgets.default.max_runtime_ms = 5000"), &[]);
    check(
        time,
        &["policy, `budgets.principal.time_ms`: a call without a time limit would reserve all of the time; write \
             `budgets.default.max_runtime_ms`"],
    );
    check(
        &format!("{time}\nbudgets.default.max_runtime_ms = 5001"),
        &["policy, `budgets.principal.time_ms`: a call reserves its time limit, 5001 ms; write that or \
             more, or a lower `budgets.default.max_runtime_ms`"],
    );
    check(
        &format!("{time}\nbudgets.default.max_runtime_ms = 5\nbudgets.tools.core__add.max_runtime_ms = 5001"),
        &["policy, `budgets.principal.time_ms`: a call reserves its time limit, 5001 ms; write that or \
             more, or a lower `budgets.tools.core__add.max_runtime_ms`"],
    );
    check("budgets.run.time_ms = 1", &[]);
}

/// A table of `approvals.tools` names deciders; only another rule makes a call wait for them.
#[test]
fn approvals_of_calls_that_need_none_are_refused() {
    let needless = "policy, `approvals.tools.core__add`: this decides nothing: no rule requires an approval of \
        `core__add`, which is `read_only`; add it to `require_approval_for_tools`, or remove the table";
    let table = "allowed_tools = ['core__add', 'mail__send']\n[approvals.tools.core__add]\nrequired = 2\n";
    check(table, &[needless]);
    for asks in [
        "require_approval_for_tools = ['core__add']",
        "require_approval_for_effects = ['read_only']",
        "tags.money = 'require_approval'",
        "labels.untrusted = { from_tags = ['web'], require_approval_for_effects = ['read_only'] }",
        "tools.core__add.effect = 'state_change'",
        "repair.allowed = ['fenced_json']",
    ] {
        check(&format!("{asks}\n{table}"), &[]);
    }
    // A call with effects can need an approval after one of unknown outcome. A server can still list its tool.
    check("allowed_tools = ['mail__send']\n[approvals.tools.mail__send]\nrequired = 2", &[]);
    check("allowed_tools = ['mcp__y__get']\n[approvals.tools.mcp__y__get]\nrequired = 2", &[]);

    check("roles.r.allowed_tools = ['core__add']\nrequire_approval_for_tools = ['core__add']", &[]);
    check(
        "allowed_tools = ['mcp__y__get']\nrequire_approval_for_tools = ['mcp__y__get']\nservers.y.enabled = false",
        &[],
    );
    let says = |name: &str| {
        format!(
            "policy, `require_approval_for_tools`: no run is allowed `{name}`, so no call of it needs an approval; add \
             it to `allowed_tools`, or to those of a role, a principal, an attribute or a tenant"
        )
    };
    check("require_approval_for_tools = ['core__add', 'mcp__y__get']", &[&says("core__add"), &says("mcp__y__get")]);
}
