//! Requests that violate the protocol, and clients that take more than their share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolResult, ClientRequest, ErrorCode, ListPromptsRequest, ListResourcesRequest};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::net::TcpStream;
use tool_runtime::mcp::serve::{HttpOptions, McpServer};
use tool_runtime::registration::DynamicTool;
use tool_runtime::store::{MemoryStore, RecordFilter, Store as _};
use tool_runtime::{ToolCatalog, ToolEffect, ToolPolicy, ToolRunner};

use crate::Echo;
use crate::serve::http::{initialize, listening, raw, with_session};
use crate::serve::rig::{Client, add, admitted, call, outcomes, piped, records, request, runner, server, text};

/// A client that writes its lines itself.
struct Pipe {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
}

impl Pipe {
    fn open(server: &McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(theirs);
        let server = server.clone();
        tokio::spawn(async move { server.stream(read, write).await });
        let (read, write) = tokio::io::split(ours);
        Self { read: BufReader::new(read), write }
    }

    async fn begin(server: &McpServer) -> Self {
        let mut pipe = Self::open(server);
        pipe.say(&initialize()).await;
        pipe.hear().await;
        pipe.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        pipe
    }

    async fn say(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, line: &str) -> Value {
        self.say(line).await;
        self.hear().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_of_a_pipe_has_one_answer() {
    let store = Arc::<MemoryStore>::default();
    let mut pipe = Pipe::begin(&server(&store)).await;
    let slow = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"slow__read","arguments":{}}}"#;
    pipe.say(slow).await;
    let again = pipe.ask(slow).await;
    assert_eq!((&again["id"], &again["error"]["code"]), (&json!(5), &json!(-32600)));
    let long =
        format!(r#"{{"params":{{"id":1,"x":"{}"}},"id":"l","jsonrpc":"2.0","method":"m"}}"#, "y".repeat(5 << 20));
    let long = pipe.ask(&long).await;
    assert_eq!((&long["id"], &long["error"]["code"]), (&json!("l"), &json!(-32600)));
    for (at, (params, code)) in [
        (r#"{"name":"add","arguments":"{\"a\":1,\"b\":2}"}"#, -32602),
        (r#"{"name":"add","arguments":[{"a":1,"b":2}]}"#, -32602),
        (r#"{"name":"add","arguments":{"a":1,"b":2},"arguments":{"a":1,"b":3}}"#, -32602),
        (r#"{"name":"add","name":"notes__write","arguments":{}}"#, -32602),
        (r#"{"name":7,"arguments":{}}"#, -32602),
        (r#"{"arguments":{}}"#, -32602),
    ]
    .into_iter()
    .enumerate()
    {
        let answer =
            pipe.ask(&format!(r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{params}}}"#, at + 10)).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(at + 10), &json!(code)), "{answer}");
    }
    // A tool that may not be seen looks like one that does not exist, here too.
    for name in ["admin__wipe", "nothing__there"] {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":30,"method":"tools/call","params":{{"name":"{name}","arguments":[]}}}}"#);
        assert_eq!(pipe.ask(&line).await["error"]["message"], format!("Unknown tool: {name}"));
    }
    for method in ["prompts/list", "resources/list", "resources/templates/list", "nothing/here", "tools/nothing"] {
        let answer = pipe.ask(&format!(r#"{{"jsonrpc":"2.0","id":31,"method":"{method}"}}"#)).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(31), &json!(-32601)), "{method}");
    }
    // One that was cancelled gets no answer, and its id stays taken.
    pipe.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#).await;
    let again = pipe.ask(r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#).await;
    assert_eq!((&again["id"], &again["error"]["code"]), (&json!(5), &json!(-32600)));
    let next = pipe.ask(r#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#).await;
    assert!(next["id"] == 6 && next["result"]["tools"].is_array());
    let invalid = |name: &str| json!([name, "validation_error"]);
    let records = records(&store, 7).await;
    let refused: Vec<_> = outcomes(&records).into_iter().filter(|one| one[0] != "slow__read").collect();
    assert_eq!(
        refused[..4],
        [invalid("math__add"), invalid("math__add"), invalid("math__add"), invalid("notes__write")]
    );
}

/// 2026-07-28 has no handshake, so a client that names it there gets the newest revision that has one.
#[tokio::test]
async fn a_handshake_ends_with_a_revision_that_has_one() {
    for (named, agreed) in [("2026-07-28", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2099-01-01", "2025-11-25")] {
        let mut pipe = Pipe::open(&server(&Arc::default()));
        let answer = pipe.ask(&initialize().replace("2025-11-25", named)).await;
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{answer}");
    }
}

#[tokio::test]
async fn what_was_not_declared_is_no_method() {
    let client = piped(&server(&Arc::default())).await;
    for request in [
        ClientRequest::ListPromptsRequest(ListPromptsRequest::default()),
        ClientRequest::ListResourcesRequest(ListResourcesRequest::default()),
    ] {
        let ServiceError::McpError(error) = client.send_request(request).await.unwrap_err() else { panic!() };
        assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
    }
}

/// Sends bytes as they are, and returns the status; 0 if there is none.
async fn status(address: SocketAddr, request: &str) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line).await;
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_can_be_read_in_two_ways_is_refused() {
    let address = listening(&server(&Arc::default()), &HttpOptions::new()).await;
    let body = initialize();
    let rest = format!(
        "x-user: ada\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (host, own) = (format!("Host: {address}\r\n"), format!("Origin: http://{address}\r\n"));
    for (head, expected) in [
        (format!("POST /mcp HTTP/1.1\r\n{host}"), 200),
        (format!("POST http://{address}/mcp HTTP/1.1\r\n{host}{own}"), 200),
        (format!("POST /mcp HTTP/1.1\r\n{host}Host: evil.example\r\n"), 400),
        (format!("POST /mcp HTTP/1.1\r\n{host}{host}"), 400),
        (format!("POST http://evil.example/mcp HTTP/1.1\r\n{host}"), 400),
        (format!("POST /mcp HTTP/1.1\r\n{host}{own}Origin: http://evil.example\r\n"), 400),
        (format!("POST /mcp HTTP/1.1\r\n{host}x-a: b\nhost: evil.example\r\n"), 400),
        (format!("POST /mcp HTTP/1.1\n{host}"), 400),
        (format!("POST /mcp HTTP/1.1\r\n{host}mcp-protocol-version: 2025-11-25\r\n"), 200),
        (
            format!(
                "POST /mcp HTTP/1.1\r\n{host}mcp-protocol-version: 2025-11-25\r\nMcp-Protocol-Version: 2026-07-28\r\n"
            ),
            400,
        ),
        (format!("POST /mcp HTTP/1.1\r\n{host}mcp-session-id: a\r\nmcp-session-id: b\r\n"), 400),
    ] {
        assert_eq!(status(address, &format!("{head}{rest}")).await, expected, "{head:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_body_cannot_be_hidden() {
    let address = listening(&server(&Arc::default()), &HttpOptions::new()).await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nx-user: ada\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    );
    let body = initialize();
    // If it were read as a head, the first body would announce a long body, and the second request could have any
    // lines.
    let first = "\r\ncontent-length: 99999\r\n\r\n";
    let (zeros, length) = ("0".repeat(60), body.len());
    let second =
        format!("{head}x-a: b\nhost: evil.example\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let both = format!("{head}Content-Length: {zeros}{}\r\n\r\n{first}{second}", first.len());
    stream.write_all(both.as_bytes()).await.unwrap();
    let mut answers = String::new();
    let _ = stream.read_to_string(&mut answers).await;
    assert!(answers.starts_with("HTTP/1.1 400") && !answers.contains("200 OK"), "{answers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_begin_count() {
    let address = listening(&server(&Arc::default()), &HttpOptions::new().max_sessions(2)).await;
    let body = initialize();
    let begin = async |user: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nx-user: {user}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        (stream, line)
    };
    let (mut open, mut said) = (Vec::new(), Vec::new());
    for user in ["ada", "bob", "cleo"] {
        let (stream, line) = begin(user).await;
        open.push(stream);
        said.push(line);
    }
    assert!(said[0].contains(" 100 ") && said[1].contains(" 100 ") && said[2].contains(" 503 "), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_an_end_is_closed_at_its_time() {
    let address = listening(&server(&Arc::default()), &HttpOptions::new().body_time(Duration::from_millis(50))).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nx-user: ada\r\nContent-Length: 200\r\n\r\n{{");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("connection: close"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_do_not_come_leave_room_for_others() {
    let store = Arc::<MemoryStore>::default();
    let day = Duration::from_hours(24);
    for options in [HttpOptions::new().max_connections(4), HttpOptions::new().max_connections_per_address(4)] {
        let address = listening(&server(&store), &options.body_time(day)).await;
        let mut open = Vec::new();
        for _ in 0..40 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nx-user: eve\r\nContent-Length: 200\r\n\r\n{{");
            // The server closes connections to make room for others.
            let _ = stream.write_all(head.as_bytes()).await;
            open.push(stream);
        }
        let client = with_session(address, "ada").await;
        assert_eq!(text(&call(&client, "add", json!({"a": 1, "b": 2})).await.unwrap()), "3");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_principal_leaves_calls_for_others() {
    let builder = McpServer::builder(runner(&Arc::default()), admitted).expose("math__add", "add");
    let server = builder.max_calls(4).max_calls_per_principal(3).build().unwrap();
    let address = listening(&server, &HttpOptions::new()).await;
    let (eve, ada) = (with_session(address, "eve").await, with_session(address, "ada").await);
    let sum = async |client: &Client| call(client, "add", json!({"a": 1, "b": 2})).await;
    let eve = Arc::new(eve);
    let mut slow = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let eve = Arc::clone(&eve);
        slow.spawn(async move {
            // A sum of the loop below may take its place.
            while call(&eve, "slow__read", json!({})).await.is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
    // Once all three run.
    while sum(&eve).await.is_ok() {}
    assert_eq!(text(&sum(&ada).await.unwrap()), "3");
    assert!(sum(&eve).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_principal_leaves_sessions_for_others() {
    let options = HttpOptions::new().max_sessions_per_principal(2);
    let address = listening(&server(&Arc::default()), &options).await;
    let begun =
        async |user: &str| raw(address, &format!("Host: {address}\r\nx-user: {user}\r\n"), &initialize()).await.0;
    assert_eq!([begun("ada").await, begun("ada").await, begun("ada").await, begun("bob").await], [200, 200, 429, 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_of_a_session_has_one_answer() {
    let address = listening(&server(&Arc::default()), &HttpOptions::new()).await;
    let head = format!("Host: {address}\r\nx-user: ada\r\n");
    let (_, begun) = raw(address, &head, &initialize()).await;
    let session = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let head = format!("{head}mcp-session-id: {session}\r\n");
    raw(address, &head, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let slow = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"slow__read","arguments":{}}}"#;
    let mut first = BufReader::new(TcpStream::connect(address).await.unwrap());
    let asked = format!(
        "POST /mcp HTTP/1.1\r\n{head}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{slow}",
        slow.len()
    );
    first.write_all(asked.as_bytes()).await.unwrap();
    let mut line = String::new();
    first.read_line(&mut line).await.unwrap();
    assert!(line.contains(" 200 "), "{line}");
    // The same id in several spellings, while the answer to the first takes long.
    for id in ["5", "5.0", "50e-1"] {
        let (status, answer) = raw(address, &head, &slow.replace(r#""id":5"#, &format!(r#""id":{id}"#))).await;
        assert_eq!(status, 400, "{id}: {answer}");
        assert!(answer.contains(&format!(r#""id":{id}"#)) && answer.contains("-32600"), "{answer}");
    }
    let (status, _) = raw(address, &head, r#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#).await;
    assert_eq!(status, 200);
    // The errors are the same as at a pipe.
    for (id, method, params, code) in [
        (20, "tools/call", r#"{"name":"add","arguments":"{\"a\":1,\"b\":2}"}"#, -32602),
        (21, "tools/call", r#"{"name":"add","arguments":[1,2]}"#, -32602),
        (22, "tools/call", r#"{"name":"add","arguments":{"a":1,"b":2},"arguments":{"a":1,"b":3}}"#, -32602),
        (23, "tools/call", r#"{"arguments":{}}"#, -32602),
        (24, "prompts/list", "{}", -32601),
        (25, "nothing/here", "{}", -32601),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let (_, answer) = raw(address, &head, &body).await;
        assert!(answer.contains(&format!(r#""id":{id}"#)) && answer.contains(&code.to_string()), "{body}: {answer}");
    }
}

fn windowed(store: &Arc<MemoryStore>, more: &str) -> McpServer {
    let catalog = ToolCatalog::builder().tool::<add>().build().unwrap();
    let policy = ToolPolicy::from_toml(&format!("allowed_tools = [\"math__add\"]\n{more}")).unwrap();
    let runner = ToolRunner::builder(catalog, policy).store(Arc::clone(store)).build().unwrap();
    McpServer::builder(runner, admitted).build().unwrap()
}

async fn sum(client: &Client) -> CallToolResult {
    call(client, "math__add", json!({"a": 1, "b": 2})).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_run_of_a_session_has_a_window() {
    let store = Arc::<MemoryStore>::default();
    let server = windowed(&store, "[budgets.run]\ncalls = 4\n[mcp]\nwindow = \"10m\"\ninstructions = \"Add.\"");
    let client = piped(&server).await;
    assert_eq!(client.peer_info().unwrap().instructions.as_deref(), Some("Add."));
    // Without a loop guard in the policy the same call is no loop.
    for _ in 0..4 {
        assert_eq!(text(&sum(&client).await), "3");
    }
    assert!(text(&sum(&client).await).contains("budget_exceeded"));
    tokio::time::advance(Duration::from_secs(599)).await;
    assert!(text(&sum(&client).await).contains("budget_exceeded"));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(text(&sum(&client).await), "3");
    let runs: std::collections::HashSet<_> =
        store.calls(&RecordFilter::default()).await.unwrap().into_iter().map(|record| record.run_id).collect();
    assert_eq!(runs.len(), 2);

    let client = piped(&windowed(&Arc::default(), "[loop_guard]\nwarn_at = 2\nstop_at = 3")).await;
    sum(&client).await;
    sum(&client).await;
    assert!(text(&sum(&client).await).contains("again and again"));
    tokio::time::advance(Duration::from_hours(1)).await;
    assert_eq!(text(&sum(&client).await), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_say_what_the_arguments_say() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["count"],
        "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}});
    let echo = DynamicTool::new("t__echo", "Echoes.", schema, ToolEffect::ReadOnly, Arc::new(Echo));
    let catalog = ToolCatalog::builder().dynamic(echo.redact(["count"])).build().unwrap();
    let store = Arc::<MemoryStore>::default();
    let runner =
        ToolRunner::builder(catalog, ToolPolicy::allow(["t__echo"])).store(Arc::clone(&store)).build().unwrap();
    let address = listening(&McpServer::builder(runner, admitted).build().unwrap(), &HttpOptions::new()).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    for (method, (header, arguments, status, said)) in [
        ("1.0", r#"{"count":1.0}"#, 200, "1"),
        ("1", r#"{"count":1.0}"#, 400, "Mcp-Param-Count"),
        ("2", r#"{"count":1.0}"#, 400, "Mcp-Param-Count"),
        ("2", "{}", 400, "Mcp-Param-Count"),
        // The gate reads the client's own text, and refuses the second.
        ("2", r#"{"count":1,"count":2}"#, 200, "invalid_json"),
    ]
    .into_iter()
    .flat_map(|case| [("tools/call", case), (r"tools\/call", case)])
    {
        let head = format!(
            "Host: {address}\r\nx-user: ada\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: t__echo\r\nmcp-param-count: {header}\r\n"
        );
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{meta},"name":"t__echo","arguments":{arguments}}}}}"#
        );
        let (answered, answer) = raw(address, &head, &message).await;
        assert_eq!(answered, status, "{answer}");
        assert!(answer.contains(said), "{answer}");
    }
    let refused = records(&store, 10).await;
    let refused = outcomes(&refused).into_iter().filter(|one| one[1] == "validation_error").count();
    assert_eq!(refused, 6, "a refused call has a record");
    // A client of a revision that does not have these headers does not send them. If they are there, they are compared.
    let client = with_session(address, "ada").await;
    let called = client.call_tool(request("t__echo", json!({"count": 15}))).await.unwrap();
    assert!(called.is_error == Some(false) && text(&called).contains("15"), "{called:?}");
    let head = format!("Host: {address}\r\nx-user: ada\r\n");
    let (_, begun) = raw(address, &head, &initialize()).await;
    let session = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let head = format!("{head}mcp-session-id: {session}\r\n");
    raw(address, &head, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let head = format!("{head}mcp-protocol-version: 2025-11-25\r\nmcp-param-count: 2\r\n");
    let message =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t__echo","arguments":{"count":1}}}"#;
    let (_, answer) = raw(address, &head, message).await;
    assert!(answer.contains("-32020") && answer.contains("Mcp-Param-Count"), "{answer}");
}

/// Clients over HTTP exclude a tool that marks such an argument.
#[tokio::test]
async fn a_mark_of_an_argument_that_no_header_can_repeat_is_an_error() {
    let is_allowed = ToolPolicy::allow(["t__echo"]);
    for (property, policy, is_valid) in [
        (json!({"type": ["integer", "null"], "x-mcp-header": "Count"}), &is_allowed, true),
        (json!({"type": "number", "x-mcp-header": "Count"}), &is_allowed, false),
        (json!({"type": "number", "x-mcp-header": "Count"}), &ToolPolicy::deny_all(), true),
        (json!({"type": "string", "x-mcp-header": "a b"}), &is_allowed, false),
        (json!({"type": "array", "items": {"type": "string", "x-mcp-header": "X"}}), &is_allowed, false),
        (json!({"type": "object", "properties": {"x": {"type": "number", "x-mcp-header": "X"}}}), &is_allowed, false),
    ] {
        let schema = json!({"type": "object", "properties": {"count": property}});
        let echo = DynamicTool::new("t__echo", "Echoes.", schema, ToolEffect::ReadOnly, Arc::new(Echo));
        let catalog = ToolCatalog::builder().dynamic(echo.redact(["count"])).build().unwrap();
        let runner = ToolRunner::builder(catalog, policy.clone()).build().unwrap();
        let built = McpServer::builder(runner, admitted).build().map_err(|error| error.to_string());
        assert_eq!(built.is_ok(), is_valid, "{property}");
        assert!(built.err().is_none_or(|error| error.contains("`t__echo`: ") && error.contains("x-mcp-header")));
    }
}

/// A header reveals no tool: neither to a party that may not see it, nor to a client that is not admitted.
#[tokio::test(flavor = "multi_thread")]
async fn a_header_reveals_no_hidden_tool() {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let dynamic = |name: &str| {
        DynamicTool::new(name, "Echoes.", schema.clone(), ToolEffect::ReadOnly, Arc::new(Echo)).redact(["region"])
    };
    let catalog = ToolCatalog::builder().dynamic(dynamic("t__shown")).dynamic(dynamic("t__hidden")).build().unwrap();
    let store = Arc::<MemoryStore>::default();
    let runner =
        ToolRunner::builder(catalog, ToolPolicy::allow(["t__shown"])).store(Arc::clone(&store)).build().unwrap();
    let address = listening(&McpServer::builder(runner, admitted).build().unwrap(), &HttpOptions::new()).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let asked = async |user: &str, name: &str| {
        let head = format!(
            "Host: {address}\r\n{user}mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\nmcp-param-region: eu\r\n"
        );
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"_meta": meta, "name": name, "arguments": {"region": "us"}}});
        let (status, answer) = raw(address, &head, &message.to_string()).await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        (status, body.replace(name, "NAME"))
    };
    let shown = asked("x-user: ada\r\n", "t__shown").await;
    assert!(shown.0 == 400 && shown.1.contains("Mcp-Param-Region"), "{shown:?}");
    let hidden = asked("x-user: ada\r\n", "t__hidden").await;
    assert!(hidden.1.contains("Unknown tool: NAME"), "{hidden:?}");
    assert_eq!(hidden, asked("x-user: ada\r\n", "t__absent").await);
    let records = records(&store, 3).await;
    assert!(outcomes(&records).contains(&json!(["t__hidden", "policy_denied"])), "{records:?}");
    let stranger = asked("", "t__shown").await;
    assert!(!stranger.1.contains("Mcp-Param"), "{stranger:?}");
    assert_eq!(stranger, asked("", "t__absent").await);
}
