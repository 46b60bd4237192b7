//! Cases of the semantic rules.

use serde_json::json;

use crate::call::Violation;
use crate::hydrate::semantic::{EvidenceSet, WithoutEvidence, check_evidence, check_require_any};
use crate::json::{Limits, Tree, parse};
use crate::schema::{IdArguments, is_placeholder};

fn read(text: &str) -> Tree<'_> {
    parse(text, &Limits::default()).unwrap()
}

#[test]
fn placeholders_are_told_from_ids() {
    for text in [
        "",
        " ",
        "\t\n",
        ": ",
        ":",
        "null",
        "NULL",
        "None",
        "undefined",
        "-",
        "--",
        "<id>",
        "<task_id>",
        "{{task_id}}",
        "${id}",
        "[id]",
        "...",
        "…",
        "\u{200b}",
        "\u{feff}\u{2060}",
        " \u{200b} ",
        "\u{2800}",
        "'",
        "\"\"",
        "nil",
        "N/A",
        "<the id>",
        "<>",
    ] {
        assert!(is_placeholder(text), "{text:?}");
    }
    for text in [
        "1",
        "0",
        "a",
        "task-1",
        "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
        "none-of-these",
        "nullable",
        "<1>",
        "*",
        "/",
        "@me",
        "[1,2]",
        "id",
        "日本",
        "-1",
        "a b",
        "😀",
    ] {
        assert!(!is_placeholder(text), "{text:?}");
    }
}

