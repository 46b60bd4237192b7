//! Tests recorded responses: unusual output of models, and files in a wrong format.

use serde_json::json;

use crate::endpoint;
use crate::rig::Rig;

fn response(arguments: &str) -> String {
    let mut body = endpoint::call("c1", "tasks__create_task", &json!({}));
    body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = json!(arguments);
    body.to_string()
}

#[test]
fn arguments_that_no_value_can_hold_are_printed() {
    let rig = Rig::new();
    let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    for (name, body) in [("deep", response(&deep)), ("half", response(r#"{"title":"\ud800"}"#))] {
        rig.write(name, &body);
        let printed = rig.run(&["--json", "chat", "--transcript", name, "Create it."]).code(4);
        assert!(
            printed.stdout.starts_with("{\"decoded\":") && printed.stdout.ends_with("\"exit\":4}\n"),
            "{printed:?}"
        );
        rig.run(&["chat", "--transcript", name, "Create it."]).code(4);
        rig.run(&["replay", "--format", "openai-chat", name]).code(4);
    }
}

#[test]
fn a_file_in_another_format_is_not_a_response() {
    let rig = Rig::new();
    rig.write("chat", &endpoint::text("hi").to_string());
    rig.write("other", r#"{"a":1}"#);
    rig.write("page", "<html>no</html>");
    rig.write("empty", "");
    for (format, file) in [
        ("anthropic", "chat"),
        ("openai-responses", "chat"),
        ("ollama", "chat"),
        ("openai-chat", "other"),
        ("openai-chat", "page"),
        ("ollama", "page"),
        ("anthropic", "empty"),
    ] {
        let ended = rig.run(&["chat", "--format", format, "--transcript", file, "hello"]).code(2);
        assert!(ended.stderr.contains("is it the right file?"), "{format} {file}: {}", ended.stderr);
    }
    rig.run(&["chat", "--transcript", "chat", "hello"]).code(0);
}

#[test]
fn a_recorded_error_is_a_failure_of_the_model() {
    let rig = Rig::new();
    rig.write("error", r#"{"error":{"message":"overloaded","type":"server_error"}}"#);
    rig.write("gateway", "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<html>no</html>");
    for file in ["error", "gateway"] {
        rig.run(&["chat", "--transcript", file, "hello"]).code(1);
        rig.run(&["replay", "--format", "openai-chat", file]).code(1);
    }
}

#[test]
fn conversations_that_share_a_call_id_share_no_effect() {
    let rig = Rig::new();
    rig.write("task", &response(r#"{"title":"Water the plants"}"#));
    let mail = json!({"to": ["a@example.com"], "subject": "s", "body": "b"});
    rig.write("mail", &endpoint::call("c1", "mail__send_email", &mail).to_string());
    rig.write("open.toml", "allowed_tools = [\"mail__send_email\", \"tasks__create_task\", \"tasks__list_tasks\"]");
    for conversation in 1..=3 {
        for file in ["task", "mail"] {
            rig.run(&["--policy", "open.toml", "chat", "--transcript", file, "Again."]).code(0);
        }
        assert_eq!(rig.mails(), conversation);
        let tasks = rig.run(&["call", "tasks__list_tasks"]).code(0).stdout;
        assert_eq!(tasks.matches("Water the plants").count(), conversation, "{tasks}");
    }
}

#[test]
fn a_sensitive_argument_is_not_shown_to_people() {
    let rig = Rig::new();
    let mail = json!({"to": ["a@example.com"], "subject": "s", "body": "TOP-SECRET"});
    rig.write("mail", &endpoint::call("c1", "mail__send_email", &mail).to_string());
    for words in [&["-vvv"][..], &["--log", "trace"], &[]] {
        let shown = rig.run(&[words, &["chat", "--transcript", "mail", "Send it."]].concat()).code(5);
        assert!(shown.stdout.contains("messages that would go back"), "{shown:?}");
        assert!(!shown.stdout.contains("TOP-SECRET") && !shown.stderr.contains("TOP-SECRET"), "{words:?}: {shown:?}");
    }
}
