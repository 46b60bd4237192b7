//! Results over their limit: how much of the limit the shortened result uses, which items stay, and where the count of
//! the omitted items is.

mod shapes;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tool_runtime::__workspace::Projector;
use tool_runtime::media::Media;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{
    Outcome, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolEffect, ToolError, ToolExecResult, ToolPolicy,
    ToolRunner, WithMedia, tool,
};

/// A row. The length of each member differs from row to row.
fn row(at: usize) -> Value {
    json!({"door": format!("door {at}"), "at": at, "open": at.is_multiple_of(3), "note": "é\n\"".repeat(at % 7)})
}

fn rows(count: usize) -> Value {
    (0..count).map(row).collect()
}

const LIMITS: [usize; 4] = [4_096, 10_000, 32_768, 50_000];

/// Projects a value over its limit; returns the shown form, the model's form, and the omitted items and bytes.
#[track_caller]
fn cut(paths: &[&str], value: &Value, limit: usize) -> (Value, String, usize, usize) {
    let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
    let projected = Projector::without_schema(&paths, &[]).project(value, limit).expect("it can be cut");
    let (shown, model) = (projected.shown.get(), projected.model.as_ref().expect("marks").get());
    assert!(shown.len() <= limit && model.len() <= limit, "{} and {} of {limit}", shown.len(), model.len());
    assert!(model.len() * 10 >= limit * 9, "{} of {limit} are used", model.len());
    assert!(!shown.contains(" more items]") && !shown.contains(" more bytes]"));
    serde_json::from_str::<Value>(model).expect("what the model reads is JSON");
    let left_out = projected.left_out();
    (serde_json::from_str(shown).expect("what is shown is JSON"), model.to_owned(), left_out.items, left_out.bytes)
}

/// Each is one of the whole, in its order.
#[track_caller]
fn are_of(kept: &[Value], whole: &Value) {
    let mut rest = whole.as_array().unwrap().iter();
    assert!(kept.iter().all(|one| rest.any(|other| other == one)), "whole items in their order");
}

#[test]
fn rows_stay_whole_and_the_others_are_counted() {
    let paths = ["door", "at", "open", "note"];
    for limit in LIMITS {
        for times in [2, 3, 10] {
            let whole = rows(limit * times / 60);
            let (shown, model, items, bytes) = cut(&paths, &whole, limit);
            let kept = shown.as_array().unwrap();
            are_of(kept, &whole);
            assert_eq!((kept.len() + items, bytes), (whole.as_array().unwrap().len(), 0));
            assert!(model.ends_with(&format!(",\"[{items} more items]\"]")), "{model}");
        }
    }
}

#[test]
fn a_byte_over_the_limit_drops_a_few_items_only() {
    let numbers: Value = (0..1_000).map(|at| json!(1_000 + at)).collect();
    let length = numbers.to_string().len();
    let projector = Projector::without_schema(&["$".to_owned()], &[]);
    assert!(projector.project(&numbers, length).unwrap().model.is_none());
    let (shown, _, items, _) = cut(&["$"], &numbers, length - 1);
    assert!((1..6).contains(&items) && shown.as_array().unwrap().len() == 1_000 - items, "{items}");
}

#[test]
fn every_limit_is_kept() {
    let whole = json!({"rows": rows(40), "title": "t".repeat(300), "count": 40});
    let paths = ["rows.door", "rows.at", "rows.note", "title", "count"].map(ToOwned::to_owned);
    let projector = Projector::without_schema(&paths, &[]);
    for limit in 0..4_000 {
        let Ok(projected) = projector.project(&whole, limit) else {
            assert!(limit < 150, "{limit}");
            continue;
        };
        let texts = [Some(projected.shown.get()), projected.model.as_ref().map(tool_runtime::call::JsonText::get)];
        assert!(texts.into_iter().flatten().all(|text| text.len() <= limit), "{limit}");
        let shown: Value = serde_json::from_str(projected.shown.get()).unwrap();
        assert!(shown["count"] == 40 && shown["title"].is_string(), "{limit}: {shown}");
        let doors = shown["rows"].as_array().unwrap().iter().all(|row| row["at"].is_u64());
        assert!(doors, "{limit}: {shown}");
    }
}