#[test]
fn ids_are_found_by_name_wherever_they_are() {
    let schema = json!({
        "properties": {
            "id": {"type": "string"}, "parent_id": {"type": ["string", "null"]}, "userId": {}, "label_ids": {},
            "linkIds": {}, "kind_id": {"enum": ["none", "one"]}, "device_id": {"default": "null"}, "paid": {}, "Identity": {}, "text": {},
            "projectID": {}, "memberIDs": {}, "ID": {},
            "target": {"$ref": "#/$defs/Target"}, "rows": {"items": {"properties": {"row_id": {}}}},
        },
        "$defs": {"Target": {"properties": {"project_id": {"type": "string"}}}},
    });
    let ids = IdArguments::of_value(&schema);
    let refused = |text: &str| {
        let mut tree = read(text);
        ids.trim(&mut tree);
        checked(&ids, &tree).into_iter().map(|one| one.pointer).collect::<Vec<_>>()
    };
    for (text, places) in [
        (r#"{"id": " x ", "parent_id": ": ", "userId": "-"}"#, &["/parent_id", "/userId"][..]),
        (r#"{"parent_id": null, "text": "", "paid": "", "Identity": "", "kind_id": "none", "device_id": "null"}"#, &[]),
        (r#"{"label_ids": ["a", " ", "<id>"], "linkIds": ["null"]}"#, &["/label_ids/1", "/label_ids/2", "/linkIds/0"]),
        (r#"{"target": {"project_id": ": "}}"#, &["/target/project_id"]),
        (r#"{"rows": [{"row_id": "7"}, {"row_id": "\t"}]}"#, &["/rows/1/row_id"]),
        (r#"{"headers": {"x_id": ""}}"#, &[]),
        (r#"{"projectID": ": ", "memberIDs": ["m", "None"], "ID": "-"}"#, &["/projectID", "/memberIDs/1", "/ID"]),
    ] {
        assert_eq!(refused(text), places, "{text}");
    }
    let mut tree = read(r#"{"label_ids": [" a "], "rows": [{"row_id": " 7 "}], "text": " t "}"#);
    ids.trim(&mut tree);
    assert_eq!(tree, read(r#"{"label_ids": ["a"], "rows": [{"row_id": "7"}], "text": " t "}"#));
}

fn checked(ids: &IdArguments, tree: &Tree<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    ids.check(tree, &mut violations);
    violations
}

#[test]
fn ids_are_trimmed_and_checked() {
    let schema =
        json!({"required": ["id", "a_id"], "properties": {"id": {"type": "string"}, "a_id": {"type": "string"}}});
    let ids = IdArguments::of_value(&schema);
    let mut tree = read(r#"{"id": "  x1\n", "a_id": "\t<id>\u00a0", "text": "  kept  "}"#);
    ids.trim(&mut tree);
    assert_eq!(tree, read(r#"{"id": "x1", "a_id": "<id>", "text": "  kept  "}"#));
    let violations = checked(&ids, &tree);
    assert_eq!(violations.len(), 1);
    assert_eq!((violations[0].pointer.as_str(), violations[0].keyword.as_str()), ("/a_id", "semantic"));
    assert!(checked(&ids, &read(r#"{"id": 5}"#)).is_empty());
}

#[test]
fn an_update_has_to_name_something() {
    let names = ["state", "title"];
    for (text, refused) in [
        (r#"{"id": "1"}"#, true),
        (r#"{"id": "1", "state": null}"#, true),
        (r#"{"id": "1", "title": ""}"#, false),
        (r#"{"state": false}"#, false),
    ] {
        let violation = check_require_any(&read(text), &names);
        assert_eq!(violation.is_some(), refused, "{text}");
        assert!(
            violation.is_none_or(|one| one.expected == "at least one of `state`, `title`" && one.pointer.is_empty())
        );
    }
    assert!(check_require_any::<&str>(&read("{}"), &[]).is_none());
}

#[test]
fn no_more_ids_are_looked_for_than_a_call_is_refused_for() {
    let rules = [("ids".to_owned(), "tasks__list".to_owned())].into();
    let mut seen = EvidenceSet::new();
    (0..400).for_each(|at| seen.insert_text(&format!("task-{at} {}", "words ".repeat(100))));
    let ids: Vec<_> = (0..5_000).map(|at| format!("unknown-{at}")).collect();
    let text = json!({"ids": ids}).to_string();
    let refused = check_evidence(&read_long(&text), &rules, &seen, &|_| true).violations;
    assert_eq!((refused.len(), refused[99].pointer.as_str()), (100, "/ids/99"));
    let known: Vec<_> = (0..400).map(|at| format!("task-{at}")).collect();
    let text = json!({"ids": known}).to_string();
    assert!(check_evidence(&read_long(&text), &rules, &seen, &|_| true).violations.is_empty());
}

fn read_long(text: &str) -> Tree<'_> {
    parse(text, &Limits::UNBOUNDED).unwrap()
}

#[test]
fn ids_that_were_seen_are_evidence() {
    let mut seen = EvidenceSet::new();
    let long = format!("{} mention task-77 here", "words ".repeat(100));
    seen.insert_result(&read(
        r#"{"tasks": [{"id": "task-1", "number": 42, "big": 18446744073709551615}], "note": {"k9": null}}"#,
    ));
    seen.insert_result(&Tree::String(long.into()));
    seen.insert_text("please close task-12, and (INV-2024/7)");
    seen.insert_text("é-3");
    seen.insert_text("write to ada@example.org.attacker.net about /a/b/c, done with T-9.");
    seen.insert_text("one");
    seen.insert_text("two");
    for (id, expected) in [
        ("task-1", true),
        (" task-1 ", false),
        ("task-1\t", false),
        ("task-12", true),
        ("INV-2024/7", true),
        ("task-77", true),
        ("k9", false),
        ("note", false),
        ("ada@example.org", false),
        ("example.org.attacker.net", false),
        ("a/b", false),
        ("/a/b", false),
        ("/a/b/c", true),
        ("T-9", true),
        ("one\ntwo", false),
        ("two", true),
        ("42", true),
        ("é-3", true),
        ("task-2", false),
        ("task", false),
        ("ask-12", false),
        ("ask", false),
        ("", false),
        (" ", false),
        ("4", false),
        ("3", false),
        ("18446744073709551615", true),
        ("task-1234", false),
    ] {
        assert_eq!(seen.contains_id(id), expected, "{id}");
        assert_eq!(seen.contains(&Tree::String(id.into())), expected, "{id}");
    }
    assert!(seen.contains(&Tree::Int(42)) && !seen.contains(&Tree::Int(43)) && !seen.contains(&Tree::Null));
    assert!(!format!("{seen:?}").contains("task"));

    let rules = ["task", "many"].map(|name| (name.to_owned(), "tasks__list".to_owned())).into();
    let asked = r#"{"task": "task-9", "many": ["task-1", "secret", null]}"#;
    let WithoutEvidence { violations, lists } = check_evidence(&read(asked), &rules, &seen, &|_| true);
    assert_eq!(lists, ["/many/1", "/task"]);
    let places: Vec<_> = violations.iter().map(|one| one.pointer.as_str()).collect();
    assert_eq!(places, ["/many/1", "/task"]);
    assert!(violations.iter().all(|one| one.keyword == "evidence" && !format!("{one:?}").contains("secret")));
    assert_eq!(violations[0].hint.as_deref(), Some("call `tasks__list` to see the ids there are"));
    let WithoutEvidence { violations, lists } = check_evidence(&read(asked), &rules, &seen, &|_| false);
    assert!(lists.is_empty());
    assert_eq!(violations[0].hint.as_deref(), Some("ask the user for it"));
    assert!(
        check_evidence(&read(r#"{"task": "task-1", "many": [42]}"#), &rules, &seen, &|_| true).violations.is_empty()
    );
    assert!(check_evidence(&read("{}"), &rules, &seen, &|_| true).violations.is_empty());
}

#[test]
fn what_a_run_keeps_as_evidence_is_bounded() {
    // One more than the maximum number of ids: the last is not evidence.
    let mut seen = EvidenceSet::new();
    seen.insert_result(&Tree::Array((0..=100_000).map(Tree::Int).collect()));
    assert!(seen.contains(&Tree::Int(99_999)) && !seen.contains(&Tree::Int(100_000)));
    let mut merged = EvidenceSet::new();
    merged.insert_result(&Tree::Int(-1));
    merged.merge(&seen);
    assert!(merged.contains(&Tree::Int(-1)));
    assert_eq!((0..100_000).filter(|id| merged.contains(&Tree::Int(*id))).count(), 99_999);

    // Text up to 4 MiB in all.
    let mut seen = EvidenceSet::new();
    let text = |id: &str, length: usize| format!("{id} {}", ".".repeat(length - id.len() - 1));
    seen.insert_text(&text("T-1", (4 << 20) - 100));
    seen.insert_text(&text("T-2", 100));
    seen.insert_text(&text("T-3", 99));
    assert!(seen.contains_id("T-1") && !seen.contains_id("T-2") && seen.contains_id("T-3"));

    // A string of 256 bytes is an id; a longer string is text that mentions ids.
    let mut seen = EvidenceSet::new();
    seen.insert_result(&Tree::String(text("T-4", 256).into()));
    seen.insert_result(&Tree::String(text("T-5", 257).into()));
    assert!(!seen.contains_id("T-4") && seen.contains_id("T-5"));
}
