//! Cases of the semantic rules.

use serde_json::json;

use crate::hydrate::semantic::{EvidenceSet, check_evidence, check_require_any};
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
fn only_required_string_arguments_named_id_are_ids() {
    let schema = json!({
        "required": ["id", "task_id", "userId", "Id", "paid", "identity", "count_id", "maybe_id", "ref_id", "any_id"],
        "properties": {
            "id": {"type": "string"}, "task_id": {"type": "string"}, "userId": {"type": "string", "minLength": 1},
            "Id": {"type": "string"}, "paid": {"type": "string"}, "identity": {"type": "string"},
            "count_id": {"type": "integer"}, "maybe_id": {"type": ["string", "null"]}, "other_id": {"type": "string"},
            "ref_id": {"$ref": "#/$defs/Id"}, "any_id": {},
        },
        "$defs": {"Id": {"type": "string"}},
    });
    let ids = IdArguments::of_value(&schema);
    assert_eq!(ids.names().collect::<Vec<_>>(), ["id", "task_id", "userId", "maybe_id", "ref_id"]);
}

#[test]
fn ids_are_trimmed_and_checked() {
    let schema =
        json!({"required": ["id", "a_id"], "properties": {"id": {"type": "string"}, "a_id": {"type": "string"}}});
    let ids = IdArguments::of_value(&schema);
    let mut tree = read(r#"{"id": "  x1\n", "a_id": "\t<id>\u00a0", "text": "  kept  "}"#);
    ids.trim(&mut tree);
    assert_eq!(tree, read(r#"{"id": "x1", "a_id": "<id>", "text": "  kept  "}"#));
    let violations = ids.check(&tree);
    assert_eq!(violations.len(), 1);
    assert_eq!((violations[0].pointer.as_str(), violations[0].keyword.as_str()), ("/a_id", "semantic"));
    assert!(ids.check(&read(r#"{"id": 5}"#)).is_empty());
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
fn ids_that_were_seen_are_evidence() {
    let mut seen = EvidenceSet::new();
    let long = format!("{} mention task-77 here", "words ".repeat(100));
    seen.insert_result(&read(
        r#"{"tasks": [{"id": "task-1", "number": 42, "big": 18446744073709551615}], "by_id": {"k9": null}}"#,
    ));
    seen.insert_result(&Tree::String(long.into()));
    seen.insert_text("please close task-12, and (INV-2024/7)");
    seen.insert_text("é-3");
    for (id, expected) in [
        ("task-1", true),
        (" task-1 ", true),
        ("task-12", true),
        ("INV-2024/7", true),
        ("task-77", true),
        ("k9", true),
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

    let rules = [("task", "tasks__list"), ("many", "tasks__list")];
    let violations = check_evidence(&read(r#"{"task": "task-9", "many": ["task-1", "secret", null]}"#), &rules, &seen);
    let places: Vec<_> = violations.iter().map(|one| one.pointer.as_str()).collect();
    assert_eq!(places, ["/task", "/many/1"]);
    assert!(violations.iter().all(|one| one.keyword == "evidence" && !format!("{one:?}").contains("secret")));
    assert_eq!(violations[0].hint.as_deref(), Some("call `tasks__list` to see the ids there are"));
    assert!(check_evidence(&read(r#"{"task": "task-1", "many": [42]}"#), &rules, &seen).is_empty());
    assert!(check_evidence(&read("{}"), &rules, &seen).is_empty());
}
