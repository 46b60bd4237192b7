//! Calls that the server turns into tasks. Each task ends in its own way, or never.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Act, CANARY, answer, refuse};

/// The tools of the server. Each creates a task, except the last, which lists the cancelled tasks.
pub(super) const NAMES: [&str; 14] = [
    "done",
    "failed",
    "given_up",
    "endless",
    "lazy",
    "changed",
    "asks",
    "asked",
    "large",
    "garbage",
    "forgotten",
    "no_id",
    "old",
    "what_was_cancelled",
];

/// The tasks of a server.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// The number of polls of each task.
    polls: HashMap<String, usize>,
    cancelled: Vec<String>,
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "_meta": {"token": CANARY}})
}

fn task(id: &str, status: &str, kind: &str, interval: u64) -> Value {
    json!({"resultType": kind, "taskId": id, "status": status, "statusMessage": CANARY, "ttlMs": null,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "pollIntervalMs": interval})
}

impl Tasks {
    pub(super) fn handle(&mut self, id: &Value, method: &str, params: &Value) -> Vec<Act> {
        let said = |result: &Value| vec![answer(id, result)];
        let named = params["taskId"].as_str().unwrap_or_default();
        match method {
            "tools/call" => match params["name"].as_str().unwrap_or_default() {
                "echo" => said(&text(params["arguments"]["text"].as_str().unwrap_or_default())),
                "what_was_cancelled" => said(&text(&self.cancelled.join(" "))),
                "no_id" => said(&task("a\nb", "working", "task", 60)),
                "old" => said(&json!({"task": {"taskId": "old", "status": "working"}})),
                "lazy" => said(&task("lazy", "working", "task", u64::MAX)),
                "endless" => said(&task("endless", "working", "task", 0)),
                name => said(&task(name, "working", "task", 60)),
            },
            "tasks/cancel" => {
                self.cancelled.push(named.to_owned());
                said(&json!({"resultType": "complete"}))
            }
            _ => {
                let polls = self.polls.entry(named.to_owned()).or_default();
                *polls += 1;
                self.get(id, named)
            }
        }
    }

    fn get(&self, id: &Value, named: &str) -> Vec<Act> {
        let with = |status: &str, key: &str, value: Value| {
            let mut task = task(named, status, "complete", 60);
            task[key] = value;
            vec![answer(id, &task)]
        };
        let working = || vec![answer(id, &task(named, "working", "complete", 0))];
        match named {
            "done" if self.polls[named] < 3 => working(),
            "done" | "lazy" => with("completed", "result", text("fine")),
            "failed" => {
                with("failed", "error", json!({"code": -32000, "message": "no".repeat(50_000), "data": CANARY}))
            }
            "given_up" => with("cancelled", "x", json!(1)),
            "changed" => vec![answer(id, &task("another", "completed", "complete", 60))],
            "asks" => with("input_required", "inputRequests", json!({"a": {"method": "elicitation/create"}})),
            "asked" => with("completed", "result", json!({"resultType": "input_required", "inputRequests": {}})),
            "large" => vec![Act::Say(format!(
                r#"{{"result":{{"taskId":"large","status":"completed","result":{{"content":[{{"type":"text","text":"{}"}}]}}}},"jsonrpc":"2.0","id":{id}}}"#,
                "x".repeat(50 << 20)
            ))],
            "garbage" => vec![answer(id, &json!("hello"))],
            "forgotten" => vec![refuse(id, -32602, "Task not found")],
            _ => working(),
        }
    }
}
