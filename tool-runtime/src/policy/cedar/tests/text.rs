//! Cedar text that is refused, with the messages.

use super::*;

#[track_caller]
fn refused(cedar: &str, says: &str) {
    let error = policy(cedar).unwrap_err();
    let says = format!("`cedar.policies`: {says}");
    assert!(error.to_string().contains(&says), "{error}\n{says}");
    assert_eq!(error.code(), "policy_value");
}

#[test]
fn errors_name_the_place_or_the_policy() {
    refused("permit(principal, action, resource)\nwhen { context.. };", "line 2, column 16: unexpected token `.`");
    refused(
        "",
        "no policy permits anything, so every call would be denied; add `permit(principal, action, resource);`",
    );
    refused("forbid(principal, action, resource);", "no policy permits anything");
    refused("permit(principal == ?principal, action, resource);", "a template decides nothing here");
    let same = "@id(\"a\") permit(principal, action, resource);";
    refused(&format!("{same}{same}"), "two policies have the same `@id`");
    refused(&format!("@id(\"a:b\") {PERMIT}"), "the `@id` of `policy0` is 1 to 64 ASCII letters");
    refused(&format!("@advice(\"x\") {PERMIT}"), "policy `policy0`: `@advice` decides nothing");
    refused(
        &format!("@id(\"ask\") @approval(\"required\") {PERMIT}"),
        "policy `ask`: write `@approval(\"required\")` on a `forbid`",
    );
    refused(
        &format!("{PERMIT} @approval(\"yes\") forbid(principal, action, resource);"),
        "policy `policy1`: the only value is `@approval(\"required\")`",
    );
}

#[test]
fn size_and_depth_are_bounded() {
    let clause = |body: &str| format!("permit(principal, action, resource) when {{ {body} }};");
    let bracketed = |depth: usize| clause(&format!("{}true{}", "(".repeat(depth), ")".repeat(depth)));
    let joined = |operands: usize, by: &str| clause(&vec!["true"; operands].join(by));
    // At the limits, the engine has enough stack even on a test's thread.
    for cedar in [bracketed(31), joined(129, " && "), clause(&format!("{}true", "if true then true else ".repeat(256)))]
    {
        let policy = policy(&cedar).unwrap_or_else(|error| panic!("{error}"));
        assert!(policy.check(&specs(), []).is_empty() || cedar.contains("if true"));
        let specs = specs();
        let tool = crate::policy::PolicyResource::of(&specs[1]);
        let decision = policy.decide(&crate::policy::PolicyContext::default(), &tool, "{}");
        assert_eq!(decision.verdict, crate::call::Verdict::Allow, "{}", decision.rule);
    }
    refused(&bracketed(32), "line 1: more than 32 brackets are open; write several policies");
    refused(&joined(130, "\n&& "), "line 130: more than 256 operators in one policy; write several policies");
    refused(&clause(&format!("context{} == 1", ".a".repeat(257))), "line 1: more than 256 operators");
    refused(&clause(&format!("{}true", "if true then true else ".repeat(257))), "line 1: more than 256 operators");
    refused(&clause(&"(".repeat(30_000)), "line 1: more than 32 brackets");
    refused(&PERMIT.repeat(257), "more than 256 policies; write fewer");
    refused(&" ".repeat(64 * 1024 + 1), "the policies are longer than 64 KiB together");
    // Brackets in texts and comments are not counted.
    let brackets = "(".repeat(100);
    policy(&clause(&format!("context.caller != \"\\\"{brackets}\" // {brackets}\n"))).unwrap();
}

#[test]
fn the_policies_are_part_of_the_revision_and_of_saved_runs() {
    let (one, other) = (policy(PERMIT).unwrap(), policy(&format!("{PERMIT} ")).unwrap());
    assert!(one.revision() != other.revision() && one != other);
    let saved = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::from_str::<ToolPolicy>(&saved).unwrap(), one);
    let error = ToolPolicy::from_toml("[cedar]\npolicy = ''").unwrap_err().to_string();
    assert!(error.contains("unknown field `policy`, expected `policies`"), "{error}");
}
