//! Decisions, each with the policy that made it.

use std::sync::Arc;

use super::*;
use crate::call::Caller;
use crate::policy::{PolicyContext, PolicyResource, RunPolicy, Standing};

const LETTER: &str = r#"{"to":["ada@example.org"],"kind":"letter","copies":1,"amount":9.99,"urgent":null}"#;

fn words(words: &[&str]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(*word)).collect()
}

#[track_caller]
fn decide(cedar: &str, context: &PolicyContext<'_>, tool: &str, arguments: Option<&str>) -> String {
    let policy = policy(cedar).unwrap_or_else(|error| panic!("{error}"));
    let specs = specs();
    let spec = specs.iter().find(|spec| spec.name.as_str() == tool).unwrap();
    let decision = match arguments {
        Some(arguments) => policy.decide(context, &PolicyResource::of(spec), arguments),
        None => policy.admit(context, &PolicyResource::of(spec)),
    };
    format!("{} {}", decision.verdict, decision.rule)
}

/// The decision on the letter, with a `permit` for everything.
#[track_caller]
fn mail(forbid: &str, context: &PolicyContext<'_>) -> String {
    let cedar = format!("{PERMIT}\n@id(\"rule\") forbid(principal, action, resource) {forbid};");
    decide(&cedar, context, "mail__send", Some(LETTER))
}

const ALLOWED: &str = "allow allowed_tools";
const DENIED: &str = "deny cedar:rule";

#[test]
fn cedar_narrows_a_policy_and_allows_nothing_more() {
    let none = PolicyContext::default();
    assert_eq!(decide(PERMIT, &none, "mail__send", Some(LETTER)), ALLOWED);
    let only = "permit(principal, action in Action::\"read_only\", resource);";
    assert_eq!(decide(only, &none, "docs__search", Some("{}")), ALLOWED);
    assert_eq!(decide(only, &none, "mail__send", Some(LETTER)), "deny cedar");
    assert_eq!(decide(only, &none, "mail__send", None), "deny cedar");
    // The policy's `effect` for the tool (`read_only`) replaces the effect in its definition (`external_side_effect`).
    assert_eq!(decide(only, &none, "mcp__wiki__search", Some("{}")), ALLOWED);
    let permits = policy(PERMIT).unwrap();
    let other = spec("mail__other", ToolEffect::ReadOnly);
    assert_eq!(permits.admit(&none, &PolicyResource::of(&other)).rule, "allowed_tools");
    assert_eq!(permits.admit(&none, &PolicyResource::of(&other)).verdict, crate::call::Verdict::Deny);
}

#[test]
fn entities_and_context_have_the_values_of_the_run() {
    let none = PolicyContext::default();
    let (clerk, labels) = (words(&["clerk"]), words(&["untrusted"]));
    let attributes = [("department".into(), "sales".into()), ("department".into(), "support".into())];
    let ada = PolicyContext { principal: Some("ada"), tenant: Some("acme"), ..none };
    let graph = Caller::Graph { run: "r".into(), name: "report".into(), version: "1".into() };
    for (when, context) in [
        ("when { principal == Principal::\"ada\" }", ada),
        ("when { principal in Tenant::\"acme\" }", ada),
        ("when { principal in Role::\"clerk\" }", PolicyContext { roles: &clerk, ..none }),
        ("when { principal.department.contains(\"support\") }", PolicyContext { attributes: &attributes, ..none }),
        ("unless { principal.department.isEmpty() }", PolicyContext { attributes: &attributes, ..none }),
        ("when { context.labels.contains(\"untrusted\") }", PolicyContext { labels: &labels, ..none }),
        ("when { context.caller == \"graph\" }", PolicyContext { caller: &graph, ..none }),
        ("when { context has graph && context.graph == \"report\" }", PolicyContext { caller: &graph, ..none }),
    ] {
        assert_eq!(mail(when, &context), DENIED, "{when}");
        assert_eq!(mail(when, &none), ALLOWED, "{when}");
    }
    for when in [
        "when { resource == Tool::\"mail__send\" }",
        "when { action == Action::\"mail__send\" }",
        "when { action in Action::\"external_side_effect\" }",
        "when { action in Action::\"call\" }",
        "when { resource.effect == \"external_side_effect\" }",
        "when { resource.tags.contains(\"mail\") }",
        "unless { resource.discovered }",
        "when { principal == Principal::\"\" }",
    ] {
        assert_eq!(mail(when, &none), DENIED, "{when}");
    }
    let wiki = "permit(principal, action, resource) when { resource has server && resource.server == \"wiki\" && resource.discovered };";
    assert_eq!(decide(wiki, &none, "mcp__wiki__search", Some("{}")), ALLOWED);
    assert_eq!(decide(wiki, &none, "docs__search", Some("{}")), "deny cedar");
}

