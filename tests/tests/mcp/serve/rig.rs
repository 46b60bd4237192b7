//! The tools of the tests of the server, the server itself, and clients of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
};
use rmcp::service::{RunningService, ServiceError, ServiceExt as _};
use serde_json::{Value, json};
use tool_runtime::mcp::serve::{McpServer, Peer};
use tool_runtime::media::Media;
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{
    RunOptions, ToolCatalog, ToolContext, ToolError, ToolInvocationRecord, ToolPolicy, ToolRunner, WithMedia, tool,
};

/// A person of whom the town may be shown.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Person {
    name: String,
    town: String,
    salary: u64,
    friends: Vec<String>,
}

/// Looks a person up.
#[tool(name = "people__find", title = "Find a person", effect = read_only, redact = ["name", "town", "friends"])]
pub(crate) fn find(
    /// The name.
    name: String,
) -> Result<Person, ToolError> {
    Ok(Person { name, town: "Graz".to_owned(), salary: 71_234, friends: vec!["Bob".to_owned()] })
}

/// Adds two numbers.
#[tool(name = "math__add", effect = read_only, redact = ["$"])]
pub(crate) fn add(
    /// The first.
    a: i64,
    /// The second.
    b: i64,
) -> Result<i64, ToolError> {
    a.checked_add(b).ok_or_else(|| ToolError::code("overflow").with_safe("The sum is too large."))
}

/// Deletes everything.
#[tool(name = "admin__wipe", effect = state_change, redact = ["$"])]
fn wipe() -> Result<u32, ToolError> {
    Ok(7)
}

/// Sends a letter, which somebody has to approve.
#[tool(name = "letters__send", effect = external_side_effect, redact = ["$"])]
fn send(
    /// The text.
    text: String,
) -> Result<usize, ToolError> {
    Ok(text.len())
}

/// Writes a note.
#[tool(name = "notes__write", effect = state_change, idempotent, redact = ["$"])]
pub(crate) fn write() -> Result<String, ToolError> {
    Ok("written".to_owned())
}

/// Panics.
#[tool(name = "faults__panic", effect = read_only, redact = ["$"])]
fn panics() -> Result<u32, ToolError> {
    panic!("a secret of the tool")
}

/// Fails after it wrote.
#[tool(name = "faults__panic_late", effect = state_change, redact = ["$"])]
fn panics_late() -> Result<u32, ToolError> {
    panic!("a secret of the tool")
}

/// Waits until it is cancelled.
#[tool(name = "slow__read", effect = read_only, redact = ["$"])]
async fn slow_read() -> Result<u32, ToolError> {
    std::future::pending().await
}

/// How many calls of `slow__counted` run or ran.
pub(crate) static COUNTED: AtomicUsize = AtomicUsize::new(0);

/// Waits until it is cancelled, and is counted.
#[tool(name = "slow__counted", effect = read_only, redact = ["$"])]
async fn slow_counted() -> Result<u32, ToolError> {
    COUNTED.fetch_add(1, Ordering::Relaxed);
    std::future::pending().await
}

/// Waits until it is cancelled, after it began to write.
#[tool(name = "slow__write", effect = state_change, redact = ["$"])]
async fn slow_write(context: &ToolContext) -> Result<u32, ToolError> {
    context.cancellation().cancelled().await;
    std::future::pending().await
}

/// A picture and a document.
#[tool(name = "files__all", effect = read_only, redact = ["$", "$media"])]
fn files_all() -> Result<WithMedia<String>, ToolError> {
    let plan = Media::bytes("application/json", br#"{"a":1}"#)?.with_uri("notes://plan")?;
    let link = Media::url("text/html", "https://example.org/manual.html")?;
    let picture = Media::bytes("image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")?;
    let binary = Media::bytes("application/octet-stream", &[1, 2, 3])?;
    Ok(WithMedia::new("all".to_owned()).media(picture).media(plan).media(link).media(binary))
}

/// A picture that may not be shown.
#[tool(name = "files__none", effect = read_only, redact = ["$"])]
fn files_none() -> Result<WithMedia<String>, ToolError> {
    Ok(WithMedia::new("none".to_owned()).media(Media::bytes("image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")?))
}

/// More rows than fit.
#[tool(name = "rows__many", effect = read_only, max_result_bytes = 400, redact = ["names"])]
fn many() -> Result<Rows, ToolError> {
    Ok(Rows { names: (100..300).map(|number| Row { number }).map(|row| row.number).collect() })
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Rows {
    names: Vec<u32>,
}

struct Row {
    number: u32,
}

const POLICY: &str = r#"
allowed_tools = ["people__find", "math__add", "notes__write", "letters__send", "faults__panic", "faults__panic_late", "slow__read", "slow__counted", "slow__write", "files__all", "files__none", "rows__many"]
require_approval_for_tools = ["letters__send"]
[loop_guard]
warn_at = 0
stop_at = 0
"#;

pub(crate) fn runner(store: &Arc<MemoryStore>) -> ToolRunner {
    let catalog = ToolCatalog::builder()
        .tool::<find>()
        .tool::<add>()
        .tool::<wipe>()
        .tool::<send>()
        .tool::<write>()
        .tool::<panics>()
        .tool::<panics_late>()
        .tool::<slow_read>()
        .tool::<slow_counted>()
        .tool::<slow_write>()
        .tool::<files_all>()
        .tool::<files_none>()
        .tool::<many>()
        .build()
        .expect("a catalog");
    let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
    ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(store)).build().expect("a runner")
}

/// Everybody at a pipe is Ada; over HTTP it is whom the header names.
pub(crate) fn admitted(peer: &Peer<'_>) -> Option<RunOptions> {
    let who = if peer.is_http() { peer.header("x-user")? } else { "ada" };
    Some(RunOptions::new().principal(who).tenant("acme"))
}

pub(crate) fn server(store: &Arc<MemoryStore>) -> McpServer {
    McpServer::builder(runner(store), admitted)
        .name("rig", "1.2.3")
        .expose("math__add", "add")
        .build()
        .expect("a server")
}

pub(crate) type Client = RunningService<RoleClient, Guest>;

/// A client that states which revision it supports.
#[derive(Clone)]
pub(crate) struct Guest(pub ProtocolVersion);

impl ClientHandler for Guest {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("guest", "1"))
            .with_protocol_version(self.0.clone())
    }
}

/// A client at a pipe, in the era of sessions.
pub(crate) async fn piped(server: &McpServer) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let server = server.clone();
    tokio::spawn(async move { server.stream(read, write).await });
    Guest(ProtocolVersion::LATEST_WITH_INITIALIZE).serve(ours).await.expect("a handshake")
}

pub(crate) fn request(name: &str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    CallToolRequestParams::new(name.to_owned()).with_arguments(arguments)
}

pub(crate) async fn call(client: &Client, name: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    client.call_tool(request(name, arguments)).await
}

/// The text of the first block.
pub(crate) fn text(result: &CallToolResult) -> &str {
    &result.content.first().and_then(|block| block.as_text()).expect("a text").text
}

/// The records, once there are so many.
pub(crate) async fn records(store: &MemoryStore, count: usize) -> Vec<ToolInvocationRecord> {
    loop {
        let records = store.calls(&RecordFilter::default()).await.expect("records");
        if records.len() >= count {
            assert_eq!(records.len(), count, "one record for each call");
            return records;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn outcomes(records: &[ToolInvocationRecord]) -> Vec<Value> {
    records.iter().map(|record| json!([record.name, record.outcome.code()])).collect()
}
