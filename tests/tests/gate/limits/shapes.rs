//! Results of many shapes over their limit, in every form in which a result leaves: the model's text, the typed result,
//! and MCP.

use rmcp::handler::client::ClientHandler;
use rmcp::model::CallToolRequestParams;
use rmcp::service::ServiceExt as _;
use tool_runtime::mcp::serve::{McpServer, Peer};

use super::*;

/// A value, the schema that it fits, and the leaves that are shown.
struct Shape {
    name: &'static str,
    value: Value,
    schema: Value,
    paths: &'static [&'static str],
    /// The largest part that is left out whole. A tenth of the limit or less, and the limit has to be used.
    largest: usize,
}

/// Numbers that look drawn by lot, the same each time.
fn drawn(at: usize, below: usize) -> usize {
    (at.wrapping_mul(2_654_435_761) >> 7) % below
}

fn object(properties: &Value) -> Value {
    let required: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

fn text() -> Value {
    json!({"type": "string"})
}

/// Rows whose texts must not be cut.
fn strict_row() -> Value {
    object(&json!({
        "id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
        "state": {"enum": ["open", "shut", "unknown and not to be found out"]},
        "code": {"type": "string", "minLength": 12, "maxLength": 12},
        "at": {"type": "string", "format": "date-time"},
        "mail": {"type": "string", "format": "email"},
    }))
}

fn strict(at: usize) -> Value {
    let state = ["open", "shut", "unknown and not to be found out"][at % 3];
    json!({"id": format!("{at:016x}"), "state": state, "code": format!("c{at:011}"),
        "at": format!("2026-01-02T03:04:{:02}Z", at % 60), "mail": format!("door{at}@example.org")})
}

fn small() -> Value {
    object(&json!({"door": text(), "at": {"type": "integer"}}))
}

fn small_rows(count: usize) -> Value {
    (0..count).map(|at| json!({"door": format!("door {at}"), "at": at})).collect()
}

/// Shapes whose values are about this long.
#[allow(clippy::too_many_lines, reason = "a table")]
fn shapes(bytes: usize) -> Vec<Shape> {
    let shape = |name, value, schema, paths| Shape { name, value, schema, paths, largest: 200 };
    let count = bytes / 30;
    let sealed = |at: usize, size: usize| json!({"key": format!("{at:08x}").repeat(size / 8), "n": at});
    let pair = json!({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2});
    let line = list(&pair);
    let long = |at: usize| "añ\u{1f980}\" ".repeat(at);
    vec![
        shape("small rows", small_rows(count), list(&small()), &["door", "at"]),
        shape(
            "nested",
            json!({"site": {"house": {"rows": small_rows(count), "name": "h"}, "n": 1}}),
            object(&json!({"site": object(&json!({
                "house": object(&json!({"rows": list(&small()), "name": text()})), "n": {"type": "integer"}}))})),
            &["site.house.rows.door", "site.house.rows.at", "site.house.name", "site.n"],
        ),
        shape("one text", json!({"text": "word ".repeat(bytes / 5), "n": 1}),
            object(&json!({"text": text(), "n": {"type": "integer"}})), &["text", "n"]),
        shape("multi-byte text", json!({"text": long(bytes / 10)}), object(&json!({"text": text()})), &["text"]),
        shape(
            "map of texts",
            Value::Object((0..count).map(|at| (format!("key {at}"), json!(format!("value {at}")))).collect()),
            json!({"type": "object", "additionalProperties": text()}),
            &["*"],
        ),
        shape(
            "map of multi-byte texts",
            Value::Object((0..count).map(|at| (format!("Schlüssel {at}"), json!(long(at % 5)))).collect()),
            json!({"type": "object", "additionalProperties": text()}),
            &["*"],
        ),
        Shape {
            largest: 3_100,
            ..shape(
                "uneven rows",
                (0..bytes / 1_000).map(|at| json!({"note": "x".repeat(drawn(at, 3_000)), "at": at})).collect(),
                list(&object(&json!({"note": text(), "at": {"type": "integer"}}))),
                &["note", "at"],
            )
        },
        shape(
            "lists side by side",
            json!({"a": small_rows(count / 2), "b": small_rows(5), "c": small_rows(count / 3), "total": count}),
            object(&json!({"a": list(&small()), "b": list(&small()), "c": list(&small()), "total": {"type": "integer"}})),
            &["a.door", "a.at", "b.door", "b.at", "c.door", "c.at", "total"],
        ),
        shape(
            "fixed pairs",
            (0..bytes / 40).map(|at| json!({"name": format!("p{at}"), "place": [at, at + 1]})).collect(),
            list(&object(&json!({"name": text(), "place": pair}))),
            &["name", "place"],
        ),
        shape(
            "lines of pairs",
            json!([{"name": "a", "line": (0..bytes / 12).map(|at| json!([at, at])).collect::<Value>()}]),
            list(&object(&json!({"name": text(), "line": line}))),
            &["name", "line"],
        ),
        shape(
            "groups of at least three",
            (0..bytes / 200)
                .map(|at| json!({"name": format!("g{at}"), "doors": (0..3 + at % 5).map(|one| json!(format!("door number {one}"))).collect::<Value>()}))
                .collect(),
            list(&object(&json!({"name": text(), "doors": {"type": "array", "items": text(), "minItems": 3}}))),
            &["name", "doors"],
        ),
        Shape {
            largest: 6_000,
            ..shape(
                "large groups of at least three",
                (0..bytes / 2_000)
                    .map(|at| json!({"name": format!("g{at}"), "doors": (0..3).map(|_| json!("d".repeat(1_900))).collect::<Value>()}))
                    .collect(),
                list(&object(&json!({"name": text(), "doors": {"type": "array", "items": text(), "minItems": 3}}))),
                &["name", "doors"],
            )
        },
        Shape {
            largest: 6_100,
            ..shape(
                "large groups of at least three objects",
                (0..bytes / 6_000)
                    .map(|at| {
                        let door = json!({"door": "d".repeat(1_900), "at": at});
                        json!({"name": format!("g{at}"), "doors": [door, door, door]})
                    })
                    .collect(),
                list(&object(&json!({"name": text(), "doors": {"type": "array", "items": small(), "minItems": 3}}))),
                &["name", "doors.door", "doors.at"],
            )
        },
        // The first list has to stay whole, so the other one is cut more than its share.
        shape(
            "a list of a least length next to another one",
            json!({"first": small_rows(150), "rest": small_rows(count), "text": long(bytes / 10)}),
            object(&json!({"first": {"type": "array", "items": small(), "minItems": 150}, "rest": list(&small()), "text": text()})),
            &["first.door", "first.at", "rest.door", "rest.at", "text"],
        ),
        shape(
            "first three and the rest",
            json!({"first": small_rows(3), "rest": small_rows(count)}),
            object(&json!({"first": {"type": "array", "items": small(), "minItems": 3, "maxItems": 3}, "rest": list(&small())})),
            &["first.door", "first.at", "rest.door", "rest.at"],
        ),
        shape("strict rows", (0..bytes / 150).map(strict).collect(), list(&strict_row()),
            &["id", "state", "code", "at", "mail"]),
        Shape {
            largest: 2_100,
            ..shape(
                "rows with long keys",
                (0..bytes / 2_000).map(|at| sealed(at, 2_000)).collect(),
                list(&object(&json!({"key": {"type": "string", "pattern": "^[0-9a-f]+$"}, "n": {"type": "integer"}}))),
                &["key", "n"],
            )
        },
        Shape {
            largest: 9_000,
            ..shape(
                "rows with longer keys",
                (0..=bytes / 9_000).map(|at| sealed(at, 8_960)).collect(),
                list(&object(&json!({"key": {"type": "string", "pattern": "^[0-9a-f]{8960}$"}, "n": {"type": "integer"}}))),
                &["key", "n"],
            )
        },
        shape(
            "a strict row with a text",
            json!({"row": strict(1), "text": long(bytes / 10)}),
            object(&json!({"row": strict_row(), "text": text()})),
            &["row.id", "row.state", "row.code", "row.at", "row.mail", "text"],
        ),
        shape(
            "strict rows next to a text",
            json!({"rows": (0..bytes / 300).map(strict).collect::<Value>(), "text": long(bytes / 20)}),
            object(&json!({"rows": list(&strict_row()), "text": text()})),
            &["rows.id", "rows.state", "rows.code", "rows.at", "rows.mail", "text"],
        ),
        Shape {
            largest: 1_700,
            ..shape(
                "texts in strict rows",
                (0..bytes / 1_700).map(|at| json!({"row": strict(at), "text": long(150)})).collect(),
                list(&object(&json!({"row": strict_row(), "text": text()}))),
                &["row.id", "row.state", "row.code", "row.at", "row.mail", "text"],
            )
        },
        shape(
            "a text of at least half",
            json!({"text": "word ".repeat(bytes / 5)}),
            object(&json!({"text": {"type": "string", "minLength": 1_000}})),
            &["text"],
        ),
        shape(
            "optional lists",
            json!({"rows": small_rows(count)}),
            object(&json!({"rows": {"type": ["array", "null"], "items": small()}})),
            &["rows.door", "rows.at"],
        ),
        shape("numbers", (0..bytes / 5).map(|at| json!(1_000 + at)).collect(), list(&json!({"type": "integer"})), &["$"]),
        shape(
            "maps in rows",
            (0..bytes / 120)
                .map(|at| json!({"id": format!("{at:016x}"), "tags": {"a": "b".repeat(at % 40), "c": "d"}}))
                .collect(),
            list(&object(&json!({"id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
                "tags": {"type": "object", "additionalProperties": text()}}))),
            &["id", "tags.*"],
        ),
        // The text in front is cut, and the value behind it stays strict.
        shape(
            "a text before strict rows",
            json!([{"text": long(bytes / 10), "row": strict(0)}, {"text": "", "row": strict(1)}]),
            list(&object(&json!({"text": text(), "row": strict_row()}))),
            &["text", "row.id", "row.state", "row.code", "row.at", "row.mail"],
        ),
    ]
}

struct Gives(Value);

#[async_trait]
impl DynamicHandler for Gives {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(self.0.clone())
    }
}