#[test]
fn nested_rows_and_maps_use_their_limit() {
    for limit in LIMITS {
        let groups: Value =
            (0..limit / 300).map(|at| json!({"name": format!("group {at}"), "rows": rows(11)})).collect();
        let (shown, _, items, _) = cut(&["name", "rows.door", "rows.at", "rows.open", "rows.note"], &groups, limit);
        let kept = shown.as_array().unwrap();
        // Where a group is a good part of the limit, the last one is cut itself.
        let (last, whole) = kept.split_last().unwrap();
        are_of(whole, &groups);
        are_of(last["rows"].as_array().unwrap(), &rows(11));
        let missing = 11 - last["rows"].as_array().unwrap().len();
        assert_eq!(kept.len() + items, groups.as_array().unwrap().len() + missing);

        let map: Map<String, Value> = (0..limit / 20).map(|at| (format!("key {at}"), row(at))).collect();
        let whole = Value::Object(map.clone());
        let (shown, _, items, _) = cut(&["*.door", "*.at", "*.open", "*.note"], &whole, limit);
        let kept = shown.as_object().unwrap();
        assert!(kept.iter().all(|(name, value)| map[name] == *value));
        assert_eq!(kept.len() + items, map.len());

        // One group with all the rows: its own rows are left out.
        let (shown, ..) = cut(&["name", "rows.at", "rows.door"], &json!([{"name": "all", "rows": rows(limit)}]), limit);
        assert_eq!(shown[0]["name"], "all");
    }
}

#[test]
fn long_texts_share_what_short_members_leave() {
    for limit in LIMITS {
        let (long, short) = ("añ\"".repeat(limit), "x".repeat(20));
        let (shown, model, items, bytes) = cut(&["$"], &json!(long), limit);
        let kept = shown.as_str().unwrap();
        assert!(long.starts_with(kept) && kept.len() + bytes == long.len() && items == 0);
        assert!(model.ends_with(&format!("[{bytes} more bytes]\"")));

        let whole = json!({"a": long, "b": long, "rows": rows(limit), "short": short, "n": 7});
        let (shown, ..) = cut(&["a", "b", "rows.at", "short", "n"], &whole, limit);
        assert_eq!((&shown["short"], &shown["n"]), (&json!(short), &json!(7)));
        for one in [shown["a"].to_string(), shown["b"].to_string(), shown["rows"].to_string()] {
            assert!(one.len() * 4 > limit, "each has its share: {} of {limit}", one.len());
        }

        let texts: Value = (0..limit).map(|at| json!("words ".repeat(at % 5 + 1))).collect();
        let (shown, _, items, bytes) = cut(&["$"], &texts, limit);
        are_of(shown.as_array().unwrap(), &texts);
        assert!(items > 0 && bytes == 0, "short texts are left out whole");

        // Values behind a long text stay.
        let (shown, _, items, bytes) = cut(&["$"], &json!(["first", long, "last"]), limit);
        assert_eq!((&shown[0], &shown[2], items), (&json!("first"), &json!("last"), 0));
        assert!(bytes > 0);
    }
}

/// A door that opened.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Door {
    /// Its name.
    door: String,
    /// When.
    #[schemars(regex(pattern = r"^\d{4}-\d\d-\d\d .{30}$"))]
    when: String,
}

fn doors() -> Vec<Door> {
    (0..2_000).map(|at| Door { door: format!("door {at}"), when: format!("2026-01-02 {at:030}") }).collect()
}

/// Doors.
#[tool(name = "limits__doors", effect = read_only, redact = ["door", "when"])]
fn opened() -> Result<Vec<Door>, ToolError> {
    Ok(doors())
}

