//! Decisions on callers and tools, each with its rule.

use std::sync::Arc;

use serde_json::json;

use crate::call::{Caller, Verdict};
use crate::policy::*;
use crate::tool::ToolEffect::{self, ExternalSideEffect, ReadOnly, StateChange};
use crate::tool::{Hash, NoSchemaMode};

const POLICY: &str = r#"
allowed_tools = ["t__read", "t__write", "t__send", "t__gated", "t__raised", "mcp__x__get", "mcp__x__put", "t__wipe"]
require_approval_for_effects = ["external_side_effect"]
require_approval_for_tools = ["t__gated"]

[roles.admin]
allowed_tools = ["t__admin"]
[roles.intern]
denied_tools = ["t__write"]
[principals.ada]
allowed_tools = ["t__ada"]
[tenants.acme]
denied_tools = ["t__ada"]

[tenants.acme.roles.admin]
allowed_tools = ["t__keys"]
[tenants.acme.roles.guest]
denied_tools = ["t__read"]
[attributes.clearance.secret]
allowed_tools = ["t__secret"]
[attributes.status.suspended]
denied_tools = ["t__read", "t__write"]

[callers.graph]
denied_tools = ["t__write"]
[callers."graph:report"]
allowed_tools = ["t__read", "t__admin", "t__write"]
[callers."graph:none"]
allowed_tools = []

[tags]
destructive = "deny"
slow = "require_approval"

[labels.untrusted]
from_tags = ["web"]
require_approval_for_effects = ["state_change"]
deny_effects = ["external_side_effect"]

[tools.t__raised]
effect = "external_side_effect"
[tools.mcp__x__get]
effect = "read_only"
pin = "0101010101010101010101010101010101010101010101010101010101010101"
[tools.t__send]
arguments = [
  { pointer = "/to", one_of = ["a", "b"], otherwise = "deny" },
  { pointer = "/amount", at_most = 10, otherwise = "require_approval" },
]
"#;

#[derive(Clone)]
struct Case<'a> {
    context: PolicyContext<'a>,
    tool: PolicyResource<'a>,
    arguments: Option<serde_json::Value>,
}

fn call(name: &str, effect: ToolEffect) -> Case<'_> {
    Case { context: PolicyContext::default(), tool: PolicyResource::new(name, effect), arguments: Some(json!({})) }
}

#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "cases are written in place")]
fn check(case: Case<'_>, expected: &str) {
    let policy = ToolPolicy::from_toml(POLICY).unwrap();
    let decision = match &case.arguments {
        Some(arguments) => policy.decide(&case.context, &case.tool, &arguments.to_string()),
        None => policy.admit(&case.context, &case.tool),
    };
    assert_eq!(format!("{} {}", decision.verdict, decision.rule), expected);
}

fn words(words: &[&str]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(*word)).collect()
}

#[test]
fn what_is_not_named_is_denied() {
    check(call("t__read", ReadOnly), "allow allowed_tools");
    check(call("t__reads", ReadOnly), "deny allowed_tools");
    check(call("T__READ", ReadOnly), "deny allowed_tools");
    check(call("", ReadOnly), "deny allowed_tools");
    let decision = ToolPolicy::deny_all().admit(&PolicyContext::default(), &PolicyResource::new("t__read", ReadOnly));
    assert_eq!(decision.verdict, Verdict::Deny);
}

#[test]
fn a_run_narrows_its_tools() {
    let tools = RunTools::from(["t__read".into(), "t__reads".into()]);
    let narrowed = |name| {
        let mut case = call(name, ReadOnly);
        case.context.tools = Some(&tools);
        case
    };
    check(narrowed("t__read"), "allow allowed_tools");
    check(narrowed("t__write"), "deny run.tools");
    check(narrowed("t__reads"), "deny allowed_tools");
}

