//! Code mode: a script reaches nothing but calls through the gate, keeps its budgets, and waits with its calls.

mod budgets;
mod crashed;
mod escapes;
mod process;
mod reaches;
mod waits;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tests::world::{Happened, World};
use tool_runtime::agent::CodeMode;
use tool_runtime::call::Caller;
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::{
    Capabilities, Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolError, ToolExecResult, ToolInvocationRecord,
    ToolPolicy, ToolRunner, tool,
};

const POLICY: &str = r#"
    allowed_tools = ["notes__list", "notes__delete", "notes__fail", "notes__hang", "notes__numbers", "notes__say",
        "notes__shown", "notes__ask", "notes__page", "notes__erase", "notes__send"]
    allowed_graphs = ["code"]
"#;

const READS: [&str; 6] = ["notes__list", "notes__fail", "notes__hang", "notes__numbers", "notes__say", "notes__shown"];

/// Lists notes.
#[tool(name = "notes__list", effect = read_only, redact = ["$"])]
fn list() -> Result<Vec<u32>, ToolError> {
    Ok(vec![7, 8])
}

/// Repeats a text.
#[tool(name = "notes__say", effect = read_only, redact = ["$"])]
fn say(
    /// The text.
    text: String,
) -> Result<String, ToolError> {
    Ok(text)
}

/// Is not allowed.
#[tool(name = "notes__hidden", effect = read_only, redact = ["$"])]
fn hidden() -> Result<String, ToolError> {
    Ok("HIDDEN".to_owned())
}

/// Fails.
#[tool(name = "notes__fail", effect = read_only, redact = ["$"])]
fn fail() -> Result<u32, ToolError> {
    Err(ToolError::code("no_notes"))
}

thread_local! {
    /// How many calls hang in the test of this thread.
    static HANGING: Cell<u32> = const { Cell::new(0) };
}

/// Never returns.
#[tool(name = "notes__hang", effect = read_only, redact = ["$"])]
async fn hang() -> Result<u32, ToolError> {
    HANGING.set(HANGING.get() + 1);
    std::future::pending().await
}

/// Returns a large number.
#[tool(name = "notes__numbers", effect = read_only, redact = ["$"])]
fn numbers() -> Result<u64, ToolError> {
    Ok(u64::MAX)
}

/// A note with what nobody may see.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Note {
    title: String,
    draft: String,
    password: String,
}

/// Shows a note.
#[tool(name = "notes__shown", effect = read_only, redact = ["title"], model = ["draft"])]
fn shown() -> Result<Note, ToolError> {
    Ok(Note { title: "Title".to_owned(), draft: "DRAFT".to_owned(), password: "CANARY".to_owned() })
}

/// Asks the client.
#[tool(name = "notes__ask", effect = read_only, execution = client, client_result = String, prepare = ["$"],
    redact = ["$"])]
fn ask() -> Result<bool, ToolError> {
    Ok(true)
}

/// Deletes a note.
#[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
fn delete(
    world: &dyn World,
    /// The note.
    number: u32,
) -> Result<u32, ToolError> {
    world.happen();
    Ok(number)
}

struct Rig {
    store: Arc<MemoryStore>,
    world: Arc<Happened>,
}

impl Rig {
    fn new() -> Self {
        Self { store: Arc::default(), world: Arc::new(Happened::new(0)) }
    }

