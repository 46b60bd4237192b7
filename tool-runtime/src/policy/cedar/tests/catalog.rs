//! Compares policies with a catalog. Each problem names its policy.

use super::*;

#[track_caller]
fn problem(forbid: &str, says: &str) {
    let cedar = format!("{PERMIT}\n@id(\"rule\") forbid{forbid};");
    let problems: Vec<_> = policy(&cedar).unwrap().check(&specs(), []).iter().map(ToString::to_string).collect();
    match says {
        "" => assert!(problems.is_empty(), "{problems:?}"),
        says => assert!(problems.iter().any(|problem| problem.contains(says)), "{problems:?}\n{says}"),
    }
}

#[test]
fn names_and_types_are_those_of_the_catalog() {
    problem("(principal, action == Action::\"mail__send\", resource)", "");
    problem("(principal, action == Action::\"mcp__later__tool\", resource == Tool::\"mcp__later__tool\")", "");
    problem(
        "(principal, action == Action::\"mail__sned\", resource)",
        "policy, `cedar.rule`: for policy `rule`, unrecognized action `Action::\"mail__sned\"`",
    );
    problem(
        "(principal, action, resource == Tool::\"mail__sned\")",
        "policy, `cedar.rule`: there is no tool `mail__sned`; did you mean `mail__send`?",
    );
    problem(
        "(principal is Person, action, resource)",
        "policy, `cedar.rule`: for policy `rule`, unrecognized entity type `Person`",
    );
    let of_mail = |when: &str| format!("(principal, action == Action::\"mail__send\", resource) when {{ {when} }}");
    problem(
        &of_mail("context.arguments.copeis > 1"),
        "attribute `arguments.copeis` in context for Action::\"mail__send\" not found; did you mean `copies`?",
    );
    problem(&of_mail("context.arguments.choice == \"a\""), "attribute `arguments.choice`");
    problem(&of_mail("context.arguments.urgent"), "attribute `arguments.urgent`");
    problem(&of_mail("context.arguments.amount > 1"), "unexpected type");
    problem(&of_mail("context.arguments.copies.contains(1)"), "unexpected type");
    problem(&of_mail("context.argument.copies > 1"), "attribute `argument`");
    // An argument that only one tool has needs an action.
    problem("(principal, action, resource) when { context.arguments.copies > 1 }", "attribute `arguments.copies`");
    // A rule that never fires is a mistake.
    problem(&of_mail("resource == Tool::\"docs__search\" && false"), "policy `rule`");
}

#[test]
fn labels_and_roles_are_known_by_their_sources() {
    let labelled =
        |label: &str| format!("(principal, action, resource) when {{ context.labels.contains(\"{label}\") }}");
    problem(&labelled("untrusted"), "");
    problem(&labelled("minor"), "");
    problem(
        &labelled("untrustd"),
        "policy, `cedar`: nothing puts the label `untrustd` on a run; add `[labels.untrustd]` with its source; did you mean `untrusted`?",
    );
    problem("(principal, action, resource) when { context.labels.containsAny([\"miner\"]) }", "did you mean `minor`?");
    let cedar =
        "forbid(principal in Role::\"guest\", action, resource) unless { principal.clearance.contains(\"x\") };";
    let policy = policy(&format!("{PERMIT}{cedar}")).unwrap();
    assert!(policy.check(&specs(), []).is_empty());
    assert!(policy.roles().contains("guest") && policy.attributes().contains("clearance"));
    // A label that only Cedar reads is not idle.
    let read = |cedar: &str| {
        let policy = format!("labels.minor.from_run = true\ncedar.policies = '{PERMIT}{cedar}'");
        ToolPolicy::from_toml(&policy).unwrap().check(&specs(), []).len()
    };
    assert_eq!(read(""), 1);
    assert_eq!(read("forbid(principal, action, resource) when { context.labels.contains(\"minor\") };"), 0);
}

#[test]
fn the_policy_of_the_guide_fits_its_tools() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/cedar.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, block) = guide.split_once("```toml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let to = r#"{ "type": "object", "properties": { "to": { "type": "array", "items": { "type": "string" } } }, "required": ["to"] }"#;
    let mail = spec("mail__send_email", ToolEffect::ExternalSideEffect);
    let search = spec("docs__search", ToolEffect::ReadOnly);
    let tools = [
        ToolSpec { input_schema: Schema::from_text(to), ..mail },
        ToolSpec { tags: vec!["untrusted_content".into()], ..search },
    ];
    let problems = ToolPolicy::from_toml(block).unwrap().check(&tools, []);
    assert!(problems.is_empty(), "{problems:?}");
}