#[test]
fn effects_and_tools_wait_for_a_person() {
    check(call("t__write", StateChange), "allow allowed_tools");
    check(call("t__write", ExternalSideEffect), "require_approval require_approval_for_effects");
    check(call("t__gated", ReadOnly), "require_approval require_approval_for_tools");
    check(call("t__raised", ReadOnly), "require_approval require_approval_for_effects");
    let got = |hash: u8| {
        let mut case = call("mcp__x__get", ExternalSideEffect);
        case.tool.pin = Some(Hash([hash; 32]));
        case
    };
    check(got(1), "allow allowed_tools");
    check(got(2), "deny tools.mcp__x__get.pin");
    check(call("mcp__x__get", ExternalSideEffect), "deny tools.mcp__x__get.pin");
    check(call("mcp__x__put", ExternalSideEffect), "deny tools.mcp__x__put.pin");
}

#[test]
fn parties_add_and_take_away() {
    let (admin, intern) = (words(&["admin"]), words(&["admin", "intern"]));
    let by = |name, context| Case { context, ..call(name, ReadOnly) };
    let none = PolicyContext::default();
    check(by("t__admin", none), "deny allowed_tools");
    check(by("t__admin", PolicyContext { roles: &admin, ..none }), "allow roles.admin.allowed_tools");
    check(by("t__write", PolicyContext { roles: &admin, ..none }), "allow allowed_tools");
    check(by("t__write", PolicyContext { roles: &intern, ..none }), "deny roles.intern.denied_tools");
    let ada = PolicyContext { principal: Some("ada"), ..none };
    check(by("t__ada", ada), "allow principals.ada.allowed_tools");
    check(by("t__ada", PolicyContext { tenant: Some("acme"), ..ada }), "deny tenants.acme.denied_tools");
    check(by("t__ada", PolicyContext { tenant: Some("ada"), ..none }), "deny allowed_tools");
}

#[test]
fn attributes_and_roles_within_a_tenant_count() {
    let (admin, guest) = (words(&["admin"]), words(&["guest"]));
    let by = |name, context| Case { context, ..call(name, ReadOnly) };
    let none = PolicyContext::default();
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(Arc<str>, Arc<str>)> {
        pairs.iter().map(|(name, value)| (Arc::from(*name), Arc::from(*value))).collect()
    };
    let acme = PolicyContext { tenant: Some("acme"), ..none };
    check(by("t__keys", acme), "deny allowed_tools");
    check(by("t__keys", PolicyContext { roles: &admin, ..none }), "deny allowed_tools");
    check(by("t__keys", PolicyContext { roles: &admin, ..acme }), "allow tenants.acme.roles.admin.allowed_tools");
    check(by("t__read", PolicyContext { roles: &guest, ..none }), "allow allowed_tools");
    check(by("t__read", PolicyContext { roles: &guest, ..acme }), "deny tenants.acme.roles.guest.denied_tools");
    let secret = pairs(&[("clearance", "public"), ("clearance", "secret")]);
    let both = pairs(&[("clearance", "secret"), ("status", "suspended")]);
    let swapped = pairs(&[("secret", "clearance"), ("status", "secret")]);
    let of = |attributes| PolicyContext { attributes, ..none };
    check(by("t__secret", none), "deny allowed_tools");
    check(by("t__secret", of(&secret)), "allow attributes.clearance.secret.allowed_tools");
    check(by("t__secret", of(&swapped)), "deny allowed_tools");
    check(by("t__secret", of(&both)), "allow attributes.clearance.secret.allowed_tools");
    check(by("t__read", of(&both)), "deny attributes.status.suspended.denied_tools");
}

#[test]
fn a_caller_grants_nothing() {
    let graph = |name: &str| Caller::Graph { run: "r".into(), name: name.into(), version: "1".into() };
    let (report, other, none) = (graph("report"), graph("other"), graph("none"));
    let admin = words(&["admin"]);
    let by = |name, caller, roles| {
        let context = PolicyContext { caller, roles, ..PolicyContext::default() };
        Case { context, ..call(name, ReadOnly) }
    };
    // The run must be allowed to use the tools in a caller's list, too.
    check(by("t__admin", &report, &[]), "deny allowed_tools");
    check(by("t__admin", &report, &admin), "allow roles.admin.allowed_tools");
    check(by("t__admin", &other, &admin), "allow roles.admin.allowed_tools");
    // A tool outside the caller's list is refused, and `callers.graph` applies to every graph.
    check(by("t__gated", &report, &[]), "deny callers.graph:report.allowed_tools");
    check(by("t__gated", &other, &[]), "require_approval require_approval_for_tools");
    check(by("t__write", &report, &[]), "deny callers.graph.denied_tools");
    check(by("t__read", &report, &[]), "allow allowed_tools");
    check(by("t__read", &none, &[]), "deny callers.graph:none.allowed_tools");
}

