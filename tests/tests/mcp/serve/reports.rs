//! Progress and log lines of a call: the client gets those that it requested, and the application's adapter the rest.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tool_runtime::capability::Progress;
use tool_runtime::mcp::serve::McpServer;
use tool_runtime::{Capabilities, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::serve::held::{NOBODY, piped_since_2026};
use crate::serve::rig::{admitted, request, text};

/// Counts to two.
#[tool(name = "reports__count", effect = read_only, redact = ["$"])]
fn count(progress: &dyn Progress) -> Result<u8, ToolError> {
    progress.report(1.0, Some(2.0));
    progress.notice(tracing::Level::ERROR, "half of it");
    Ok(2)
}

/// The application's adapter.
#[derive(Default)]
struct Board(Mutex<Vec<String>>);

impl Board {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Progress for Board {
    fn report(&self, done: f64, _: Option<f64>) {
        self.0.lock().unwrap().push(done.to_string());
    }

    fn notice(&self, _: tracing::Level, line: &'static str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

fn served(own: Option<Arc<Board>>) -> McpServer {
    let catalog = ToolCatalog::builder().tool::<count>().build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["reports__count"]));
    let runner = match own {
        Some(own) => runner.capabilities(Capabilities::new().with::<dyn Progress>(own)),
        None => runner,
    };
    McpServer::builder(runner.build().unwrap(), admitted).build().unwrap()
}

/// Calls the tool once over a new pipe, and returns the methods of the server's messages before the result.
async fn called(server: &McpServer, meta: Value) -> Vec<String> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let server = server.clone();
    tokio::spawn(async move { server.stream(read, write).await });
    let (read, mut write) = tokio::io::split(ours);
    let client =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "reports__count", "arguments": {}, "_meta": meta}}),
    ];
    for message in messages {
        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let (mut lines, mut methods) = (BufReader::new(read).lines(), Vec::new());
    while let Some(line) = lines.next_line().await.unwrap() {
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 2 {
            assert_eq!(message["result"]["isError"], false, "{message}");
            return methods;
        }
        methods.extend(message["method"].as_str().map(str::to_owned));
    }
    panic!("no result");
}

#[tokio::test]
async fn what_a_client_does_not_want_goes_to_the_application() {
    let board = Arc::<Board>::default();
    let server = served(Some(Arc::clone(&board)));
    // A client of an older revision gets lines unless it sets a level, and reports only for its token.
    assert_eq!(called(&server, json!({})).await, ["notifications/message"]);
    assert_eq!(board.take(), ["1"]);
    assert_eq!(
        called(&server, json!({"progressToken": "t"})).await,
        ["notifications/progress", "notifications/message"]
    );
    assert_eq!(board.take(), Vec::<String>::new());
    // A request since 2026-07-28 has a token here and no level.
    let client = piped_since_2026(&server, NOBODY).await;
    assert_eq!(text(&client.call_tool(request("reports__count", json!({}))).await.unwrap()), "2");
    assert_eq!(board.take(), ["half of it"]);
}

#[tokio::test]
async fn without_an_adapter_the_rest_is_dropped() {
    let server = served(None);
    assert_eq!(called(&server, json!({})).await, ["notifications/message"]);
}
