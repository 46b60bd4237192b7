//! Rules for all tools of a server.

use std::time::Duration;

use crate::policy::*;
use crate::tool::ToolEffect::{ExternalSideEffect, ReadOnly, StateChange};

const POLICY: &str = r#"
allowed_tools = ["mcp__a__get", "mcp__a__put", "mcp__b__get", "t__own"]
[budgets.default]
max_result_bytes = 1000
[budgets.tools.mcp__a__put]
max_runtime_ms = 5
[tools.mcp__a__get]
effect = "read_only"
[servers.a]
effect = "state_change"
max_runtime_ms = 70
max_argument_bytes = 80
"#;

#[test]
fn a_rule_of_a_server_holds_where_none_of_a_tool_does() {
    let policy = ToolPolicy::from_toml(POLICY).unwrap();
    let effect = |name: &str| policy.effect_of(name, ExternalSideEffect);
    assert_eq!((effect("mcp__a__get"), effect("mcp__a__put")), (ReadOnly, StateChange));
    assert_eq!((effect("mcp__b__get"), effect("t__own")), (ExternalSideEffect, ExternalSideEffect));
    let limits = |name: &str| {
        let limits = policy.terms_of(name, ReadOnly).limits;
        (limits.runtime.map(|time| time.as_millis()), limits.result_bytes, limits.argument_bytes)
    };
    assert_eq!(limits("mcp__a__get"), (Some(Duration::from_millis(70).as_millis()), 1000, 80));
    assert_eq!(limits("mcp__a__put"), (Some(5), 1000, 80));
    assert_eq!(limits("mcp__b__get"), (None, 1000, 8192));
    assert_eq!(limits("t__own"), (None, 1000, 8192));
}

#[test]
fn a_server_is_switched_off() {
    let policy = ToolPolicy::from_toml(&format!("{POLICY}enabled = false")).unwrap();
    assert!(!policy.mentions("mcp__a__get") && !policy.mentions("mcp__a__put"));
    assert!(policy.mentions("mcp__b__get") && policy.mentions("t__own"));
}

#[test]
fn a_rule_that_decides_nothing_is_refused() {
    let problems = |text: &str| {
        let policy = ToolPolicy::from_toml(text).unwrap();
        let problems = policy.check([], []).into_iter();
        problems
            .map(|problem| format!("{}: {} {:?}", problem.path(), problem.message(), problem.nearest()))
            .collect::<Vec<_>>()
    };
    let named = "allowed_tools = ['mcp__wiki__get']\n";
    assert_eq!(problems(&format!("{named}[servers.wiki]\nenabled = false")), Vec::<String>::new());
    for (rule, expected) in [
        ("[servers.wiki]", "servers.wiki: this decides nothing; write `enabled = false`, `effect` or a limit None"),
        (
            "[servers.wikis]\nenabled = false",
            "servers.wikis: this decides nothing: the policy names no tool of the server, `mcp__wikis__..` Some(\"wiki\")",
        ),
    ] {
        assert_eq!(problems(&format!("{named}{rule}")), [expected]);
    }
    let error = ToolPolicy::from_toml("[servers.wiki]\nmax_runtime = 1").unwrap_err().to_string();
    assert!(error.contains("did you mean `max_runtime_ms`?"), "{error}");
}