#[test]
fn arguments_are_typed_by_their_schema() {
    let none = PolicyContext::default();
    for (when, with) in [
        ("context.arguments.to.contains(\"eve@example.net\")", r#""to":["ada@example.org","eve@example.net"]"#),
        ("context.arguments.kind == \"bill\"", r#""kind":"bill""#),
        ("context.arguments.copies > 10", r#""copies":11"#),
        ("context.arguments.amount.greaterThan(decimal(\"100.0\"))", r#""amount":100.01"#),
        // An integer counts as a decimal too.
        ("context.arguments.amount.greaterThan(decimal(\"100.0\"))", r#""amount":101"#),
        ("context.arguments has urgent && context.arguments.urgent", r#""urgent":true"#),
        ("context.arguments has place.city && context.arguments.place.city == \"Rome\"", r#""place":{"city":"Rome"}"#),
    ] {
        let rule = format!("when {{ {when} }}");
        assert_eq!(mail(&rule, &none), ALLOWED, "{when}");
        let mut arguments: serde_json::Value = serde_json::from_str(LETTER).unwrap();
        let with: serde_json::Value = serde_json::from_str(&format!("{{{with}}}")).unwrap();
        arguments.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        let cedar =
            format!("{PERMIT}\n@id(\"rule\") forbid(principal, action == Action::\"mail__send\", resource) {rule};");
        assert_eq!(decide(&cedar, &none, "mail__send", Some(&arguments.to_string())), DENIED, "{when}");
        assert!(policy(&cedar).unwrap().check(&specs(), []).is_empty(), "{when}");
        // Before hydration, and for other tools, a rule about these arguments does not apply.
        assert_eq!(decide(&cedar, &none, "mail__send", None), ALLOWED, "{when}");
        assert_eq!(decide(&cedar, &none, "docs__search", Some("{}")), ALLOWED, "{when}");
    }
}

#[test]
fn before_arguments_are_read_a_permit_counts_without_its_conditions_on_them() {
    let none = PolicyContext::default();
    let cedar = "permit(principal, action == Action::\"mail__send\", resource)\n\
                 when { context.arguments.copies < 5 } unless { context.labels.contains(\"untrusted\") };";
    assert_eq!(decide(cedar, &none, "mail__send", None), ALLOWED);
    assert_eq!(decide(cedar, &none, "mail__send", Some(LETTER)), ALLOWED);
    assert_eq!(decide(cedar, &none, "mail__send", Some(&LETTER.replace("\"copies\":1", "\"copies\":5"))), "deny cedar");
    let labels = words(&["untrusted"]);
    assert_eq!(decide(cedar, &PolicyContext { labels: &labels, ..none }, "mail__send", None), "deny cedar");
    assert_eq!(decide(cedar, &none, "docs__search", None), "deny cedar");
}

#[test]
fn a_forbid_can_ask_for_an_approval() {
    let none = PolicyContext::default();
    let ask = |permit: &str, and: &str| {
        let cedar = format!(
            "{permit} @id(\"ask\") @approval(\"required\") forbid(principal, action, resource) \
             when {{ context.arguments.copies == 1 }}; {and}"
        );
        [None, Some(LETTER)].map(|arguments| decide(&cedar, &none, "mail__send", arguments))
    };
    assert_eq!(ask(PERMIT, ""), [ALLOWED, "require_approval cedar:ask"]);
    // A denial wins, and an approval does not replace a missing `permit`.
    let never = "@id(\"never\") forbid(principal, action, resource == Tool::\"mail__send\");";
    assert_eq!(ask(PERMIT, never), ["deny cedar:never"; 2]);
    let other = "permit(principal, action == Action::\"docs__search\", resource);";
    assert_eq!(ask(other, ""), ["deny cedar"; 2]);
}

#[test]
fn a_restored_run_is_held_to_the_policies_that_it_had() {
    let none = PolicyContext::default();
    let strict =
        policy(&format!("{PERMIT} @id(\"no-mail\") forbid(principal, action == Action::\"mail__send\", resource);"));
    let saved = serde_json::to_string(&RunPolicy::new(strict.unwrap()).policies()).unwrap();
    let run = RunPolicy::restored(policy(PERMIT).unwrap(), serde_json::from_str(&saved).unwrap(), Vec::new()).unwrap();
    let [mail, docs, _] = specs();
    assert_eq!(run.admit(&none, &PolicyResource::of(&mail)).rule, "cedar:no-mail");
    assert_eq!(run.admit(&none, &PolicyResource::of(&docs)).rule, "allowed_tools");
    // The principal's earlier roles count, too.
    let guests = format!("{PERMIT} @id(\"guests\") forbid(principal in Role::\"guest\", action, resource);");
    let guest = Standing { roles: words(&["guest"]), attributes: Vec::new() };
    let before = RunPolicy::new(policy(&guests).unwrap()).policies();
    let run = RunPolicy::restored(policy(&guests).unwrap(), before, vec![guest]).unwrap();
    assert_eq!(run.admit(&none, &PolicyResource::of(&docs)).rule, "cedar:guests");
}

#[test]
fn evaluation_errors_deny() {
    let none = PolicyContext::default();
    // The arithmetic overflows.
    let overflow = "when { context.arguments.copies * 9223372036854775807 > 0 }";
    let cedar = format!("{PERMIT} @id(\"rule\") forbid(principal, action, resource) {overflow};");
    let many = LETTER.replace("\"copies\":1", "\"copies\":2");
    assert_eq!(decide(&cedar, &none, "mail__send", Some(&many)), "deny internal_error.cedar:rule");
    assert_eq!(
        decide(&cedar.replace("@id", "@approval(\"required\") @id"), &none, "mail__send", Some(&many)),
        "deny internal_error.cedar:rule"
    );
    // A `permit` whose evaluation fails is not skipped.
    let permit = format!("{PERMIT} @id(\"rule\") permit(principal, action, resource) {overflow};");
    assert_eq!(decide(&permit, &none, "mail__send", Some(&many)), "deny internal_error.cedar:rule");
    // A missing attribute or argument is an error, not a value.
    assert_eq!(mail("when { resource.owner == \"ada\" }", &none), "deny internal_error.cedar:rule");
    assert_eq!(mail("when { context.arguments.choice == \"a\" }", &none), "deny internal_error.cedar:rule");
    let cedar =
        format!("{PERMIT} @id(\"rule\") forbid(principal, action, resource) when {{ context.arguments.copies > 1 }};");
    assert_eq!(decide(&cedar, &none, "docs__search", Some("{}")), "deny internal_error.cedar:rule");
    let unknown = PolicyResource::new("mail__send", ToolEffect::ReadOnly);
    assert_eq!(policy(&cedar).unwrap().decide(&none, &unknown, LETTER).rule, "internal_error.cedar:rule");
    // A number that Cedar cannot hold is not rounded. It counts only if a policy reads it.
    let over_100 = "when { context.arguments.amount.greaterThan(decimal(\"100.0\")) }";
    let cedar = format!("{PERMIT} @id(\"rule\") forbid(principal, action, resource) {over_100};");
    for amount in ["100.00001", "1e300", "9223372036854775808", "922337203685478"] {
        let arguments = LETTER.replace("9.99", amount);
        let decision = decide(&cedar, &none, "mail__send", Some(&arguments));
        assert_eq!(decision, "deny internal_error.cedar", "{amount}");
        assert_eq!(decide(PERMIT, &none, "mail__send", Some(&arguments)), ALLOWED, "{amount}");
    }
    assert_eq!(decide(&cedar, &none, "mail__send", Some("{]")), "deny internal_error.arguments_unreadable");
}

/// A policy with two Cedar policies that require an approval: `large`, for the actions in `scope`, requires two; `any`
/// requires one. `deciders` are tables of `approvals.tools`.
fn policy_with_two_approvals(scope: &str, deciders: &serde_json::Value) -> ToolPolicy {
    let asks = |id: &str, scope: &str| {
        format!("@id(\"{id}\") @approval(\"required\") forbid(principal, action{scope}, resource);")
    };
    let written = serde_json::json!({
        "allowed_tools": ["mail__send", "docs__search"],
        "approvals": { "rules": { "cedar:large": { "required": 2 } }, "tools": deciders },
        "cedar": { "policies": format!("{PERMIT}\n{}\n{}", asks("large", scope), asks("any", "")) },
    });
    ToolPolicy::from_json(&written.to_string()).unwrap_or_else(|error| panic!("{error}"))
}

/// Each policy that requires an approval can set its own number, so an explanation names all of them.
#[test]
fn every_policy_that_asks_is_named() {
    let (policy, [mail, ..]) = (policy_with_two_approvals("", &serde_json::json!({})), specs());
    for arguments in [None, Some(LETTER)] {
        let (decision, rules) = policy.explain(&PolicyContext::default(), &PolicyResource::of(&mail), arguments);
        assert_eq!(decision.rule, "cedar:any");
        let rules: Vec<_> = rules.iter().map(|rule| &*rule.rule).collect();
        assert_eq!(rules, ["cedar:any", "cedar:large"]);
        assert_eq!(policy.required_approvals("mail__send", ToolEffect::ExternalSideEffect, rules), 2);
    }
    let run = RunPolicy::new(policy);
    assert_eq!(run.required(&PolicyContext::default(), &PolicyResource::of(&mail), LETTER), 2);
}

/// `principals` must name at least as many people as any Cedar policy that can apply to the tool requires.
#[test]
fn a_number_is_compared_where_the_policy_asks() {
    let specs = specs();
    for (scope, tool, has_enough_principals) in [
        ("", "mail__send", false),
        (" == Action::\"mail__send\"", "mail__send", false),
        (" == Action::\"mail__send\"", "docs__search", true),
        (" in Action::\"external_side_effect\"", "mail__send", false),
        (" in [Action::\"external_side_effect\"]", "docs__search", true),
        (" in Action::\"call\"", "docs__search", false),
    ] {
        let policy = policy_with_two_approvals(scope, &serde_json::json!({ tool: { "principals": ["grace"] } }));
        let problems = policy.check(&specs, []);
        let is_reported = problems.iter().any(|problem| problem.message().contains("`principals` names 1"));
        assert_eq!(is_reported, !has_enough_principals, "{scope} {tool}: {problems:?}");
    }
}