#[derive(Clone)]
struct Guest;

impl ClientHandler for Guest {}

fn runner(shape: &Shape, limit: usize) -> ToolRunner {
    let tool = DynamicTool::new(
        "limits__shape",
        "Gives a value.",
        json!({"type": "object", "properties": {}}),
        ToolEffect::ReadOnly,
        Arc::new(Gives(shape.value.clone())),
    );
    let tool = tool.output_schema(shape.schema.clone()).redact(shape.paths.iter().copied()).max_result_bytes(limit);
    let catalog =
        ToolCatalog::builder().dynamic(tool).build().unwrap_or_else(|error| panic!("{}: {error}", shape.name));
    ToolRunner::builder(catalog, ToolPolicy::allow(["limits__shape"])).build().expect("a runner")
}

/// Returns the first violation of the schema by a projected value, or a mark of an omission in its data.
fn misfit(schema: &Value, value: &Value) -> Option<String> {
    let validator = jsonschema::options().should_validate_formats(true).build(schema).expect("a schema");
    let found =
        validator.iter_errors(value).next().map(|error| format!("{} at {}", error.masked(), error.instance_path()));
    found.or_else(|| {
        let text = value.to_string();
        let marked = [" more items]", " more bytes]"].iter().any(|mark| text.contains(mark));
        marked.then(|| "a mark in the data".to_owned())
    })
}

