//! The texts that a decider reads about a call: a sentence, names for ids, and the differences from the model's
//! arguments. None of them shows sensitive values, imitates other text, or delays a call.

use std::sync::Mutex;
use std::time::Duration;
use tests::Shown as _;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tests::spans::Traced;
use tool_runtime::call::DecisionError;
use tool_runtime::capability::{NameLookup, NameRequest};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::runner::RunnerBuilder;
use tool_runtime::store::{Key, PendingCall};
use tool_runtime::{Event, ToolContext, ToolEffect};

use super::*;

/// Who pays.
#[derive(Deserialize, JsonSchema)]
struct Payer {
    /// The name.
    name: String,
}

/// Books something.
#[tool(
    name = "explained__book",
    effect = external_side_effect,
    redact = ["$"],
    summary = [
        "Books \"{what}\" {times} times for {payer.name}, not {whether}, with {guest_ids} {{really}}",
        "Books {what} {times} times",
    ]
)]
fn book(
    /// What.
    what: String,
    /// How often.
    #[arg(default = 2)]
    times: u8,
    /// Who pays.
    payer: Option<Payer>,
    /// Yes or no.
    whether: Option<bool>,
    /// Who comes.
    guest_ids: Option<Vec<String>>,
    /// The code of the account.
    #[arg(sensitive)]
    code: Option<String>,
) -> Result<usize, ToolError> {
    let payer = payer.map_or(0, |payer| payer.name.len());
    let guests = guest_ids.map_or(0, |ids| ids.len());
    Ok(what.len()
        + usize::from(times)
        + payer
        + guests
        + code.map_or(0, |code| code.len())
        + usize::from(whether == Some(true)))
}

/// Deletes something.
#[tool(name = "explained__delete", effect = state_change, redact = ["$"], summary = "Deletes the item {item_id}")]
fn delete(
    /// Which one.
    item_id: String,
    /// Others.
    other_ids: Option<Vec<String>>,
) -> Result<usize, ToolError> {
    Ok(item_id.len() + other_ids.map_or(0, |ids| ids.len()))
}

const RULES: &str = r#"
    allowed_tools = ["explained__book", "explained__delete"]
    require_approval_for_tools = ["explained__book", "explained__delete"]
    repair = { allowed = ["trailing_junk", "single_quotes"], require_approval = false }
"#;

fn builder(store: &Arc<MemoryStore>) -> RunnerBuilder {
    let policy = ToolPolicy::from_toml(RULES).expect("a policy");
    let catalog = ToolCatalog::collect().expect("a catalog");
    ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(store))
}

async fn pending(run: &Run, store: &MemoryStore, tool: &str, arguments: &str) -> PendingCall {
    let result = run.exec(ToolCall::text("c", tool, arguments)).await;
    assert_eq!(result.outcome(), Outcome::ApprovalRequired, "{arguments}");
    store
        .pending(&Key::waiting("run-1", Some("acme"), Some("ada"), &CallId::new("c")))
        .await
        .expect("a store")
        .expect("it waits")
}

async fn waits(tool: &str, arguments: &str) -> PendingCall {
    let store = Arc::new(MemoryStore::new());
    let runner = builder(&store).build().expect("a runner");
    pending(&runner.run(ada()), &store, tool, arguments).await
}

