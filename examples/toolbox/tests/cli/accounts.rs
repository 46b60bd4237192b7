//! Tests accounts of the configuration file (`[mcp.connections.KIND]`) in calls of MCP servers' tools.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::rig::{Ended, Rig};

const NAME: &str = "mcp__s__count";
const TOKEN: &str = "CANARY-5f1d";

/// A server that lists its tool without a token, but refuses calls without one.
struct Tickets {
    url: String,
    /// The tokens of the calls.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Tickets {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heard = Arc::clone(&heard);
                std::thread::spawn(move || answer(stream, &heard));
            }
        });
        Self { url, seen }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

fn answer(mut stream: TcpStream, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut token) = (0, String::new());
    for line in reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap_or_default();
        match &*name.to_ascii_lowercase() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => value.clone_into(&mut token),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "tickets", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            seen.lock().unwrap().push(token.clone());
            json!({"content": [{"type": "text", "text": "7"}]})
        }
        _ => Value::Null,
    };
    let is_call = message["method"] == "tools/call";
    let status = match result {
        _ if is_call && token != format!("Bearer {TOKEN}") => "401 Unauthorized",
        Value::Null => "202 Accepted",
        _ => "200 OK",
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
    let _ = stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
}

/// Writes a configuration with the server and this account, and a policy that pins its tool.
fn rig(tickets: &Tickets, account: &str) -> Rig {
    let mut rig = Rig::new();
    // The command that prints a token is a program of the system.
    rig.set("PATH", "/usr/bin:/bin");
    rig.write("policy.toml", &format!("allowed_tools = ['{NAME}']\n[tools.{NAME}]\nredact = ['text']\n"));
    rig.write("config.toml", &format!("[mcp.servers.s]\nurl = '{}'\nconnection = 'tickets'\n{account}", tickets.url));
    run(&rig, &["mcp", "pin", "--yes"]).code(0);
    rig
}

fn run(rig: &Rig, words: &[&str]) -> Ended {
    let head = ["--config", "config.toml", "--policy", "policy.toml", "--json"];
    let ended = rig.run(&[&head[..], words].concat());
    assert!(!format!("{ended:?}").contains(TOKEN), "a token is printed: {ended:?}");
    ended
}

#[cfg(unix)]
#[test]
fn a_token_comes_from_a_variable_or_a_command_and_is_in_no_file() {
    let tickets = Tickets::start();
    for account in [
        "[mcp.connections.tickets]\ntoken_env = 'TICKETS_TOKEN'\n",
        "[mcp.connections.tickets]\ntoken_command = ['sh', '-c', 'echo \"$TICKETS_TOKEN\"']\nenv = ['TICKETS_TOKEN']\n",
    ] {
        let mut rig = rig(&tickets, account);
        let missing = run(&rig, &["-v", "call", NAME, "{}"]);
        assert!(missing.code != 0 && missing.stdout.contains("connection_failed"), "{missing:?}");
        let why = ["TICKETS_TOKEN is not set", "the token is empty"];
        assert!(why.iter().any(|why| missing.stderr.contains(why)), "{missing:?}");
        assert_eq!(tickets.take(), [""; 0], "nothing is sent without a token");
        rig.set("TICKETS_TOKEN", TOKEN);
        let called = run(&rig, &["call", NAME, "{}"]).code(0);
        assert!(called.stdout.contains('7'), "{called:?}");
        assert_eq!(tickets.take(), [format!("Bearer {TOKEN}")]);
        rig.set("TICKETS_TOKEN", "revoked");
        let refused = run(&rig, &["call", NAME, "{}"]);
        assert!(refused.code != 0 && refused.stdout.contains("connection_unavailable"), "{refused:?}");
        tickets.take();
    }
    for command in ["['false']", "['/no/such/program']", "['sh', '-c', 'yes']"] {
        let rig = rig(&tickets, &format!("[mcp.connections.tickets]\ntoken_command = {command}\n"));
        let failed = run(&rig, &["call", NAME, "{}"]);
        assert!(failed.code != 0 && failed.stdout.contains("connection_failed"), "{failed:?}");
        assert_eq!(tickets.take(), [""; 0], "{command}");
    }
}

/// Processes that a token command started end with the call that needed the token.
#[cfg(target_os = "linux")]
#[test]
fn a_command_for_a_token_ends_with_its_call() {
    let tickets = Tickets::start();
    let script = "sleep 100000 & echo $! > child; wait";
    let rig = rig(&tickets, &format!("[mcp.connections.tickets]\ntoken_command = ['sh', '-c', '{script}']\n"));
    let mut call = rig.start(&["--config", "config.toml", "--policy", "policy.toml", "call", NAME, "{}"]);
    let child = loop {
        let written = std::fs::read_to_string(rig.path("child")).unwrap_or_default();
        match written.strip_suffix('\n') {
            Some(child) => break std::path::Path::new("/proc").join(child).join("stat"),
            None => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    };
    let interrupted = std::process::Command::new("kill").args(["-INT", &call.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    call.wait().unwrap();
    // An ended process may remain as a zombie until its new parent waits for it.
    let runs = || std::fs::read_to_string(&child).is_ok_and(|state| !state.contains(") Z "));
    while runs() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(tickets.take(), [""; 0], "nothing is sent without a token");
}

#[test]
fn an_account_that_cannot_be_used_is_refused_with_what_to_write() {
    let server = "[mcp.servers.s]\nurl = 'http://127.0.0.1:1/mcp'\nconnection = 'tickets'\n";
    for (config, message) in [
        ("[mcp.connections.tickets]\n", "token_env"),
        ("[mcp.connections.tickets]\ntoken_env = 'A'\ntoken_command = ['b']\n", "not both"),
        ("[mcp.connections.tickets]\ntoken_command = []\n", "empty"),
        ("[mcp.connections.tickets]\ntoken_env = 'A'\nenv = ['B']\n", "remove `env`"),
        ("[mcp.connections.other]\ntoken_env = 'A'\n", "no server uses it"),
        ("[mcp.connections.tickets]\ntoken = 'CANARY-5f1d'\n", "unknown field"),
        ("[mcp.servers.t]\ncommand = ['x']\nconnection = 'tickets'\n", "a command has no headers"),
    ] {
        let rig = Rig::new();
        rig.write("config.toml", &format!("{server}{config}"));
        rig.write("policy.toml", "");
        let refused = run(&rig, &["call", NAME, "{}"]);
        assert_eq!((refused.code, refused.error()), (2, json!("config")), "{refused:?}");
        assert!(refused.stderr.contains(message), "{config}: {}", refused.stderr);
    }
}
