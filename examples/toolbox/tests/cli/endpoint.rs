//! A model's endpoint on loopback, with scripted answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

/// An endpoint in the format of Chat Completions.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    requests: Receiver<Value>,
    release: Sender<()>,
}

/// Returns an answer that is sent only after [`Endpoint::release`].
pub(crate) fn held(answer: &Value) -> Value {
    json!({ "held": answer })
}

/// An answer of plain text.
pub(crate) fn text(text: &str) -> Value {
    answer(&json!({"role": "assistant", "content": text}), "stop")
}

/// An answer with one call.
pub(crate) fn call(id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let calls = json!([{"id": id, "type": "function", "function": function}]);
    answer(&json!({"role": "assistant", "content": "Let me see.", "tool_calls": calls}), "tool_calls")
}

fn answer(message: &Value, finish: &str) -> Value {
    json!({
        "id": "r", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
}

impl Endpoint {
    /// Answers requests one after the other. The answer `null` is never sent, `status` sets the HTTP status, and a
    /// [`held`] answer is sent after its release.
    pub(crate) fn new(answers: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, requests) = channel();
        let (release, released) = channel();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for answer in answers {
                let Ok((mut stream, _)) = listener.accept() else { return };
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let _ = seen.send(serde_json::from_slice(&body).unwrap());
                if answer.is_null() {
                    silent.push(stream);
                    continue;
                }
                let answer = match answer.get("held") {
                    Some(held) => {
                        let Ok(()) = released.recv() else { return };
                        held.clone()
                    }
                    None => answer,
                };
                let body = answer.to_string();
                let status = answer["status"].as_u64().unwrap_or(200);
                let head = "content-type: application/json\r\nconnection: close";
                let _ =
                    write!(stream, "HTTP/1.1 {status} ..\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            }
            // Connections without an answer stay open until the test ends.
            std::thread::park();
        });
        Self { url, requests, release }
    }

    /// Releases one held answer.
    pub(crate) fn release(&self) {
        self.release.send(()).unwrap();
    }

    /// Returns the next request.
    pub(crate) fn request(&self) -> Value {
        self.requests.recv().unwrap()
    }
}
