//! Policies of restored runs.

use crate::policy::run_policy::RunPolicy;
use crate::policy::tests::spec;
use crate::policy::*;
use crate::tool::{Hash, ToolEffect, ToolSpec};

fn policy(rules: &str) -> ToolPolicy {
    let pin = "7".repeat(64);
    ToolPolicy::from_toml(&format!(
        "allowed_tools = ['mcp__x__get', 'core__add']\n{rules}\n[tools.mcp__x__get]\npin = '{pin}'"
    ))
    .unwrap()
}

fn with_list(list: &str) -> ToolPolicy {
    let pin = "7".repeat(64);
    ToolPolicy::from_toml(&format!("allowed_tools = ['mcp__x__get']\n[tools.mcp__x__get]\npin = '{pin}'\n{list}"))
        .unwrap()
}

#[test]
fn an_allowlist_of_a_policy_is_not_widened_for_a_restored_run() {
    let get = ToolSpec { pin: Some(Hash([0x77; 32])), ..spec("mcp__x__get", ToolEffect::ReadOnly) };
    for (before, now, allowed) in [
        ("redact = ['a', 'b']", "redact = ['a', 'b']", true),
        ("redact = ['a', 'b']", "redact = ['a']", true),
        ("redact = ['a', 'b']\nmodel = ['c']", "redact = ['a']\nmodel = ['b', 'c']", true),
        ("redact = ['a']\nmodel = ['c']", "redact = ['a', 'c']", false),
        ("redact = ['a']", "redact = ['a', 'b']", false),
        ("redact = ['a']", "redact = ['a']\nmodel = ['b']", false),
        ("redact = ['a']", "", false),
        ("", "redact = ['a']", false),
        ("", "", true),
    ] {
        let before = RunPolicy::new(with_list(before)).policies();
        let run = RunPolicy::restored(with_list(now), before, Vec::new()).unwrap();
        let verdict = run.admit(&PolicyContext::default(), &PolicyResource::of(&get)).verdict;
        assert_eq!(verdict == crate::call::Verdict::Allow, allowed, "{now}");
    }
}

#[test]
fn a_role_that_takes_away_still_does_so_after_it_is_gone() {
    let policy = ToolPolicy::from_toml(
        "allowed_tools = ['core__add']\nroles.intern.denied_tools = ['core__add']\n\
         attributes.clearance.secret.allowed_tools = ['core__keys']",
    )
    .unwrap();
    let (add, keys) = (spec("core__add", ToolEffect::ReadOnly), spec("core__keys", ToolEffect::ReadOnly));
    let run = |standings: &[Standing]| {
        let before = RunPolicy::new(policy.clone()).policies();
        RunPolicy::restored(policy.clone(), before, standings.to_vec())
    };
    let rule = |run: &RunPolicy, context: &PolicyContext<'_>, tool: &ToolSpec| {
        let decision = run.admit(context, &PolicyResource::of(tool));
        format!("{} {}", decision.verdict, decision.rule)
    };
    let intern = Standing { roles: vec!["intern".into()], attributes: Vec::new() };
    let cleared = [("clearance".into(), "secret".into())];
    let now = PolicyContext { attributes: &cleared, ..PolicyContext::default() };
    let (fresh, held) = (run(&[]).unwrap(), run(std::slice::from_ref(&intern)).unwrap());
    assert_eq!(rule(&fresh, &now, &add), "allow allowed_tools");
    assert_eq!(rule(&held, &now, &add), "deny roles.intern.denied_tools");
    // The run does not get rights that the principal has gained since.
    assert_eq!(rule(&fresh, &now, &keys), "allow attributes.clearance.secret.allowed_tools");
    assert_eq!(rule(&held, &now, &keys), "deny allowed_tools");
    // A snapshot contains each standing once, and at most 16 of them.
    let standing = Standing { roles: Vec::new(), attributes: cleared.to_vec() };
    assert_eq!(held.standings(standing.clone()), [standing, intern.clone()]);
    assert_eq!(held.standings(intern.clone()), std::slice::from_ref(&intern));
    assert!(run(&vec![intern; 17]).is_none());
}