/// Returns the defects of one shape at one limit.
async fn wrong(shape: &Shape, limit: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let runner = runner(shape, limit);
    let result = runner.run(RunOptions::new()).exec(ToolCall::text("c", "limits__shape", "{}")).await;
    let Some(shown) = result.value() else { return vec![format!("{}", result.outcome().code())] };
    let (value, model) = (serde_json::from_str::<Value>(shown.get()).expect("JSON"), result.to_model());
    wrong.extend(misfit(&shape.schema, &value).map(|what| format!("typed: {what}")));
    let left_out = result.left_out();
    let is_whole = left_out.items + left_out.bytes == 0;
    if is_whole != (value == shape.value) {
        wrong.push("cut without a count".to_owned());
    }
    // In places, the model's text ends with its own count. The value for everybody else is a little shorter.
    let used = [("model", model.len()), ("typed", shown.get().len())];
    for (door, used) in used.into_iter().filter(|_| !is_whole) {
        let least =
            if shape.largest * 10 <= limit { limit * 9 / 10 } else { limit.saturating_sub(shape.largest + limit / 10) };
        if used > limit || used < least {
            wrong.push(format!("{door}: {used} of {limit} bytes"));
        }
    }
    if !is_whole && !model.contains(" more ") {
        wrong.push("model: no count".to_owned());
    }

    let server = McpServer::builder(runner, |_: &Peer<'_>| Some(RunOptions::new())).build().expect("a server");
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(async move { server.stream(read, write).await });
    let client = Guest.serve(ours).await.expect("a handshake");
    let listed = client.list_all_tools().await.expect("tools").remove(0);
    let published = listed.output_schema.map(|schema| Value::Object((*schema).clone())).expect("an output schema");
    let answer = client.call_tool(CallToolRequestParams::new("limits__shape")).await.expect("an answer");
    match &answer.structured_content {
        Some(content) => {
            wrong.extend(misfit(&published, content).map(|what| format!("MCP: {what}")));
            let inner = content.get("result").filter(|_| shape.value.is_array()).unwrap_or(content);
            if *inner != value {
                wrong.push("MCP: another value".to_owned());
            }
        }
        None => wrong.push("MCP: no structured content".to_owned()),
    }
    client.cancel().await.expect("it ends");
    wrong
}

#[tokio::test]
async fn every_shape_uses_its_limit_and_fits_its_schema() {
    let (mut seen, mut found) = (0, Vec::new());
    for bytes in [33_000, 100_000] {
        for shape in shapes(bytes) {
            assert_eq!(misfit(&shape.schema, &shape.value), None, "{}", shape.name);
            for limit in [8_192, 32_768] {
                seen += 1;
                let wrong = wrong(&shape, limit).await;
                found.extend(wrong.into_iter().map(|what| format!("{} of {bytes} at {limit}: {what}", shape.name)));
            }
        }
    }
    assert!(seen >= 100 && found.is_empty(), "{} of {seen}:\n{}", found.len(), found.join("\n"));
}
