//! An MCP server over a store in a file, for the tests that kill it: `mcp-served STORE EFFECTS stdio|http`. Over HTTP it
//! writes its address first.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test process says what it expects")]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tool_runtime::mcp::serve::{HttpOptions, McpServer, Peer};

use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// The file of effects.
static EFFECTS: OnceLock<PathBuf> = OnceLock::new();

const POLICY: &str = r#"allowed_tools = ["killed__write", "killed__send"]
require_approval_for_tools = ["killed__send"]
[mcp]
hold = "1d"
"#;

fn happen(line: &str) -> Result<(), ToolError> {
    let path = EFFECTS.get().expect("set before anything runs");
    let written = OpenOptions::new().append(true).create(true).open(path).and_then(|mut file| {
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    });
    written.map_err(|_| ToolError::code("disk"))
}

/// Writes a line, and does not end.
#[tool(name = "killed__write", effect = state_change, redact = ["$"])]
async fn write() -> Result<bool, ToolError> {
    happen("write")?;
    std::future::pending().await
}

/// Writes a line once somebody approved it.
#[tool(name = "killed__send", effect = external_side_effect, redact = ["$"])]
fn send() -> Result<bool, ToolError> {
    happen("send").map(|()| true)
}

#[tokio::main]
async fn main() {
    let words: Vec<_> = std::env::args().collect();
    let [_, store, effects, way] = words.as_slice() else { panic!("three words") };
    EFFECTS.set(effects.into()).expect("once");
    let store = SqlStore::sqlite(store, SqlOptions::new()).await.expect("the file opens");
    let catalog = ToolCatalog::builder().tool::<write>().tool::<send>().build().expect("a catalog");
    let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
    let runner = ToolRunner::builder(catalog, policy).approvals(true).lease(Duration::from_secs(1));
    let runner = runner.store(Arc::new(store)).build().expect("a runner");
    let admit = |_: &Peer<'_>| Some(RunOptions::new().principal("ada").tenant("acme"));
    let server = McpServer::builder(runner, admit).build().expect("a server");
    if way == "stdio" {
        server.stdio().await.expect("a client");
        return;
    }
    let listening = server.bind("127.0.0.1:0".parse().expect("an address"), &HttpOptions::new()).await;
    let (address, serving) = listening.expect("a free port");
    println!("{address}");
    serving.await;
}