#[test]
fn an_authored_tool_shows_no_more_than_under_the_policy_that_narrowed_it() {
    let add = spec("core__add", ToolEffect::ReadOnly);
    let with = |list: &str| policy(&format!("[tools.core__add]\n{list}"));
    for (before, now, allowed) in [
        ("redact = ['a']", "redact = ['a']", true),
        ("", "redact = ['a']", true),
        ("redact = ['a']", "", false),
        ("redact = ['a']", "redact = ['a', '$media']", false),
        ("redact = ['a']\nmodel = ['$media']", "redact = ['a', '$media']", false),
        ("redact = ['a', '$media']", "redact = ['a']\nmodel = ['$media']", true),
    ] {
        let run = RunPolicy::restored(with(now), RunPolicy::new(with(before)).policies(), Vec::new()).unwrap();
        let verdict = run.admit(&PolicyContext::default(), &PolicyResource::of(&add)).verdict;
        assert_eq!(verdict == crate::call::Verdict::Allow, allowed, "{before} {now}");
    }
}

#[test]
fn parallel_effects_and_revisions_are_of_all_policies() {
    let (wide, narrow) = (policy("parallel = 9"), policy("parallel = 3"));
    let run = RunPolicy::restored(wide.clone(), RunPolicy::new(narrow.clone()).policies(), Vec::new()).unwrap();
    assert_eq!(run.parallel(), 3);
    assert!(run.revision() != wide.revision() && run.revision() != narrow.revision());
    let other_way = RunPolicy::restored(narrow, run.policies(), Vec::new()).unwrap();
    assert_eq!(run.revision(), other_way.revision());
    // Under its original policy a restored run has the same rights.
    let same = RunPolicy::restored(wide.clone(), RunPolicy::new(wide.clone()).policies(), Vec::new()).unwrap();
    assert!(same.is_current());
    assert_eq!(same.revision(), wide.revision());
}

/// Notices are not part of a policy's revision, so the lists of each policy apply even if nothing else differs.
#[test]
fn a_restored_run_lists_the_arguments_that_each_of_its_policies_lists() {
    let with = |rest: &str, lists: &[&str]| {
        let lists = lists.iter().map(|pointer| format!("'{pointer}'")).collect::<Vec<_>>().join(", ");
        let table = format!("[notices]\n[notices.tools.core__add]\narguments = [{lists}]");
        policy(&format!("{rest}\n{}", if lists.is_empty() { "" } else { &*table }))
    };
    for (other, before, now, listed) in [
        ("", [&["/a"] as &[_], &["/a"]], &["/a"] as &[_], &["/a"] as &[&str]),
        ("", [&["/a"], &["/a"]], &["/a", "/b"], &["/a"]),
        ("", [&["/a"], &["/b"]], &["/a", "/b"], &[]),
        ("", [&[], &["/a"]], &["/a"], &[]),
        ("", [&[], &[]], &["/a"], &[]),
        ("parallel = 2", [&["/a"], &["/a", "/b"]], &["/a", "/b"], &["/a"]),
        ("parallel = 2", [&["/a", "/b"], &["/b"]], &["/a", "/b"], &["/b"]),
        ("parallel = 2", [&["/a"], &[]], &["/a"], &[]),
    ] {
        let mut policies = RunPolicy::new(with(other, before[0])).policies();
        for policy in [with(other, before[1]), with("", now), with("", now)] {
            // Each process restores the run from the snapshot of the previous process.
            let run = RunPolicy::restored(policy, policies, Vec::new()).unwrap();
            policies = run.policies();
        }
        let run = RunPolicy::restored(with("", now), policies, Vec::new()).unwrap();
        let terms = run.notices("core__add", &[NoticeEvent::Waiting]).unwrap();
        assert_eq!(terms.arguments.iter().map(String::as_str).collect::<Vec<_>>(), listed, "{before:?}");
        assert_eq!(run.is_current(), other.is_empty(), "notices decide nothing");
        assert_eq!(run.revision() == with("", &[]).revision(), other.is_empty());
    }
}