/// Doors by name.
#[tool(name = "limits__by_name", effect = read_only, redact = ["*.when"])]
fn by_name() -> Result<BTreeMap<String, Door>, ToolError> {
    Ok(doors().into_iter().map(|door| (door.door.clone(), door)).collect())
}

/// Doors, with a file.
#[tool(name = "limits__media", effect = read_only, redact = ["door", "$media"])]
fn media() -> Result<WithMedia<Vec<Door>>, ToolError> {
    Ok(WithMedia::new(doors()).media(Media::bytes("text/plain", b"a log").expect("media")))
}

/// Three at least.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Three {
    /// Texts.
    #[schemars(length(min = 3))]
    texts: Vec<String>,
}

/// What cannot be cut.
#[tool(name = "limits__three", effect = read_only, redact = ["texts"])]
fn three() -> Result<Three, ToolError> {
    Ok(Three { texts: vec!["x".repeat(30_000); 3] })
}

/// A payload that a client executes.
#[tool(name = "limits__client", effect = read_only, redact = ["$"], execution = client, client_result = bool,
    prepare = ["$"])]
fn prepared() -> Result<Vec<String>, ToolError> {
    Ok(vec!["step".to_owned(); 10_000])
}

struct Rows;

#[async_trait]
impl DynamicHandler for Rows {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(json!({"rows": rows(2_000), "total": 2_000}))
    }
}

fn catalog() -> ToolCatalog {
    let schema = json!({"type": "object", "properties": {}});
    let dynamic = DynamicTool::new("limits__dynamic", "Rows.", schema, ToolEffect::ReadOnly, Arc::new(Rows)).redact([
        "rows.door",
        "rows.at",
        "total",
    ]);
    ToolCatalog::builder().collect().namespaces(["limits"]).dynamic(dynamic).build().expect("a catalog")
}

#[tokio::test]
async fn a_result_counts_the_items_that_were_left_out() {
    let store = Arc::new(MemoryStore::new());
    let names = ["doors", "by_name", "media", "three", "client", "dynamic"].map(|name| format!("limits__{name}"));
    let policy = ToolPolicy::allow(names.iter().map(String::as_str));
    let runner = ToolRunner::builder(catalog(), policy).store(Arc::clone(&store)).build().expect("a runner");
    let run = runner.run(RunOptions::new());
    for name in ["limits__doors", "limits__by_name", "limits__media", "limits__dynamic"] {
        let result = run.exec(ToolCall::text(name, name, "{}")).await;
        assert_eq!(result.outcome(), Outcome::Ok, "{name}");
        let value: Value = serde_json::from_str(result.value().unwrap().get()).unwrap();
        let kept = match &value {
            Value::Object(members) => members.get("rows").map_or(members.len(), |rows| rows.as_array().unwrap().len()),
            rows => rows.as_array().unwrap().len(),
        };
        assert_eq!((kept + result.left_out().items, result.left_out().bytes), (2_000, 0), "{name}");
        let length = result.value().unwrap().get().len();
        assert!((29_492..=32_768).contains(&length), "{name}: {length}");
        assert!(!value.to_string().contains("more items"));
        let model = result.to_model();
        assert!(model.contains(&format!("[{} more items]", result.left_out().items)), "{name}");
        assert_eq!(result.media().len(), usize::from(name == "limits__media"));

        // The count outlives the process that cut the value.
        let saved = serde_json::to_string(&result).unwrap();
        let saved: ToolExecResult = serde_json::from_str(&saved).unwrap();
        assert_eq!(saved.left_out(), result.left_out());
        assert!(saved.to_model().contains("more items did not fit into the result.]"), "{name}");
        let records = store.calls(&RecordFilter::call(run.id(), name.into())).await;
        assert_eq!(records.unwrap()[0].left_out, result.left_out());
    }
    for name in ["limits__three", "limits__client"] {
        let result = run.exec(ToolCall::text(name, name, "{}")).await;
        assert_eq!((result.outcome(), result.executed()), (Outcome::ResultTooLarge, true), "{name}");
    }
}