    fn runner(&self, rules: &str, code: CodeMode) -> ToolRunner {
        let catalog = ToolCatalog::builder().collect().dynamic(code).build().unwrap_or_else(|error| panic!("{error}"));
        let policy = ToolPolicy::from_toml(&format!("{POLICY}\n{rules}")).unwrap_or_else(|error| panic!("{error}"));
        ToolRunner::builder(catalog, policy)
            .capabilities(Capabilities::new().with(Arc::clone(&self.world) as Arc<dyn World>))
            .approvals(true)
            .store(Arc::clone(&self.store))
            .build()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn run(&self, rules: &str, code: CodeMode) -> Run {
        self.runner(rules, code).run(options())
    }

    fn effects(&self) -> u32 {
        self.world.effects()
    }

    async fn records(&self) -> Vec<ToolInvocationRecord> {
        self.store.calls(&RecordFilter::default()).await.expect("records")
    }

    /// The tools of the script's records.
    async fn calls(&self) -> Vec<(String, Outcome)> {
        let ours = |record: &ToolInvocationRecord| matches!(record.caller, Caller::Graph { .. });
        self.records().await.into_iter().filter(ours).map(|record| (record.name.to_string(), record.outcome)).collect()
    }
}

fn options() -> RunOptions {
    RunOptions::new().principal("ada").tenant("acme").run_id("parent")
}

/// A limit for scripts that another limit has to end, however busy the machine is.
const NEVER: Duration = Duration::from_hours(1);

fn code() -> CodeMode {
    CodeMode::new("code", "1").tools(READS).timeout(NEVER)
}

fn call(script: &str) -> ToolCall {
    ToolCall::text("c1", "graph__code", json!({ "script": script }).to_string())
}

/// Runs a script that only reads.
async fn run(script: &str) -> (ToolExecResult, Rig) {
    let rig = Rig::new();
    let result = rig.run("", code()).exec(call(script)).await;
    (result, rig)
}

/// The result that a model reads of a script that ends well.
async fn value(script: &str) -> Value {
    let (result, _) = run(script).await;
    let text = result.to_model();
    assert!(result.is_ok(), "{text} {:?}", result.detail());
    read(&text)
}

/// The output, with its value as JSON.
fn read(text: &str) -> Value {
    let mut output: Value = serde_json::from_str(text).expect("JSON");
    output["value"] = serde_json::from_str(output["value"].as_str().expect("text")).expect("JSON");
    output
}

#[tokio::test]
async fn a_script_calls_tools_and_returns_a_value() {
    let (result, rig) =
        run("let all = notes__list(); print(\"read\"); all.push(9); #{ notes: all, first: all[0] }").await;
    let expected = json!({"value": {"notes": [7, 8, 9], "first": 7}, "printed": "read\n", "calls": 1});
    assert_eq!(read(&result.to_model()), expected);
    assert_eq!(rig.calls().await, [("notes__list".to_owned(), Outcome::Ok)]);
    let records = rig.records().await;
    assert_eq!(records.len(), 2, "one record for each call, and one for the script");
    let Caller::Graph { run, name, version } = &records[0].caller else { panic!("{:?}", records[0].caller) };
    assert_eq!((run.as_str(), name.as_str(), version.as_str()), ("parent", "code", "1"));
}

/// Scripts do not get values that only the model may see, because everyone sees the result of a script.
#[tokio::test]
async fn a_script_sees_what_everyone_may_see() {
    let (result, rig) = run("notes__shown()").await;
    assert_eq!(read(&result.to_model())["value"], json!({"title": "Title"}));
    assert_eq!(result.value().expect("a value").get(), result.to_model());
    let records = serde_json::to_string(&rig.records().await).expect("records");
    assert!(!records.contains("DRAFT") && !records.contains("CANARY"));
}

#[tokio::test]
async fn failures_are_values_that_a_script_can_catch() {
    let caught = value("let code = (); try { notes__fail(); } catch (e) { code = e.errorCode; } code").await;
    assert_eq!(caught["value"], "execution_error");
    let (result, _) = run("let a = 1;\nnotes__fail()").await;
    assert_eq!(result.outcome(), Outcome::ExecutionError);
    assert!(
        result.to_model().contains("A call of the script failed (execution_error), at line 2"),
        "{}",
        result.to_model()
    );
    let (result, _) = run("throw #{ errorCode: \"CANARY\" }").await;
    assert!(!result.to_model().contains("CANARY"), "{}", result.to_model());
}

/// A tool that is not allowed looks like one that does not exist, and both calls have a record.
#[tokio::test]
async fn denied_and_unknown_read_alike() {
    let of =
        |name: &str| format!("let e = (); try {{ call_tool(\"{name}\", #{{}}); }} catch (thrown) {{ e = thrown; }} e");
    let ((hidden, rig), (unknown, _)) = (run(&of("notes__hidden")).await, run(&of("notes__hxdden")).await);
    assert_eq!(hidden.to_model().replace("hidden", "hxdden"), unknown.to_model());
    assert!(hidden.to_model().contains("errorCode"), "{}", hidden.to_model());
    assert_eq!(rig.calls().await.len(), 1);
    // A tool of the run that the script may not call does not exist for the script.
    let (delete, rig) = run("call_tool(\"notes__delete\", #{ number: 7 })").await;
    assert_eq!((delete.outcome(), rig.effects()), (Outcome::ExecutionError, 0));
}

#[tokio::test]
async fn numbers_are_kept_or_refused() {
    let (result, _) = run("notes__numbers()").await;
    assert!(result.to_model().contains("A number has no exact value"), "{}", result.to_model());
    let (result, _) = run("0.0 / 0.0").await;
    assert!(result.to_model().contains("A number has no exact value"), "{}", result.to_model());
    assert_eq!(value("9223372036854775807").await["value"], json!(i64::MAX));
}

#[test]
fn a_script_only_reads_unless_it_says_so() {
    let build = |code: CodeMode| ToolCatalog::builder().collect().dynamic(code).build();
    let error = build(code().tools(["notes__delete"])).expect_err("a problem").to_string();
    assert!(error.contains("a script only reads"), "{error}");
    assert!(build(code().tools(["notes__delete"]).effects()).is_ok());
    let error = build(code().tools(["graph__code"])).expect_err("a problem").to_string();
    assert!(error.contains("a graph runs no graph"), "{error}");
}
