//! Files attached to a tool's output: the allowlist decides which files leave, limits hold, and records keep no bytes.

mod hidden;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tests::world::EventLog;
use tool_runtime::agent::{Agent, SavedConversation, TurnOutcome};
use tool_runtime::media::Media;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::Message;
use tool_runtime::{
    Call, Event, Run, RunOptions, ToolCall, ToolCatalog, ToolComponent, ToolContext, ToolEffect, ToolError,
    ToolExecResult, ToolPolicy, ToolRunner, WithMedia, tool,
};

/// In Base64 it begins with `iVBORw0KGgoAAAANSUhEUmNhbmFyeQ`.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDRcanary";

fn png() -> Result<Media, ToolError> {
    Ok(Media::bytes("image/png", PNG)?.with_name("canary.png"))
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Page {
    number: u32,
}

/// What the browser says of a page.
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Shown {
    shown: bool,
}

/// Shows a page to everyone.
#[tool(name = "pages__show", effect = read_only, redact = ["number", "$media"])]
fn show() -> Result<WithMedia<Page>, ToolError> {
    Ok(WithMedia::new(Page { number: 1 }).media(png()?))
}

/// Shows a page to the model.
#[tool(name = "pages__look", effect = read_only, redact = ["number"], model = ["$media"])]
struct Look {}

impl ToolComponent for Look {
    type Capabilities = ();
    type Output = WithMedia<Page>;

    async fn run(self, (): (), _: &Call<Self>) -> Result<WithMedia<Page>, ToolError> {
        Ok(WithMedia::new(Page { number: 2 }).media(png()?))
    }
}

/// Keeps its page.
#[tool(name = "pages__keep", effect = read_only, redact = ["number"])]
fn keep() -> Result<WithMedia<Page>, ToolError> {
    Ok(WithMedia::new(Page { number: 3 }).media(png()?))
}

/// Returns too much.
#[tool(name = "pages__many", effect = read_only, redact = ["$", "$media"])]
fn many(
    /// How many files.
    files: usize,
    /// The size of each.
    bytes: usize,
) -> Result<WithMedia<u32>, ToolError> {
    let file = Media::bytes("text/plain", "a".repeat(bytes).as_bytes())?;
    Ok((0..files).fold(WithMedia::new(1), |output, _| output.media(file.clone())))
}

struct Scan;

#[async_trait]
impl DynamicHandler for Scan {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Err(ToolError::code("unused"))
    }

    async fn call_with_media(&self, _: &Value, _: &ToolContext) -> Result<WithMedia<Value>, ToolError> {
        Ok(WithMedia::new(json!({"n": 1})).media(png()?))
    }
}

fn scan(redact: &[&str]) -> DynamicTool {
    let schema = json!({"type": "object", "properties": {}});
    DynamicTool::new("pages__scan", "Scans.", schema, ToolEffect::ReadOnly, Arc::new(Scan)).redact(redact.to_vec())
}

struct Rig {
    runner: ToolRunner,
    run: Run,
    heard: EventLog,
    store: Arc<MemoryStore>,
}

fn rig(redact: &[&str]) -> Rig {
    rig_with(redact, "")
}

fn rig_with(redact: &[&str], rules: &str) -> Rig {
    let catalog = ToolCatalog::builder()
        .tool::<show>()
        .tool::<Look>()
        .tool::<keep>()
        .tool::<many>()
        .dynamic(scan(redact))
        .build()
        .unwrap();
    let tools = "allowed_tools = ['pages__show', 'pages__look', 'pages__keep', 'pages__many', 'pages__scan']";
    let policy = ToolPolicy::from_toml(&format!("{tools}\n{rules}")).unwrap();
    let (heard, store) = (EventLog::default(), Arc::new(MemoryStore::new()));
    let runner = ToolRunner::builder(catalog, policy).store(Arc::clone(&store)).build().unwrap();
    Rig { run: runner.run(RunOptions::new().events(heard.sink())), runner, heard, store }
}

impl Rig {
    async fn exec(&self, name: &str, arguments: &str) -> ToolExecResult {
        self.run.exec(ToolCall::text("c", name, arguments)).await
    }

    /// The record as JSON text.
    async fn record(&self) -> String {
        let records = self.store.calls(&RecordFilter::run(self.run.id())).await.unwrap();
        serde_json::to_string(records.last().unwrap()).unwrap()
    }

    fn files(&self) -> usize {
        self.heard.take().iter().filter(|event| matches!(event, Event::File { .. })).count()
    }
}

#[tokio::test]
async fn the_allowlist_decides_over_files_as_over_leaves() {
    for (name, to_model, to_ui) in [("pages__show", 1, 1), ("pages__look", 1, 0), ("pages__keep", 0, 0)] {
        let rig = rig(&["n"]);
        let result = rig.exec(name, "{}").await;
        assert!(result.is_ok(), "{result:?}");
        assert_eq!((result.media().len(), rig.files()), (to_model, to_ui), "{name}");
        let said = result.to_model();
        assert_eq!(said.contains("[1 file that the tool returned may not be shown."), to_model == 0, "{name}: {said}");
        let record = rig.record().await;
        assert_eq!(record.contains("image/png"), to_model == 1, "{name}: {record}");
        for place in [record, said, format!("{result:?}"), serde_json::to_string(&result).unwrap()] {
            assert!(
                !place.contains("canary") && !place.contains("iVBOR") && !place.contains("Y2FuYXJ5"),
                "{name}: {place}"
            );
        }
    }
}

#[tokio::test]
async fn a_dynamic_tool_returns_files_too() {
    for (redact, files) in [(&["n", "$media"][..], 1), (&["n"], 0)] {
        let rig = rig(redact);
        assert_eq!(rig.exec("pages__scan", "{}").await.media().len(), files);
    }
}

