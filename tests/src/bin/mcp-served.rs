//! An MCP server over a store in a file, for the tests that kill it: `mcp-served STORE EFFECTS stdio|http [asks]`. Its
//! tools append lines to the file `EFFECTS`. Over HTTP it writes its address first. With `asks`, clients decide on
//! their own calls.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test process says what it expects")]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tool_runtime::mcp::serve::{HttpOptions, McpServer, Peer};

use tool_runtime::{Reconciled, RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// The file of effects.
static EFFECTS: OnceLock<PathBuf> = OnceLock::new();

const POLICY: &str = r#"allowed_tools = [
    "killed__write", "killed__send", "killed__keyed", "killed__again", "killed__stuck", "killed__broken",
]
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

/// Writes a line after a person approved the call.
#[tool(name = "killed__send", effect = external_side_effect, redact = ["$"])]
fn send() -> Result<bool, ToolError> {
    happen("send").map(|()| true)
}

/// Writes a line, and does not end. `reconcile` can find the line from another process.
#[tool(name = "killed__keyed", effect = state_change, redact = ["$"])]
#[derive(Debug)]
struct Keyed {}

#[tool]
impl Keyed {
    async fn run(self) -> Result<bool, ToolError> {
        happen("keyed")?;
        std::future::pending().await
    }

    async fn reconcile(self) -> Result<Reconciled<bool>, ToolError> {
        Ok(if lines("keyed") == 0 { Reconciled::Prevented } else { Reconciled::TookEffect(true) })
    }
}

/// Writes a line, and does not end. `reconcile` does not end either.
#[tool(name = "killed__stuck", effect = state_change, redact = ["$"])]
#[derive(Debug)]
struct Stuck {}

#[tool]
impl Stuck {
    async fn run(self) -> Result<bool, ToolError> {
        happen("stuck")?;
        std::future::pending().await
    }

    async fn reconcile(self) -> Result<Reconciled<bool>, ToolError> {
        std::future::pending().await
    }
}

/// Writes a line, and does not end. `reconcile` panics.
#[tool(name = "killed__broken", effect = state_change, redact = ["$"])]
#[derive(Debug)]
struct Broken {}

#[tool]
impl Broken {
    async fn run(self) -> Result<bool, ToolError> {
        happen("broken")?;
        std::future::pending().await
    }

    async fn reconcile(self) -> Result<Reconciled<bool>, ToolError> {
        panic!("it cannot look")
    }
}

/// Writes a line. The first call does not end; the second one does.
#[tool(name = "killed__again", effect = state_change, redact = ["$"], idempotent)]
async fn again() -> Result<bool, ToolError> {
    happen("again")?;
    if lines("again") == 1 {
        std::future::pending::<()>().await;
    }
    Ok(true)
}

/// How often a line was written.
fn lines(line: &str) -> usize {
    let path = EFFECTS.get().expect("set before anything runs");
    std::fs::read_to_string(path).unwrap_or_default().lines().filter(|written| *written == line).count()
}

fn main() {
    // Three quarters of the usual stack: without optimisation, the futures of a call are large.
    let runtime = tokio::runtime::Builder::new_multi_thread().thread_stack_size(3 << 19).enable_all().build();
    // The main thread has a larger stack, so the server runs in a task of its own.
    let served = runtime.expect("threads").block_on(async { tokio::spawn(serve()).await });
    served.expect("no panic");
}

async fn serve() {
    let words: Vec<_> = std::env::args().collect();
    let (words, asks) = match words.as_slice() {
        [words @ .., last] if last == "asks" => (words, true),
        words => (words, false),
    };
    let [_, store, effects, way] = words else { panic!("three words, and perhaps `asks`") };
    EFFECTS.set(effects.into()).expect("once");
    let store = SqlStore::sqlite(store, SqlOptions::new()).await.expect("the file opens");
    let catalog = ToolCatalog::builder()
        .tool::<write>()
        .tool::<send>()
        .tool::<Keyed>()
        .tool::<again>()
        .tool::<Stuck>()
        .tool::<Broken>()
        .build()
        .expect("a catalog");
    let policy = if asks { format!("{POLICY}[approvals]\nown_calls = true\n") } else { POLICY.to_owned() };
    let policy = ToolPolicy::from_toml(&policy).expect("a policy");
    let runner = ToolRunner::builder(catalog, policy).approvals(true).lease(Duration::from_secs(1));
    let runner = runner.store(Arc::new(store)).build().expect("a runner");
    let admit = |_: &Peer<'_>| Some(RunOptions::new().principal("ada").tenant("acme"));
    let server = McpServer::builder(runner, admit).ask_clients(asks).build().expect("a server");
    if way == "stdio" {
        server.stdio().await.expect("a client");
        return;
    }
    let listening = server.bind("127.0.0.1:0".parse().expect("an address"), &HttpOptions::new()).await;
    let (address, serving) = listening.expect("a free port");
    println!("{address}");
    serving.await;
}
