//! Arguments as the model wrote them: what records and approvals repeat, which calls are the same, and input that is
//! made to be slow.

use std::collections::BTreeMap;
use tests::Shown as _;

use tool_runtime::ToolInvocationRecord;

use super::*;

/// Takes anything.
#[tool(name = "written__free", effect = read_only, redact = ["$"])]
fn free(
    /// What is given.
    fields: Option<BTreeMap<String, Option<f64>>>,
    /// A list.
    list: Option<Vec<f64>>,
    /// A text without repetitions at its end.
    #[schemars(regex(pattern = r"^(?=.)(a+)+b$"))]
    text: Option<String>,
    /// A number.
    #[serde(default = "one")]
    number: f64,
) -> Result<usize, ToolError> {
    let listed = list.map_or(0, |list| list.len());
    Ok(listed + fields.map_or(0, |fields| fields.len()) + text.map_or(0, |text| text.len()) + usize::from(number > 1.0))
}

const fn one() -> f64 {
    1.0
}

/// Keeps a note.
#[tool(name = "written__keep", effect = state_change, redact = ["$"])]
fn keep(
    /// The id of the note.
    note_id: String,
) -> Result<String, ToolError> {
    Ok(note_id)
}

/// Keeps notes of somebody.
#[tool(name = "written__keep_all", effect = read_only, redact = ["$"])]
fn keep_all(
    /// Whose notes they are.
    #[arg(sensitive)]
    owner_id: String,
    /// The ids of the notes.
    note_ids: Vec<String>,
) -> Result<usize, ToolError> {
    Ok(owner_id.len() + note_ids.len())
}

fn wide() -> ToolPolicy {
    let policy = json!({
        "allowed_tools": ["written__free", "written__keep"],
        "budgets": {"default": {"max_argument_bytes": 1 << 21}},
        "require_approval_for_tools": ["written__keep"],
        "limits": {"argument_depth": 128},
    });
    ToolPolicy::from_json(&policy.to_string()).expect("a policy")
}

fn shown(record: &ToolInvocationRecord) -> &str {
    record.shown_arguments().expect("they were read").get()
}