#[tokio::test]
async fn a_record_holds_type_size_and_hash() {
    let rig = rig(&[]);
    rig.exec("pages__show", "{}").await;
    let record: Value = serde_json::from_str(&rig.record().await).unwrap();
    let media = &record["media"][0];
    assert_eq!((&media["media_type"], &media["bytes"]), (&json!("image/png"), &json!(PNG.len())));
    assert_eq!(media["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(media.as_object().unwrap().len(), 3);
    // The result that is read from the record states that the file is gone.
    let recorded = rig.run.recorded(&"c".into()).await.unwrap().unwrap();
    assert!(recorded.media().is_empty() && recorded.to_model().contains("no longer stored"), "{}", recorded.to_model());
}

#[tokio::test]
async fn a_call_returns_so_many_files_and_no_more() {
    let limited = rig(&[]).exec("pages__many", r#"{"files":20,"bytes":1}"#).await;
    assert_eq!(limited.media().len(), 16);
    assert!(limited.to_model().contains("[4 files that the tool returned are not available"), "{}", limited.to_model());
    let limited = rig(&[]).exec("pages__many", r#"{"files":3,"bytes":8388608}"#).await;
    assert_eq!(limited.media().len(), 2);
    let rig = rig(&[]);
    rig.exec("pages__many", r#"{"files":2,"bytes":1000}"#).await;
    assert!(rig.run.summary().result_bytes >= 2000);
    // A file that is too large is an error of the tool.
    assert!(!rig.run.exec(ToolCall::text("d", "pages__many", r#"{"files":1,"bytes":52428800}"#)).await.is_ok());
}

#[test]
fn a_path_that_names_no_files_is_refused() {
    /// Returns a number.
    #[tool(name = "pages__number", effect = read_only, redact = ["$", "$media"])]
    fn number() -> Result<u32, ToolError> {
        Ok(1)
    }

    let error = ToolCatalog::builder().tool::<number>().build().unwrap_err().to_string();
    assert!(error.contains("`$media` names files, but the tool returns none"), "{error}");
}

#[test]
fn a_tool_of_the_client_returns_no_files() {
    /// Shows a page in the browser.
    #[tool(
        name = "pages__open",
        effect = read_only,
        execution = client,
        client_result = Shown,
        prepare = ["number"],
        redact = ["shown"]
    )]
    fn open() -> Result<WithMedia<Page>, ToolError> {
        Ok(WithMedia::new(Page { number: 1 }).media(png()?))
    }

    /// Marks a page in the browser.
    #[tool(
        name = "pages__mark",
        effect = read_only,
        execution = client,
        client_result = Shown,
        prepare = ["number"],
        redact = ["shown", "$media"]
    )]
    fn mark() -> Result<Page, ToolError> {
        Ok(Page { number: 1 })
    }

    let error = ToolCatalog::builder().tool::<open>().tool::<mark>().build().unwrap_err().to_string();
    for expected in [
        "the client executes it, so it returns no files; return the value alone",
        "`$media` names files, but the tool returns none; return `WithMedia` or remove the path",
    ] {
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn the_model_gets_the_file_and_a_saved_conversation_keeps_it() {
    let rig = rig(&[]);
    let script = [ScriptedTurn::call("c", "pages__show", "{}"), ScriptedTurn::text("A page.")];
    let agent = Agent::new(ScriptedModel::new(script));
    let mut conversation = agent.converse(rig.run);
    assert!(matches!(conversation.send("Show it.").await, TurnOutcome::Answered { .. }));
    let file = |history: &[Message]| match &history[2] {
        Message::Result(result) => result.media.clone(),
        other => panic!("{other:?}"),
    };
    let history = conversation.history();
    assert_eq!(file(&history), [png().unwrap()]);
    let saved = serde_json::to_string(&history).unwrap();
    assert_eq!(file(&serde_json::from_str::<Vec<Message>>(&saved).unwrap()), [png().unwrap()]);
}

#[tokio::test]
async fn many_files_neither_grow_a_conversation_nor_its_document() {
    let rig = rig(&[]);
    // No two calls are the same, or the loop guard would refuse them.
    let arguments = |at: usize| format!(r#"{{"files":1,"bytes":{}}}"#, (6 << 20) + at);
    let script = (0..6).map(|at| ScriptedTurn::call(format!("c{at}"), "pages__many", arguments(at)));
    let agent = Agent::new(ScriptedModel::new(script.chain([ScriptedTurn::text("Six."), ScriptedTurn::text("Yes.")])));
    let mut conversation = agent.converse(rig.run);
    assert!(matches!(conversation.send("All of them.").await, TurnOutcome::Answered { .. }));
    let files = |history: &[Message]| -> Vec<usize> {
        let results = history.iter().filter_map(|message| match message {
            Message::Result(result) => {
                assert_eq!(result.media.is_empty(), result.content.contains("\n\n[1 file was left out: "));
                Some(result.media.len())
            }
            _ => None,
        });
        results.collect()
    };
    assert_eq!(files(&conversation.history()), [0, 0, 0, 1, 1, 1]);
    let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
    assert!(saved.len() < 28 << 20, "{}", saved.len());
    let saved: SavedConversation = serde_json::from_str(&saved).unwrap();
    let mut conversation = agent.restore(&rig.runner, RunOptions::new(), saved).await.unwrap();
    assert!(matches!(conversation.send("Sure?").await, TurnOutcome::Answered { .. }));
    assert_eq!(files(&conversation.history()), [0, 0, 0, 1, 1, 1]);
}
