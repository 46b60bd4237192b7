//! Edits of the office tools, and the verdict of the lock on each: that of a careful human reader.

use office_tools as _;
use serde_json::{Map, Value, json};
use tool_runtime::ToolCatalog;
use tool_runtime::catalog::{LockReport, ToolLock};

fn office_tools() -> ToolCatalog {
    ToolCatalog::builder().crates(["office_tools"]).build().unwrap()
}

fn office() -> Value {
    let text = ToolLock::of(&office_tools()).to_text();
    serde_json::from_str(&text).unwrap()
}

fn lock(document: &Value) -> ToolLock {
    ToolLock::parse(&document.to_string()).unwrap()
}

enum Edit {
    Set(&'static str, Value),
    Remove(&'static str),
    Move(&'static str, &'static str),
}

use Edit::{Move, Remove, Set};

fn place<'v>(tool: &'v mut Value, pointer: &str) -> (&'v mut Map<String, Value>, String) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = tool.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent}"));
    (parent.as_object_mut().unwrap(), name.replace("~1", "/"))
}

fn edit(tool: &mut Value, edit: &Edit) {
    match edit {
        Set(pointer, value) => {
            let (parent, name) = place(tool, pointer);
            parent.insert(name, value.clone());
        }
        Remove(pointer) => {
            let (parent, name) = place(tool, pointer);
            parent.remove(&name).unwrap_or_else(|| panic!("no {pointer}"));
        }
        Move(from, to) => {
            let (parent, name) = place(tool, from);
            let value = parent.remove(&name).unwrap_or_else(|| panic!("no {from}"));
            let (parent, name) = place(tool, to);
            parent.insert(name, value);
        }
    }
}

fn verdict(report: &LockReport) -> String {
    let mut words = report.verdict().to_owned();
    for (word, is_so) in [("review", report.needs_review()), ("visible", report.is_visible())] {
        if is_so {
            words = format!("{words} {word}");
        }
    }
    words
}

/// The tool, the edits of its entry, the verdict with its marks, and the text of the report.
type Case = (&'static str, Vec<Edit>, &'static str, &'static str);

const LIST: &str = "tasks__list_tasks";
const UPDATE: &str = "tasks__update_task";
const CREATE: &str = "tasks__create_task";
const MAIL: &str = "mail__send_email";
const FORECAST: &str = "weather__get_forecast";
const DOCS: &str = "docs__search";

fn arguments() -> Vec<Case> {
    let states = |values: Value| Set("/input_schema/properties/state/enum", values);
    vec![
        (
            LIST,
            vec![
                Set("/input_schema/properties/owner", json!({"type": "string"})),
                Set("/input_schema/required", json!(["owner"])),
            ],
            "major",
            "/properties/owner: it was added, and is required",
        ),
        (LIST, vec![Set("/input_schema/properties/owner", json!({"type": "string"}))], "minor", "may be left out"),
        (LIST, vec![Remove("/input_schema/properties/state")], "major", "/properties/state: it was removed"),
        (LIST, vec![Set("/input_schema/required", json!(["state"]))], "major", "it is required now"),
        (DOCS, vec![Set("/input_schema/required", json!([]))], "minor", "it may be missing now"),
        (
            DOCS,
            vec![Move("/input_schema/properties/query", "/input_schema/properties/words")],
            "major",
            "/query: it was removed",
        ),
        (LIST, vec![states(json!(["todo", "in_progress", "done", null]))], "major", "/enum: without"),
        (LIST, vec![states(json!(["todo", "in_progress", "blocked", "done", "late", null]))], "minor", "/enum: with"),
        (LIST, vec![states(json!(["todo", "in_progress", "waiting", "done", null]))], "major", "/enum: with"),
        (LIST, vec![states(json!([null, "done", "blocked", "in_progress", "todo"]))], "patch", "the same values fit"),
        (LIST, vec![Remove("/input_schema/properties/state/enum")], "minor", "-> none"),
        // The list still has `null`, which the type no longer allows.
        (LIST, vec![Set("/input_schema/properties/state/type", json!("string"))], "major", "/enum: without null"),
        (
            LIST,
            vec![Set("/input_schema/properties/state/type", json!(["integer", "null", "string"]))],
            "patch",
            "the same values fit",
        ),
        (DOCS, vec![Set("/input_schema/properties/limit/maximum", json!(20))], "major", "/limit/maximum: 50 -> 20"),
        (DOCS, vec![Set("/input_schema/properties/limit/maximum", json!(100))], "minor", "50 -> 100"),
        (DOCS, vec![Remove("/input_schema/properties/limit/minimum")], "minor", "1 -> none"),
        (
            DOCS,
            vec![
                Remove("/input_schema/properties/limit/minimum"),
                Set("/input_schema/properties/limit/exclusiveMinimum", json!(0)),
                Set("/input_schema/properties/limit/type", json!("integer")),
            ],
            "major",
            "integer, null -> integer",
        ),
        (DOCS, vec![Set("/input_schema/properties/query/maxLength", json!(200))], "major", "none -> 200"),
        (DOCS, vec![Set("/input_schema/properties/query/minLength", json!(0))], "minor", "1 -> 0"),
        (DOCS, vec![Set("/input_schema/properties/limit/type", json!("integer"))], "major", "integer, null -> integer"),
        (DOCS, vec![Set("/input_schema/properties/limit/type", json!(["number", "null"]))], "minor", "-> number, null"),
        (DOCS, vec![Set("/input_schema/properties/query/type", json!("integer"))], "major", "string -> integer"),
        (
            DOCS,
            vec![Set("/input_schema/properties/query/pattern", json!("^[a-z]+$"))],
            "major",
            "/query/pattern: none ->",
        ),
        (CREATE, vec![Remove("/input_schema/properties/due_date/format")], "minor", "-> none"),
        (
            CREATE,
            vec![Set("/input_schema/properties/due_date/format", json!("date-time"))],
            "major",
            "/due_date/format",
        ),
        (DOCS, vec![Set("/input_schema/additionalProperties", json!(true))], "minor", "are accepted now"),
        (
            MAIL,
            vec![Set("/input_schema/properties/to/items/format", json!("hostname"))],
            "major",
            "/properties/to/items/format",
        ),
        (MAIL, vec![Set("/input_schema/properties/to/uniqueItems", json!(true))], "major", "/to/uniqueItems"),
        (
            "core__get_current_time",
            vec![Set("/input_schema/properties/timezone/default", json!("Europe/Oslo"))],
            "major",
            "/timezone/default",
        ),
        (
            FORECAST,
            vec![
                Set("/input_schema/required", json!(["city"])),
                Set("/input_schema/properties/unit/default", json!("celsius")),
            ],
            "minor visible",
            "/unit: it may be missing now",
        ),
        (
            LIST,
            vec![
                Move("/input_schema/properties/state/description", "/input_schema/description"),
                Remove("/input_schema/description"),
            ],
            "patch visible",
            "/state/description",
        ),
    ]
}

fn outputs() -> Vec<Case> {
    let states = |values: Value| Set("/output_schema/items/properties/state/enum", values);
    let required = |names: Value| Set("/output_schema/items/required", names);
    vec![
        // The owner is not on the allowlist, so nobody saw it.
        (
            LIST,
            vec![
                Remove("/output_schema/items/properties/owner_email"),
                required(json!(["task_id", "title", "state", "due_date"])),
            ],
            "patch",
            "not shown",
        ),
        (LIST, vec![Set("/output_schema/items/properties/owner_email/type", json!("integer"))], "patch", "not shown"),
        (LIST, vec![Set("/output_schema/items/properties/notes", json!({"type": "string"}))], "patch", "not shown"),
        (
            LIST,
            vec![
                Set("/output_schema/items/properties/notes", json!({"type": "string"})),
                Set("/redaction/allow", json!(["task_id", "title", "state", "due_date", "notes"])),
            ],
            "minor review",
            "`notes` is shown now",
        ),
        (
            LIST,
            vec![Set("/redaction/allow", json!(["task_id", "title", "state", "due_date", "owner_email"]))],
            "minor review",
            "`owner_email` is shown now",
        ),
        (
            LIST,
            vec![Set("/redaction/allow", json!(["task_id", "title", "state"]))],
            "major",
            "`due_date` is no longer shown",
        ),
        (LIST, vec![Set("/redaction/allow", json!(["state", "title", "task_id", "due_date"]))], "patch review", "hash"),
        (
            LIST,
            vec![states(json!(["todo", "in_progress", "blocked", "done", "late"]))],
            "major",
            "more outputs are possible",
        ),
        (LIST, vec![states(json!(["todo", "in_progress", "done"]))], "minor", "fewer outputs are possible"),
        (LIST, vec![Set("/output_schema/items/properties/due_date/type", json!("string"))], "minor", "/due_date/type"),
        (
            LIST,
            vec![Set("/output_schema/items/properties/title/type", json!(["string", "null"]))],
            "major",
            "/title/type",
        ),
        (
            LIST,
            vec![required(json!(["task_id", "title", "state", "owner_email"]))],
            "major",
            "/due_date: it may be missing now",
        ),
        (LIST, vec![Set("/output_schema/items/additionalProperties", json!(false))], "patch", "not listed"),
        (
            "editor__open_in_editor",
            vec![Remove("/payload_schema/properties/line"), Set("/payload_schema/required", json!(["path"]))],
            "major",
            "/payload_schema/properties/line",
        ),
    ]
}

fn protection() -> Vec<Case> {
    vec![
        (LIST, vec![Set("/description", json!(["Lists tasks with their ids."]))], "patch visible", "/description: \""),
        ("core__get_current_time", vec![Set("/title", json!("The time"))], "patch visible", "/title"),
        (MAIL, vec![Set("/summary", json!(["Mails {to} about {subject}"]))], "patch visible", "/summary"),
        (MAIL, vec![Set("/summary", json!(["Sends an e-mail about {subject}"]))], "patch review", "no longer names to"),
        (MAIL, vec![Remove("/sensitive")], "patch review", "`body` is no longer masked"),
        (MAIL, vec![Set("/sensitive", json!(["body", "subject"]))], "patch", "`subject` is masked now"),
        (MAIL, vec![Remove("/tags")], "patch review", "a policy may match it"),
        (MAIL, vec![Set("/timeout_ms", json!(60_000))], "patch review", "30000 -> 60000"),
        (UPDATE, vec![Remove("/evidence")], "minor review", "no longer need evidence"),
        (LIST, vec![Set("/evidence", json!({"state": UPDATE}))], "major", "need evidence now"),
        (UPDATE, vec![Set("/evidence/task_id", json!(CREATE))], "major review", "another tool lists its values"),
        (UPDATE, vec![Remove("/require_any"), Remove("/input_schema/minProperties")], "minor", "/require_any"),
        (UPDATE, vec![Remove("/idempotent")], "major", "may no longer be repeated"),
        ("notes__add_note", vec![Set("/idempotent", json!(true))], "minor review", "may be repeated now"),
        (LIST, vec![Set("/effect", json!("state_change"))], "major review", "read_only -> state_change"),
        (MAIL, vec![Set("/effect", json!("state_change"))], "minor review", "external_side_effect -> state_change"),
        (LIST, vec![Set("/borrows/Mailer", json!("external_side_effect"))], "patch review", "/borrows/Mailer"),
        (LIST, vec![Remove("/borrows/TaskReader")], "patch", "no longer borrowed"),
        (LIST, vec![Set("/execution", json!("client"))], "major review", "server -> client"),
        (
            MAIL,
            vec![Set("/once", json!({"key": "mail:{subject}", "scope": "tenant", "for": 60}))],
            "minor review",
            "mail:{subject} (tenant, kept for 60 s)",
        ),
        // Several at a time: the gravest verdict and every mark.
        (
            LIST,
            vec![
                Set("/description", json!(["List tasks."])),
                Remove("/tags"),
                Set("/input_schema/properties/owner", json!({"type": "string"})),
            ],
            "minor review visible",
            "/properties/owner",
        ),
    ]
}

/// Schemas that are written in another way.
fn rewritten() -> Vec<Case> {
    let deep = |value: Value| {
        vec![
            Move("/input_schema/properties/state", "/input_schema/old"),
            Set("/input_schema/$defs", json!({"State": value})),
            Set("/input_schema/properties/state", json!({"$ref": "#/$defs/State"})),
            Remove("/input_schema/old"),
        ]
    };
    let state = office().pointer(&format!("/tools/{LIST}/input_schema/properties/state")).unwrap().clone();
    let mut narrower = state.clone();
    narrower["enum"] = json!(["todo", null]);
    // The type with `null`, written as two branches.
    let branches = |values: Value| {
        let mut outer = state.clone();
        let inner = json!({ "type": "string", "enum": values });
        outer.as_object_mut().unwrap().retain(|key, _| key != "type" && key != "enum");
        outer["anyOf"] = json!([inner, { "type": "null" }]);
        vec![Set("/input_schema/properties/state", outer)]
    };
    let without_null: Vec<_> = state["enum"].as_array().unwrap().iter().filter(|value| !value.is_null()).collect();
    vec![
        (LIST, branches(json!(without_null)), "patch", "the same values fit"),
        (
            DOCS,
            vec![Set(
                "/input_schema/properties/query",
                json!({ "description": "Words to look for.", "anyOf": [
                    { "type": "integer" }, { "type": "string", "minLength": 1, "description": "As text." }] }),
            )],
            "minor",
            "/query/anyOf: there are alternatives now",
        ),
        (
            DOCS,
            vec![Set(
                "/input_schema/properties/query",
                json!({ "description": "Words to look for.", "anyOf": [
                    { "type": "integer" }, { "type": "string", "minLength": 2 }] }),
            )],
            "major",
            "/query/anyOf: it was added",
        ),
        (LIST, branches(json!([without_null[0]])), "major", "/state/enum: without"),
        (
            LIST,
            vec![Set(
                "/input_schema/properties/state",
                json!({ "anyOf": [{ "$ref": "#/properties/state" }, { "type": "null" }] }),
            )],
            "major review",
            "not compared further",
        ),
        (LIST, deep(state.clone()), "patch", "the same values fit"),
        (LIST, deep(narrower), "major", "/input_schema/properties/state/enum: without"),
        (LIST, vec![Set("/input_schema/$defs", json!({"Unused": {"type": "string"}}))], "patch", "the same values fit"),
        (
            DOCS,
            vec![
                Remove("/input_schema/properties/query/minLength"),
                Set("/input_schema/properties/query/$comment", json!("x")),
            ],
            "minor",
            "/query/minLength",
        ),
        (LIST, vec![Set("/input_schema/properties/state/x-note", json!("see"))], "patch review", "unknown keyword"),
        (LIST, vec![Set("/input_schema/not", json!({"required": ["state"]}))], "major review", "not compared further"),
        (
            LIST,
            vec![Set("/input_schema/properties/state", json!({"$ref": "https://example.com/s"}))],
            "major review",
            "not compared further",
        ),
    ]
}

#[test]
fn verdicts_are_those_of_a_careful_reader() {
    let office = office();
    let cases = [arguments(), outputs(), protection(), rewritten()];
    let mut wrong = Vec::new();
    for (at, (tool, edits, expected, says)) in cases.into_iter().flatten().enumerate() {
        let mut edited = office.clone();
        edits.iter().for_each(|one| edit(&mut edited["tools"][tool], one));
        let report = lock(&office).compare(&lock(&edited));
        let text = report.to_string();
        if verdict(&report) != expected || !text.contains(says) || report.tools().len() != 1 {
            wrong.push(format!("{at}: expected {expected} ({says}), found {}:\n{text}", verdict(&report)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// An edit that widens arguments narrows them when it is undone, so the undoing has the mirrored verdict.
#[test]
fn an_edit_and_its_undoing_are_both_reported() {
    let office = office();
    for (tool, edits, _, _) in [arguments(), outputs(), protection(), rewritten()].into_iter().flatten() {
        let mut edited = office.clone();
        edits.iter().for_each(|one| edit(&mut edited["tools"][tool], one));
        let (there, back) = (lock(&office).compare(&lock(&edited)), lock(&edited).compare(&lock(&office)));
        assert!(!there.is_current() && !back.is_current(), "{tool}: {there}\n{back}");
    }
}

#[test]
fn allowlists_are_compared_by_what_they_show() {
    let with = |redaction: &Value| {
        let mut document = office();
        document["tools"][LIST]["redaction"] = redaction.clone();
        lock(&document)
    };
    let people = json!({"allow": ["task_id", "title"]});
    let model = json!({"allow": ["task_id"], "model": ["title"]});
    let all = json!({"allow": ["*"]});
    let below = json!({"allow": ["*", "title.text"]});
    for (before, now, expected, says) in [
        (&people, &model, "major", "`title` is shown to the model only"),
        (&model, &people, "minor review", "`title` is shown to people, too"),
        (&people, &all, "minor review", "`*` is shown now"),
        (&all, &people, "major", "`*` is no longer shown"),
        (&all, &below, "minor review", "`title.text` is shown now"),
    ] {
        let report = with(before).compare(&with(now));
        assert_eq!(verdict(&report), expected, "{report}");
        assert!(report.to_string().contains(says), "{report}");
        assert_eq!(report.tools().map(|(_, changes)| changes.len()).sum::<usize>(), 1, "{report}");
    }
}

#[test]
fn nothing_is_reported_of_the_same_definitions() {
    let catalog = office_tools();
    let (text, document) = (ToolLock::of(&catalog).to_text(), office());
    // `serde_json` writes no white space, and no line breaks.
    assert!(lock(&document).compare(&ToolLock::of(&catalog)).is_current());
    assert_eq!(lock(&document).to_text(), text);
    assert_eq!(ToolLock::parse(&text.replace('\n', "\r\n")).unwrap().to_text(), text);
    assert!(text.ends_with("}\n") && !text.contains('\r'));
    let names: Vec<_> = text.lines().filter(|line| line.starts_with("    \"") && line.ends_with('{')).collect();
    assert!(names.is_sorted() && names.len() == catalog.len(), "{names:?}");
}

#[test]
fn tools_come_go_and_are_renamed() {
    let office = office();
    let mut edited = office.clone();
    edit(&mut edited["tools"], &Move("/tasks__list_tasks", "/tasks__all"));
    edit(&mut edited["tools"], &Remove("/web__fetch_page"));
    let report = lock(&office).compare(&lock(&edited));
    let words: Vec<_> = report.tools().map(|(name, changes)| (name, changes[0].verdict())).collect();
    let expected = [("tasks__all", "minor"), (LIST, "major"), ("web__fetch_page", "major")];
    assert_eq!(words, expected);
    let text = report.to_string();
    assert!(text.contains("was it renamed to `tasks__all`?"), "{text}");
    assert_eq!(text.matches("renamed").count(), 1, "{text}");
}

#[test]
fn broken_locks_are_refused_by_line_and_broken_entries_alone() {
    let text = ToolLock::of(&office_tools()).to_text();
    let refused = |text: &str| ToolLock::parse(text).unwrap_err();
    for mark in ["<<<<<<< HEAD", "=======", ">>>>>>> branch", "||||||| base"] {
        let broken = text.replacen('\n', &format!("\n{mark}\n"), 3);
        let error = refused(&broken);
        assert!(error.code() == "lock_merge" && error.to_string().starts_with("line 2 "), "{error}");
        assert!(error.to_string().contains(&mark[..7]), "{error}");
    }
    let cut = text.get(..text.len() / 2).unwrap();
    let (error, last) = (refused(cut), cut.lines().count());
    assert!(error.code() == "lock_malformed" && error.to_string().contains(&format!("line {last},")), "{error}");
    let error = refused(&text.replace("\"version\": 1", "\"version\": 7"));
    assert!(error.code() == "lock_version" && error.to_string().contains("version 7"), "{error}");
    let twice = text.replacen("    \"web__fetch_page\": {", "    \"tasks__list_tasks\": {", 1);
    let error = refused(&twice);
    let text = error.to_string();
    let line = text.strip_prefix("line ").and_then(|rest| rest.split(',').next()?.parse::<usize>().ok());
    assert!(error.code() == "lock_malformed" && line.is_some_and(|line| line > 1000), "{error}");
    for shape in
        ["{}", "[]", r#"{"version": 1}"#, r#"{"version": "1", "tools": {}}"#, r#"{"version": 1, "tools": [], "x": 1}"#]
    {
        assert_eq!(refused(shape).code(), "lock_shape", "{shape}");
    }
    assert_eq!(refused(&" ".repeat(1 << 20)).code(), "lock_malformed");

    let mut document = office();
    edit(&mut document["tools"][LIST], &Set("/colour", json!("red")));
    edit(&mut document["tools"][UPDATE], &Set("/effect", json!("none")));
    edit(&mut document["tools"][MAIL], &Remove("/tags"));
    let report = lock(&document).compare(&lock(&office()));
    let text = report.to_string();
    assert_eq!(report.tools().len(), 3, "{text}");
    assert!(text.contains("unknown field `colour`") && text.contains("`mail` was added"), "{text}");
}

/// Indentation makes the text of a nested schema up to a hundred times as long as the schema.
#[test]
fn every_lock_that_is_written_can_be_read() {
    let mut document = office();
    let nested = (0..90).fold(json!(vec![1; 90_000]), |value, _| json!([value]));
    for tool in [LIST, UPDATE] {
        document["tools"][tool]["input_schema"] = json!({"const": nested});
    }
    let text = lock(&document).to_text();
    assert!(text.len() > 32 << 20, "{}", text.len());
    let report = ToolLock::parse(&text).unwrap().compare(&lock(&document));
    assert!(report.is_current(), "{report}");
}

#[test]
fn cycles_explosions_and_many_tools_are_bounded() {
    let with = |schema: Value| {
        let mut document = office();
        document["tools"][LIST]["input_schema"] = schema;
        document
    };
    let verdict_of = |old: Value, new: Value| {
        let report = lock(&with(old)).compare(&lock(&with(new)));
        assert!(report.to_string().len() < 100_000);
        (verdict(&report), report.to_string())
    };
    let tree = |leaf: &str| {
        json!({"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"value": {"type": leaf},
            "next": {"$ref": "#/$defs/N"}, "all": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}}})
    };
    assert_eq!(verdict_of(tree("string"), tree("integer")).0, "major");
    assert_eq!(
        verdict_of(json!({"$ref": "#"}), json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})).0,
        "major review"
    );
    let exploding = |leaf: &str| {
        let mut definitions = Map::new();
        for at in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            definitions.insert(format!("d{at}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
        }
        definitions.insert("d40".to_owned(), json!({"type": leaf}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    };
    let (words, text) = verdict_of(exploding("string"), exploding("integer"));
    assert_eq!(words, "major review", "{text}");
    let mut same = exploding("string");
    same["$defs"]["d40"] = json!({"type": ["string"]});
    assert_eq!(verdict_of(exploding("string"), same).0, "patch");
    let mut wide = Map::new();
    (0..3_000).for_each(|at| drop(wide.insert(format!("argument_{at}"), json!({"type": "string"}))));
    let (words, text) = verdict_of(json!({"type": "object", "properties": wide}), json!({"type": "object"}));
    assert_eq!(words, "major review", "{text}");

    let (one, mut tools) = (office()["tools"][LIST].clone(), Map::new());
    (0..10_000).for_each(|at| drop(tools.insert(format!("many__tool_{at}"), one.clone())));
    let document = json!({"version": 1, "tools": tools});
    let report = lock(&document).compare(&lock(&office()));
    assert_eq!(report.tools().len(), 10_018);
    assert!(report.to_string().lines().count() < 1_100);
}