#[test]
fn a_graph_is_a_caller_of_its_own() {
    let graph = |name: &str| Caller::Graph { run: "r".into(), name: name.into(), version: "1".into() };
    let (report, other) = (graph("report"), graph("other"));
    let by = |name, caller| {
        let context = PolicyContext { caller, ..PolicyContext::default() };
        Case { context, ..call(name, ReadOnly) }
    };
    check(by("t__write", &Caller::Direct), "allow allowed_tools");
    check(by("t__write", &other), "deny callers.graph.denied_tools");
    check(by("t__gated", &report), "deny callers.graph:report.allowed_tools");
    check(by("t__gated", &other), "require_approval require_approval_for_tools");
}

#[test]
fn tags_and_labels_count() {
    let (slow, both, labels) = (words(&["slow"]), words(&["slow", "destructive"]), words(&["untrusted"]));
    let tagged =
        |tags| Case { tool: PolicyResource { tags, ..PolicyResource::new("t__wipe", ReadOnly) }, ..call("", ReadOnly) };
    check(tagged(&slow), "require_approval tags.slow");
    check(tagged(&both), "deny tags.destructive");
    let labelled = |effect| {
        let mut case = call("t__wipe", effect);
        case.context.labels = &labels;
        case
    };
    check(labelled(ReadOnly), "allow allowed_tools");
    check(labelled(StateChange), "require_approval labels.untrusted.require_approval_for_effects");
    check(labelled(ExternalSideEffect), "deny labels.untrusted.deny_effects");
}

#[test]
fn results_label_their_run() {
    let policy = ToolPolicy::from_toml(POLICY).unwrap();
    let web = words(&["web"]);
    let labels = |tool: PolicyResource<'_>| policy.labels_of(&tool).map(str::to_owned).collect::<Vec<_>>();
    assert!(labels(PolicyResource::new("t__read", ReadOnly)).is_empty());
    assert_eq!(labels(PolicyResource { tags: &web, ..PolicyResource::new("t__read", ReadOnly) }), ["untrusted"]);
    assert_eq!(labels(PolicyResource { tags: &web, ..PolicyResource::new("mcp__x__get", ReadOnly) }), ["untrusted"]);
}

#[test]
fn arguments_are_looked_at_once_they_are_frozen() {
    let with = |arguments| Case { arguments, ..call("t__send", ReadOnly) };
    check(with(Some(json!({"to": "a", "amount": 1}))), "allow allowed_tools");
    check(with(Some(json!({"to": "a", "amount": 11}))), "require_approval tools.t__send.arguments[1]");
    check(with(Some(json!({"to": "c", "amount": 11}))), "deny tools.t__send.arguments[0]");
    check(with(Some(json!({}))), "deny tools.t__send.arguments[0]");
    check(with(None), "allow allowed_tools");
    let policy = ToolPolicy::from_toml(POLICY).unwrap();
    let unreadable = policy.decide(&PolicyContext::default(), &PolicyResource::new("t__send", ReadOnly), "{");
    assert_eq!(unreadable.rule, "internal_error.arguments_unreadable");
}

#[test]
fn repaired_and_unvalidated_calls_are_trusted_less() {
    let repaired = |name, effect| Case {
        tool: PolicyResource { repaired: true, ..PolicyResource::new(name, effect) },
        ..call("", effect)
    };
    check(repaired("t__read", ReadOnly), "require_approval repair.require_approval");
    check(repaired("t__reads", ReadOnly), "deny allowed_tools");
    let open = |mode, effect| Case {
        tool: PolicyResource { no_schema: Some(mode), ..PolicyResource::new("t__write", effect) },
        ..call("", effect)
    };
    check(open(NoSchemaMode::RejectEffects, ReadOnly), "allow allowed_tools");
    check(open(NoSchemaMode::RejectEffects, StateChange), "deny no_schema_mode.reject_effects");
    check(open(NoSchemaMode::ApproveEach, ReadOnly), "require_approval no_schema_mode.approve_each");
}