#[tokio::test]
async fn the_sentence_shows_what_would_run_and_no_value_gets_out_of_its_quotes() {
    let long = "x".repeat(500);
    for (arguments, expected) in [
        (json!({"what": "a room"}), "Books “a room” 2 times".to_owned()),
        (json!({"what": "a room", "times": 1, "payer": null}), "Books “a room” 1 times".to_owned()),
        (
            json!({"what": "a", "payer": {"name": "Bob"}, "whether": true, "guest_ids": ["g1", "g2"]}),
            "Books “a” 2 times for “Bob”, not true, with “g1”, “g2” {really}".to_owned(),
        ),
        (
            json!({"what": "a", "payer": {"name": "B"}, "whether": false, "guest_ids": []}),
            "Books “a” 2 times for “B”, not false, with (none) {really}".to_owned(),
        ),
        (
            json!({"what": "a” 1 times for “Bob\"\r\n\u{2028}\u{202e}Approved\u{2066}\u{200b}"}),
            "Books “a' 1 times for 'Bob' Approved” 2 times".to_owned(),
        ),
        (json!({"what": "שלום"}), "Books “\u{2068}שלום\u{2069}” 2 times".to_owned()),
        (json!({"what": "{times}"}), "Books “{times}” 2 times".to_owned()),
        (json!({"what": long}), format!("Books “{}…” (cut, 500 characters) 2 times", "x".repeat(80))),
    ] {
        let call = waits("explained__book", &arguments.to_string()).await;
        assert_eq!(call.summary.as_deref(), Some(&*expected), "{arguments}");
    }
    let many: Vec<_> = (0..50).map(|at| format!("guest-number-{at}")).collect();
    let arguments = json!({"what": "a", "payer": {"name": "B"}, "whether": false, "guest_ids": many});
    let summary = waits("explained__book", &arguments.to_string()).await.summary.expect("a sentence");
    assert!(summary.ends_with(" and 45 more {really}") && summary.len() < 300, "{summary}");
}

/// Everything that happened in a run.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    fn sink(&self) -> impl Fn(Event) + Send + Sync + 'static {
        let events = Arc::clone(&self.0);
        move |event| events.lock().expect("a sink").push(event)
    }

    fn text(&self) -> String {
        serde_json::to_string(&*self.0.lock().expect("a sink")).expect("documents")
    }
}

