//! Conversations without a keyboard: saved, continued, waiting.

use serde_json::{Value, json};

use crate::endpoint::{Endpoint, call, text};
use crate::rig::{Rig, TASK};

/// A rig whose commands find the endpoint in the environment.
fn rig(endpoint: &Endpoint) -> Rig {
    let mut rig = Rig::new();
    rig.set("TOOLBOX_MODEL_URL", &endpoint.url).set("TOOLBOX_MODEL", "m");
    rig
}

fn roles(request: &Value) -> Vec<&str> {
    request["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[test]
fn a_conversation_is_continued_by_another_process() {
    let endpoint = Endpoint::new(vec![text("Good morning."), text("I said good morning."), text("Again.")]);
    let rig = rig(&endpoint);
    let first = rig.run_with(&["chat", "--no-stream", "-"], "Hello").code(0);
    assert_eq!(first.stdout, "Good morning.\n");
    assert_eq!(roles(&endpoint.request()), ["system", "user"]);
    rig.run(&["chat", "--no-stream", "--continue", "What did you say?"]).code(0);
    assert_eq!(roles(&endpoint.request()), ["system", "user", "assistant", "user"]);
    let file = std::fs::read_dir(rig.path("data/conversations")).unwrap().next().unwrap().unwrap().path();
    let id = file.file_stem().unwrap().to_str().unwrap();
    rig.run(&["chat", "--no-stream", "--conversation", id, "And now?"]).code(0);
    assert_eq!(endpoint.request()["messages"].as_array().unwrap().len(), 6);
    rig.run(&["chat", "--conversation", "../secret", "x"]).code(2);
}

#[test]
fn without_a_keyboard_a_call_waits_and_says_how_to_decide_it() {
    let delete = call("c1", "tasks__delete_task", &json!({ "task_id": TASK }));
    let endpoint = Endpoint::new(vec![delete, text("It is gone.")]);
    let rig = rig(&endpoint);
    let ended = rig.run(&["chat", "--no-stream", &format!("Delete {TASK}"), "And then?"]).code(5);
    for expected in [
        "<- approval_required tasks__delete_task",
        "a terminal would ask",
        "toolbox approvals approve c1",
        "not sent, because a call waits: `And then?`",
    ] {
        assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
    }
    endpoint.request();
    assert_eq!(rig.waiting()[0]["tool"], "tasks__delete_task");
    let approved = rig.run(&["approvals", "approve", "c1", "--no-stream"]).code(0);
    assert!(approved.stdout.contains("It is gone."), "{approved:?}");
    assert_eq!(roles(&endpoint.request()), ["system", "user", "assistant", "tool"]);
    assert!(rig.waiting().is_empty());
}

#[test]
fn a_decision_without_a_model_is_read_later() {
    let delete = call("c1", "tasks__delete_task", &json!({ "task_id": TASK }));
    let endpoint = Endpoint::new(vec![delete, text("Then not.")]);
    let rig = Rig::new();
    let model = ["--model-url", &endpoint.url, "--model", "m", "--no-stream"];
    rig.run(&[&["chat"], &model[..], &[&format!("Delete {TASK}")]].concat()).code(5);
    endpoint.request();
    let denied = rig.run(&["approvals", "deny", "c1", "keep it"]).code(3);
    assert!(denied.stderr.contains("decided; the model reads it with: toolbox chat --conversation"), "{denied:?}");
    let continued = rig.run(&[&["chat"], &model[..], &["--continue"]].concat()).code(0);
    assert_eq!(continued.stdout, "Then not.\n");
    let request = endpoint.request();
    assert_eq!(roles(&request), ["system", "user", "assistant", "tool"]);
    assert!(request["messages"][3]["content"].as_str().unwrap().contains("keep it"), "{request}");
}

#[test]
fn a_client_call_is_answered_in_a_later_process() {
    let open = call("c1", "editor__open_in_editor", &json!({ "path": "plan.md" }));
    let endpoint = Endpoint::new(vec![open, text("It is open.")]);
    let rig = rig(&endpoint);
    let waits = rig.run(&["chat", "--no-stream", "Open the plan."]).code(6);
    assert!(waits.stderr.contains("chat --continue --answer c1 JSON"), "{}", waits.stderr);
    rig.run(&["chat", "--no-stream", "--continue", "--answer", "c9", "{}"]).code(2);
    let answered = rig.run(&["chat", "--no-stream", "--continue", "--answer", "c1", "{\"opened\":true}"]).code(0);
    assert!(answered.stdout.ends_with("It is open.\n"), "{answered:?}");
}

#[test]
fn calls_and_results_are_for_people() {
    let list = call("c1", "tasks__list_tasks", &json!({ "state": "todo" }));
    let endpoint = Endpoint::new(vec![list, text("Two.")]);
    let ended = rig(&endpoint).run(&["chat", "--no-stream", "Which tasks are open?"]).code(0);
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(lines[..3], ["-> tasks__list_tasks", "   state  todo", "<- ok tasks__list_tasks"], "{lines:?}");
    assert!(lines[3].starts_with("   -  ") && lines[3].contains("title: "), "{lines:?}");
    let quiet = Endpoint::new(vec![text("Hi.")]);
    assert!(rig(&quiet).run(&["chat", "-q", "--no-stream", "Hello"]).code(0).stderr.is_empty());
}

#[test]
fn the_endpoint_gets_what_the_options_say() {
    let endpoint = Endpoint::new(vec![text("Hi.")]);
    let options =
        ["--no-stream", "--temperature", "0.5", "--output-limit-field", "max_tokens", "--max-output-tokens", "9"];
    rig(&endpoint).run(&[&["chat"], &options[..], &["Hello"]].concat()).code(0);
    let request = endpoint.request();
    assert_eq!((&request["temperature"], &request["max_tokens"]), (&json!(0.5), &json!(9)), "{request}");
    let endpoint = Endpoint::new(vec![text("Hi.")]);
    let options = ["--no-stream", "--effort", "low", "--stop", "END", "--seed", "-3", "--body", "top_k=40"];
    rig(&endpoint).run(&[&["chat"], &options[..], &["Hello"]].concat()).code(0);
    let request = endpoint.request();
    let sent = json!([request["reasoning_effort"], request["stop"], request["seed"], request["top_k"]]);
    assert_eq!(sent, json!(["low", ["END"], -3, 40]));
    for (options, word) in [
        (["--body", "messages=[]"], "extra.messages"),
        (["--body", "temperature=0.5"], "extra.temperature"),
        (["--temperature", "NaN"], "temperature"),
        (["--effort", "huge"], "xhigh"),
    ] {
        let ended = rig(&endpoint).run(&[&["chat"], &options[..], &["Hello"]].concat()).code(2);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
    let silent = Endpoint::new(vec![Value::Null]);
    let options = ["--no-stream", "--timeout", "300ms", "--retries", "0"];
    rig(&silent).run(&[&["chat"], &options[..], &["Hello"]].concat()).code(1);
}

#[test]
fn json_is_one_event_per_line_and_a_summary() {
    let endpoint = Endpoint::new(vec![text("Hi.")]);
    let ended = rig(&endpoint).run(&["--json", "chat", "--no-stream", "Hello"]).code(0);
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["type"] == "text_delta") && lines.last().unwrap()["summary"].is_object());
}

#[test]
fn an_empty_prompt_is_not_sent() {
    let rig = Rig::new();
    let model = ["chat", "--model-url", "http://127.0.0.1:1", "--model", "m"];
    rig.run(&[&model[..], &[" "]].concat()).code(2);
    let empty = rig.run_with(&[&model[..], &["-"]].concat(), "\n").code(2);
    assert!(empty.stderr.contains("a prompt is empty"), "{empty:?}");
    let dead = rig.run(&[&model[..], &["--retries", "0", "Hello"]].concat()).code(1);
    assert!(dead.stderr.contains("--model-url"), "{dead:?}");
}

#[test]
fn a_key_that_the_provider_repeats_is_not_printed() {
    let endpoint = Endpoint::new(vec![json!({"status": 401, "error": {"message": "no such key: sk-12345678"}})]);
    let mut rig = rig(&endpoint);
    rig.set("KEY", "sk-12345678");
    let ended =
        rig.run(&["-vvv", "chat", "--no-stream", "--key-env", "KEY", "--model-url", &endpoint.url, "Hi"]).code(1);
    assert!(ended.stderr.contains("no such key: [key]") && !ended.stderr.contains("sk-12345678"), "{ended:?}");
}