#[tokio::test]
async fn a_record_repeats_what_the_model_wrote_on_one_line() {
    let rig = rig(wide());
    for (id, written, expected) in [
        ("spelled", r#"{ "number": 1e0, "fields": {"b": 1.50, "\u00e9": 2} }"#, None),
        (
            "lines",
            "{\n  \"number\": 1e0,\r\n\t\"fields\": {\"b\": 1.50}\n}",
            Some(r#"{"fields":{"b":1.5},"number":1}"#),
        ),
        ("around", "  {\"number\": 2}", Some(r#"{"number":2}"#)),
        ("empty", "", Some("{}")),
        ("wrong", r#"{ "number": "x" }"#, None),
        ("wrong lines", "{ \"number\":\n\"x\" }", Some(r#"{"number":"x"}"#)),
    ] {
        rig.exec(id, "written__free", written).await;
        let records = rig.records().await;
        let record = records.iter().find(|record| record.tool_call_id.as_str() == id).expect("a record");
        assert_eq!(shown(record), expected.unwrap_or(written), "{id}");
        assert_eq!(serde_json::to_string(record).expect("JSON").lines().count(), 1, "{id}");
    }
}

#[tokio::test]
async fn what_is_approved_is_canonical_and_trimmed() {
    let rig = rig(wide());
    rig.exec("c", "written__keep", r#"{ "note_id": " n1 " }"#).await;
    let pending = tests::pending_calls(&*rig.store, &RecordFilter::default()).await;
    assert_eq!(pending[0].arguments(), r#"{"note_id":"n1"}"#);
    assert_eq!(pending[0].shown_arguments.get(), r#"{"note_id":"n1"}"#);
    rig.run.resume_shown("c", ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!(shown(&rig.records().await[0]), r#"{"note_id":"n1"}"#);
}

/// A record shows that arguments were read differently from their text, and where, without their values.
#[tokio::test]
async fn a_record_names_what_was_read_differently() {
    let policy = json!({
        "allowed_tools": ["written__free", "written__keep", "written__keep_all"],
        "require_approval_for_tools": ["written__keep"],
        "repair": {"allowed": ["trailing_junk"], "require_approval": false},
    });
    let rig = rig(ToolPolicy::from_json(&policy.to_string()).expect("a policy"));
    for (id, name, written, expected) in [
        ("as it came", "written__free", r#"{ "number": 1e0 }"#, &[][..]),
        ("lines", "written__free", "{\n\"number\": 1e0}", &[]),
        ("trimmed", "written__keep_all", r#"{"owner_id":"o","note_ids":["n1"," n2"]}"#, &["trimmed /note_ids"]),
        ("sensitive", "written__keep_all", r#"{"owner_id":" canary","note_ids":["n1"]}"#, &["trimmed /owner_id"]),
        ("repaired", "written__free", r#"{"number": 2,}"#, &["repaired"]),
        // The incident: a blank id, which is refused.
        ("refused", "written__keep", r#"{"note_id":": "}"#, &["trimmed /note_id"]),
        ("waits", "written__keep", r#"{"note_id":" n1"}"#, &["trimmed /note_id"]),
        // The length and the digest are those of the text that came.
        ("unread", "written__free", "{ canary", &[]),
    ] {
        rig.exec(id, name, written).await;
        let records = rig.records().await;
        let record = records.iter().find(|record| record.tool_call_id.as_str() == id).expect("a record");
        let found: Vec<_> =
            record.changes.iter().map(|one| format!("{} {}", one.kind(), one.pointer).trim().to_owned()).collect();
        assert_eq!(found, expected, "{id}");
        let document = serde_json::to_value(record).expect("JSON");
        assert!(!document.to_string().contains("canary"), "{document}");
        assert_eq!(document.get("changes").is_some(), !expected.is_empty(), "{id}");
        let values = document["changes"].as_array().into_iter().flatten();
        assert!(values.into_iter().all(|one| one.as_object().is_some_and(|one| one.len() == 2)), "{document}");
        // A record of an earlier version has no such list.
        let mut earlier = document;
        earlier.as_object_mut().expect("an object").remove("changes");
        let read: ToolInvocationRecord = serde_json::from_value(earlier).expect("it reads");
        assert!(read.changes.is_empty());
    }
    rig.run.resume_shown("waits", ApprovalDecision::Approve, &grace()).await.expect("it waits");
    let records = rig.records().await;
    let waited = records.iter().find(|record| record.tool_call_id.as_str() == "waits").expect("a record");
    assert!(waited.ended_at.is_some() && waited.changes[0].pointer == "/note_id");
}

#[tokio::test]
async fn one_call_in_other_words_is_the_same_call() {
    let first = r#"{"fields":{"a":1,"a longer name than a word":2},"list":[1,2,3],"number":1}"#;
    for (same, second) in [
        (true, first),
        (true, r#"{"number": 1.0, "list": [1, 2, 3], "fields": {"a longer \u006eame than a word": 2e0, "a": 1}}"#),
        (true, r#"{"fields":{"a":1,"a longer name than a word":2},"list":[1,2,3]}"#),
        (true, r#"{"fields":{"a":1,"a longer name than a word":2,"c":null},"list":[1,2,3],"number":1,"text":null}"#),
        // The same length, and the same ends.
        (false, r#"{"fields":{"a":1,"a longer same than a word":2},"list":[1,2,3],"number":1}"#),
        (false, r#"{"fields":{"a":1,"a longer name than a word":2},"list":[1,7,3],"number":1}"#),
        (false, r#"{"fields":{"a":1,"a longer name than a word":2},"list":[1,2,3],"number":2}"#),
        (false, r#"{"fields":{"a":1,"a longer name than a word":2,"c":0},"list":[1,2,3],"number":1}"#),
    ] {
        let rig = rig(wide());
        assert!(!rig.exec("1", "written__free", first).await.to_model().contains("Note:"));
        let noted = rig.exec("2", "written__free", second).await.to_model().contains("Note:");
        assert_eq!(noted, same, "{second}");
    }
}

#[tokio::test]
async fn input_that_is_made_to_be_slow_is_bounded() {
    let rig = rig(wide());
    let key = "k".repeat(48);
    let members = |count: usize| (0..count).map(|at| format!("\"{key}{at:08}\":{at}")).collect::<Vec<_>>().join(",");
    let many = members(15_000);
    let nested = |depth: usize| format!(r#"{{"fields":{{"a":{}1{}}}}}"#, "[".repeat(depth), "]".repeat(depth));
    let digits = "1".repeat(10_000);
    let backtracks = format!("{}c", "a".repeat(20_000));
    for (at, (arguments, expected)) in [
        (format!(r#"{{"fields":{{{many}}}}}"#), Outcome::Ok),
        (format!(r#"{{"fields":{{{many},"{key}00000000":1}}}}"#), Outcome::InvalidJson),
        // 128 with the two objects around them.
        (nested(126), Outcome::ValidationError),
        (nested(127), Outcome::LimitExceeded),
        (nested(8_192), Outcome::LimitExceeded),
        (format!(r#"{{"text":"{backtracks}"}}"#), Outcome::ValidationError),
        (r#"{"text":"aaab"}"#.to_owned(), Outcome::Ok),
        (format!(r#"{{"number":{digits}}}"#), Outcome::InvalidJson),
        (format!(r#"{{"number":{digits}.5}}"#), Outcome::InvalidJson),
        (format!(r#"{{"number":1.{digits}}}"#), Outcome::Ok),
        (format!(r#"{{"number":1e{digits}}}"#), Outcome::InvalidJson),
        (format!(r#"{{"number":1e-{digits}}}"#), Outcome::Ok),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("call_{at}");
        let result = rig.exec(&id, "written__free", &arguments).await;
        assert_eq!(result.outcome(), expected, "{at}: {}", arguments.get(..60).unwrap_or(&arguments));
        rig.settled(&rig.records().await, &id, expected);
    }
}