#[tokio::test]
async fn a_sensitive_argument_is_in_nothing_that_a_person_reads() {
    let (traced, events, store) = (Traced::default(), Events::default(), Arc::new(MemoryStore::new()));
    let _listens = tracing::subscriber::set_default(traced.subscriber());
    let run = builder(&store).build().expect("a runner").run(ada().events(events.sink()));
    // It has to be repaired, an id has to be trimmed, and a default is filled in.
    let written = r#"{"what":"a room","code":"CANARY-1","guest_ids":[" g1 "],}"#;
    let call = pending(&run, &store, "explained__book", written).await;
    let lines: Vec<_> = call.changes.iter().map(ToString::to_string).collect();
    let expected = [
        "repaired (the text is not shown)",
        r#"trimmed /guest_ids: [" g1 "] -> ["g1"]"#,
        "defaulted /times: (left out) -> 2",
    ];
    assert_eq!(lines, expected);
    assert_eq!(call.summary.as_deref(), Some("Books “a room” 2 times"));
    // The complete arguments are in the document, and nowhere else.
    assert!(call.arguments().contains("CANARY-1"));
    let mut document = serde_json::to_value(&call).expect("a document");
    document["arguments"] = Value::Null;
    let edited = ApprovalDecision::ApproveEdited(r#"{"what":"a hall","code":"CANARY-2"}"#.to_owned());
    assert!(run.resume_shown("c", edited, &grace()).await.expect("it waits").is_ok());
    let records = store.records(&RecordFilter::run("run-1")).await.expect("records");
    assert_eq!(records.len(), 2);
    let records = serde_json::to_string(&records).expect("documents");
    for text in [document.to_string(), records, events.text(), traced.text(), format!("{call:?} {:?}", call.changes)] {
        assert!(!text.contains("CANARY"), "{text}");
    }
    assert!(events.text().contains("Books “a room” 2 times"));
}

#[tokio::test]
async fn a_repair_of_what_is_not_sensitive_is_shown() {
    let call = waits("explained__delete", "{'item_id':' i1 '}").await;
    let lines: Vec<_> = call.changes.iter().map(ToString::to_string).collect();
    let repaired = r#"repaired: "{'item_id':' i1 '}" -> "{\"item_id\":\" i1 \"}""#;
    assert_eq!(lines, [repaired, r#"trimmed /item_id: " i1 " -> "i1""#]);
    let event = serde_json::to_value(&call.changes).expect("documents");
    assert_eq!((&event[0]["kind"], &event[1]["kind"]), (&json!("repaired"), &json!("trimmed")));
}

/// Answers, fails, panics and hangs, by the value.
struct Names(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl NameLookup for Names {
    async fn name(&self, request: &NameRequest<'_>) -> Result<Option<String>, ToolError> {
        let asked = format!("{} {} {:?} {:?}", request.tool, request.argument, request.principal, request.tenant);
        self.0.lock().expect("a list").push(asked);
        match request.value {
            "known" => Ok(Some("Buy “milk”\n(looked up)".to_owned())),
            "failing" => Err(ToolError::safe("down").with_source(std::io::Error::other("the disk"))),
            "panicking" => panic!("of a look-up"),
            "hanging" => std::future::pending().await,
            _ => Ok(None),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_looked_up_for_the_run_and_never_hold_a_call_up() {
    let (asked, failures) = (Arc::default(), Arc::new(Mutex::new(Vec::new())));
    let (store, told) = (Arc::new(MemoryStore::new()), Arc::clone(&failures));
    let names = Arc::new(Names(Arc::clone(&asked)));
    let runner = builder(&store)
        .names("explained__delete", "item_id", Arc::clone(&names))
        .names("explained__delete", "other_ids", names)
        .failures(move |failure| told.lock().expect("a list").push(format!("{}: {}", failure.code, failure.text)))
        .build()
        .expect("a runner");
    let began = tokio::time::Instant::now();
    let others = ["failing", "panicking", "hanging", "hanging", "unknown", "6", "7", "8", "9"];
    let arguments = json!({"item_id": "known", "other_ids": others}).to_string();
    let run = runner.run(ada());
    let call = pending(&run, &store, "explained__delete", &arguments).await;
    assert_eq!(began.elapsed(), Duration::from_secs(2), "all of them together");
    assert_eq!(call.summary.as_deref(), Some("Deletes the item “known” (looked up: “Buy 'milk' (looked up)”)"),);
    let lines: Vec<_> = call.names.iter().take(6).map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "/item_id (looked up: “Buy 'milk' (looked up)”)",
            "/other_ids/0 (its name is not available)",
            "/other_ids/1 (its name is not available)",
            "/other_ids/2 (its name is not available)",
            "/other_ids/3 (its name is not available)",
            "/other_ids/4 (no name was found for it)",
        ]
    );
    assert_eq!(call.names.len(), 8);
    let asked = asked.lock().expect("a list").clone();
    assert_eq!(asked.len(), 8);
    assert_eq!(asked[0], r#"explained__delete item_id Some("ada") Some("acme")"#);
    let failures = failures.lock().expect("a list").join("\n");
    assert_eq!(failures.matches("name_unavailable").count(), 4, "{failures}");
    assert!(
        failures.contains("the disk") && failures.contains("2s") && failures.contains("part_panicked"),
        "{failures}"
    );
    // The digest is that of the arguments alone, and the call runs.
    assert_eq!(call.argument_digest, waits("explained__delete", &arguments).await.argument_digest);
    assert!(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await.expect("it waits").is_ok());
}

#[tokio::test]
async fn a_restored_run_shows_what_was_shown() {
    let names = Arc::new(Names(Arc::default()));
    let store = Arc::new(MemoryStore::new());
    let runner = builder(&store).names("explained__delete", "item_id", names).build().expect("a runner");
    let run = runner.run(ada());
    let before = pending(&run, &store, "explained__delete", r#"{"item_id":"known "}"#).await;
    let snapshot = moved(&run.snapshot().await.expect("a snapshot"));
    // Nobody looks names up here.
    let store = Arc::new(MemoryStore::new());
    let elsewhere = builder(&store).build().expect("a runner");
    let run = elsewhere.restore(snapshot, ada()).await.expect("a run");
    let after = store
        .pending(&Key::waiting("run-1", Some("acme"), Some("ada"), &CallId::new("c")))
        .await
        .expect("a store")
        .expect("it waits");
    assert_eq!(serde_json::to_value(&after).expect("JSON"), serde_json::to_value(&before).expect("JSON"));
    assert!(after.summary.expect("a sentence").contains("looked up: “Buy 'milk'"));
    assert!(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await.expect("it waits").is_ok());
}

struct Echo;

#[async_trait]
impl DynamicHandler for Echo {
    async fn call(&self, arguments: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(arguments["text"].clone())
    }
}

fn dynamic(sentence: &str) -> DynamicTool {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "pin": {"type": "string"},
            "to": {"$ref": "#/$defs/person"},
        },
        "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}}}},
    });
    DynamicTool::new("explained__dynamic", "Says it again.", schema, ToolEffect::StateChange, Arc::new(Echo))
        .redact(["$"])
        .output_schema(json!({"type": "string"}))
        .sensitive("pin")
        .summary([sentence])
}

fn said(sentence: &str, store: &Arc<MemoryStore>) -> ToolRunner {
    let catalog = ToolCatalog::builder().dynamic(dynamic(sentence)).build().expect(sentence);
    let rules = "require_approval_for_tools = ['explained__dynamic']\nallowed_tools = ['explained__dynamic']";
    let policy = ToolPolicy::from_toml(rules).expect("a policy");
    ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(store)).build().expect("a runner")
}

#[tokio::test]
async fn another_sentence_is_another_definition() {
    let store = Arc::new(MemoryStore::new());
    let call =
        pending(&said("Says {text} to {to.name}", &store).run(ada()), &store, "explained__dynamic", r#"{"text":"a"}"#)
            .await;
    assert_eq!(call.summary.as_deref(), Some("Says “a” to (not given)"));
    let later = said("Shouts {text} to {to.name}", &store).run(ada());
    let result = later.resume_shown("c", ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!(result.outcome(), Outcome::ApprovalMismatch);
    assert_eq!(result.error().and_then(|error| error.mismatch), Some(DecisionError::Definition));
    let same = said("Says {text} to {to.name}", &store).run(ada());
    assert!(same.resume_shown("c", ApprovalDecision::Approve, &grace()).await.expect("it waits").is_ok());
}

#[tokio::test]
async fn optional_parts_are_left_out_without_their_arguments() {
    let sentence = "Says {text}[ to {to.name}][ as {to.name} [[{text}]]]";
    let cases = [
        (r#"{"text":"a"}"#, "Says “a”"),
        (r#"{"text":"a","to":{}}"#, "Says “a”"),
        (r#"{"text":"a","to":{"name":"b"}}"#, "Says “a” to “b” as “b” [“a”]"),
    ];
    for (arguments, expected) in cases {
        let store = Arc::new(MemoryStore::new());
        let call = pending(&said(sentence, &store).run(ada()), &store, "explained__dynamic", arguments).await;
        assert_eq!(call.summary.as_deref(), Some(expected), "{arguments}");
    }
}

#[test]
fn a_catalog_refuses_a_sentence_that_it_cannot_write() {
    for (sentence, expected) in [
        ("", "`summary` is empty"),
        ("Says {text", "has a `{` that is never closed"),
        ("Says {}", "has braces without a name"),
        ("Says [{text}", "has a `[` that is never closed"),
        ("Says {text}]", "has a `]` that closes nothing"),
        ("Says [{text} [{pin}]]", "has an optional part inside another"),
        ("Says [it]", "has an optional part without an argument"),
        ("Says it.\nReally.", "contains a line break"),
        ("Says {txt}", "names the argument `txt`, which does not exist; did you mean `text`?"),
        ("Says it to {to.nam}", "names the argument `to.nam`, which does not exist; did you mean `to.name`?"),
        ("Says {text.length}", "names the argument `text.length`, which does not exist"),
        ("Says {pin}", "names `pin`, which is sensitive"),
        ("Says {pin.first}", "names `pin.first`, which is sensitive"),
    ] {
        let error = ToolCatalog::builder().dynamic(dynamic(sentence)).build().expect_err(sentence);
        assert!(error.to_string().contains(expected), "{sentence}: {error}");
        assert_eq!(error.code(), "summary", "{sentence}");
    }
}

#[test]
fn a_runner_refuses_look_ups_that_no_call_has() {
    for (tool, argument, expected) in [
        ("explained__delet", "item_id", "a tool that does not exist; did you mean `explained__delete`?"),
        ("explained__delete", "item", "which has no such argument; did you mean `item_id`?"),
        ("explained__book", "code", "where the argument is sensitive"),
    ] {
        let names = Names(Arc::default());
        let error = builder(&Arc::new(MemoryStore::new())).names(tool, argument, names).build().expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.code(), "names_invalid");
    }
}
