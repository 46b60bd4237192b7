//! Tests conversations without a keyboard: saving, continuing and waiting.

use serde_json::{Value, json};

use crate::endpoint::{Endpoint, call, text};
use crate::rig::{Rig, TASK};

/// Creates a rig whose commands get the endpoint from the environment.
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
        "run chat in a terminal",
        "tasks__delete_task waits for a person",
        "Deletes the task",
        "Onboarding of the new colleague",
        &format!("   task_id  {TASK}"),
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

/// The id of a call is untrusted text of the model.
#[test]
fn a_printed_command_can_be_run() {
    for (id, printed, pasted) in [
        (
            "c1; echo 'x'",
            r"approvals approve 'c1; echo '\''x'\''' --attribute=-x=1",
            &["--attribute=-x=1", "c1; echo 'x'"][..],
        ),
        ("-c1", "approvals approve --attribute=-x=1 -- -c1", &["--attribute=-x=1", "--", "-c1"]),
    ] {
        let delete = call(id, "tasks__delete_task", &json!({ "task_id": TASK }));
        let endpoint = Endpoint::new(vec![delete, text("It is gone.")]);
        let rig = rig(&endpoint);
        let ended = rig.run(&["--attribute=-x=1", "chat", "--no-stream", &format!("Delete {TASK}")]).code(5);
        assert!(ended.stderr.contains(&format!("toolbox {printed}\n")), "{printed}: {}", ended.stderr);
        rig.run(&[&["approvals", "approve", "--no-stream"], pasted].concat()).code(0);
    }
}

/// Without its role, a continued conversation would have fewer rights.
#[test]
fn a_printed_command_has_the_roles_of_the_party() {
    let open = call("c1", "editor__open_in_editor", &json!({ "path": "plan.md" }));
    let endpoint = Endpoint::new(vec![open]);
    let party = ["--role", "clerk", "--attribute", "status=new"];
    let waits = rig(&endpoint).run(&[&party[..], &["chat", "--no-stream", "Open the plan."]].concat()).code(6);
    let command = "chat --continue --answer c1 JSON --role clerk --attribute status=new\n";
    assert!(waits.stderr.contains(command), "{}", waits.stderr);
}

#[test]
fn a_decision_without_a_model_is_read_later() {
    let delete = call("c1", "tasks__delete_task", &json!({ "task_id": TASK }));
    let endpoint = Endpoint::new(vec![delete, text("Then not.")]);
    let rig = Rig::new();
    let model = ["--model-url", &endpoint.url, "--model", "m", "--no-stream"];
    rig.run(&[&["chat"], &model[..], &[&format!("Delete {TASK}")]].concat()).code(5);
    endpoint.request();
    let denied = rig.run(&["--data", "./data", "approvals", "deny", "c1", "keep it"]).code(0);
    let (_, command) = denied.stderr.split_once("to pass it on to the model: toolbox chat --conversation ").unwrap();
    assert!(command.lines().next().unwrap().ends_with(" --data ./data"), "{denied:?}");
    let continued = rig.run(&[&["chat"], &model[..], &["--continue"]].concat()).code(0);
    assert_eq!(continued.stdout, "Then not.\n");
    let request = endpoint.request();
    assert_eq!(roles(&request), ["system", "user", "assistant", "tool"]);
    assert!(request["messages"][3]["content"].as_str().unwrap().contains("keep it"), "{request}");
}

#[test]
fn a_chat_that_was_answered_is_done_whatever_became_of_its_calls() {
    let turns = || vec![call("c1", "tasks__delete_task", &json!({ "task_id": ": " })), text("Which one?")];
    let endpoint = Endpoint::new([turns(), turns()].concat());
    let rig = rig(&endpoint);
    assert_eq!(rig.run(&["chat", "--no-stream", "Delete it."]).code(0).stdout, "Let me see.\nWhich one?\n");
    let account = rig.run(&["--json", "chat", "--no-stream", "Delete it."]).code(0).stdout;
    let account: Value = serde_json::from_str(account.lines().last().unwrap()).unwrap();
    assert_eq!(account["gravest"], "validation_error");
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
fn a_file_of_a_tool_is_named() {
    let print = call("c1", "weather__print_forecast", &json!({ "city": "London", "days": 2, "unit": "celsius" }));
    let endpoint = Endpoint::new(vec![print, text("Here it is.")]);
    let shown = rig(&endpoint).run(&["chat", "--no-stream", "Print the forecast."]).code(0);
    let file = shown.stderr.lines().find(|line| line.contains("file:")).unwrap_or_else(|| panic!("{}", shown.stderr));
    assert!(file.starts_with("   file: application/pdf, ") && file.ends_with(" bytes"), "{file}");
    assert!(!file.contains(" 0 bytes"), "{file}");
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

/// The beginning of an image, as the program reads it.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[test]
fn files_go_with_the_first_prompt_and_are_kept() {
    let endpoint = Endpoint::new(vec![text("A plan."), text("Still a plan."), text("Yes.")]);
    let rig = rig(&endpoint);
    // The content decides the type; the name decides only the kind of a text.
    std::fs::write(rig.path("plan.jpg"), PNG).unwrap();
    rig.write("report.pdf", "%PDF-1.7\n");
    rig.write("notes.md", "# Notes");
    let files = ["--file", "plan.jpg", "--file", "report.pdf", "--file", "notes.md"];
    rig.run(&[&["chat", "--no-stream"], &files[..], &["What is this?", "And now?"]].concat()).code(0);
    let request = endpoint.request();
    let content = &request["messages"][1]["content"];
    let kinds: Vec<_> = content.as_array().unwrap().iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["image_url", "file", "text", "text"], "{request}");
    assert!(content[0]["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"), "{request}");
    assert_eq!((&content[1]["file"]["filename"], &content[3]["text"]), (&json!("report.pdf"), &json!("What is this?")));
    assert_eq!(content[2]["text"], "notes.md:\n\n# Notes");
    // The second prompt has no file, and a later process sends the first message unchanged.
    let second = endpoint.request();
    assert_eq!((&second["messages"][1]["content"], &second["messages"][3]["content"]), (content, &json!("And now?")));
    rig.run_with(&["chat", "--no-stream", "--continue", "--file", "-", "Right?"], "from a pipe").code(0);
    let third = endpoint.request();
    assert_eq!(third["messages"][1]["content"], *content);
    assert!(third["messages"][5]["content"].to_string().contains("from a pipe"), "{third}");
}

#[test]
fn a_file_that_cannot_be_sent_is_refused_before_anything_is_sent() {
    let endpoint = Endpoint::new(vec![text("Hi.")]);
    let rig = rig(&endpoint);
    rig.write("folder/empty.txt", "");
    rig.write("page.png", "<html>404</html>");
    std::fs::write(rig.path("program"), b"\x7fELF\x02\x01\x01\0").unwrap();
    std::fs::write(rig.path("latin.txt"), b"caf\xe9").unwrap();
    let large = std::fs::File::create(rig.path("large.txt")).unwrap();
    large.set_len((20 << 20) + 1).unwrap();
    let half = "a".repeat(11 << 20);
    rig.write("half.txt", &half);
    for (files, said) in [
        (&["missing.png"][..], "cannot open missing.png"),
        (&["folder"], "folder is a folder; name a file"),
        (&["folder/empty.txt"], "the file is empty"),
        (&["page.png"], "page.png cannot be sent: its content is text, but its name has the extension of another type"),
        (&["program"], "program cannot be sent: its content is not an image"),
        (&["latin.txt"], "latin.txt cannot be sent: its content is not an image"),
        (&["large.txt"], "large.txt is larger than 20 MiB"),
        (&["half.txt", "half.txt"], "half.txt cannot be sent: with the files before it, it exceeds 20 MiB"),
    ] {
        let options = files.iter().flat_map(|file| ["--file", file]).collect::<Vec<_>>();
        let ended = rig.run(&[&["chat", "--no-stream"], &options[..], &["Look."]].concat()).code(2);
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
    let both = rig.run_with(&["chat", "--no-stream", "--file", "-", "-"], "x").code(2);
    assert!(both.stderr.contains("standard input can be read once"), "{}", both.stderr);
    // A file can only be sent with a prompt.
    rig.run(&["chat", "--no-stream", "Hello"]).code(0);
    assert_eq!(roles(&endpoint.request()), ["system", "user"]);
    let none = rig.run(&["chat", "--no-stream", "--continue", "--file", "half.txt"]).code(2);
    assert!(none.stderr.contains("a prompt for `--file` is missing"), "{}", none.stderr);
}

#[test]
fn a_file_that_the_format_cannot_carry_is_named() {
    let endpoint = Endpoint::new(vec![text("Hi.")]);
    let rig = rig(&endpoint);
    std::fs::write(rig.path("say.flac"), b"fLaC\0\0\0\x22").unwrap();
    let ended = rig.run(&["chat", "--no-stream", "--file", "say.flac", "Listen."]).code(0);
    assert!(ended.stderr.contains("left out: say.flac (audio/flac), which openai"), "{}", ended.stderr);
    assert!(endpoint.request().to_string().contains("cannot be passed on to this model"));
}

#[test]
fn an_answer_fits_its_schema_and_is_alone_on_stdout() {
    let list = call("c1", "tasks__list_tasks", &json!({}));
    let endpoint = Endpoint::new(vec![list, text("{\"open\":\"two\"}"), text("{\"open\":2}")]);
    let rig = rig(&endpoint);
    let schema = json!({"type": "object", "properties": {"open": {"type": "integer"}}, "required": ["open"]});
    rig.write("answer.json", &schema.to_string());
    let ask = ["chat", "--no-stream", "--answer-schema", "answer.json", "How many tasks are open?"];
    let ended = rig.run(&ask).code(0);
    assert_eq!(ended.stdout, "{\"open\":2}\n", "neither what came before nor what did not fit");
    assert!(ended.stderr.contains("tasks__list_tasks"), "{}", ended.stderr);
    let format = endpoint.request()["response_format"].clone();
    assert_eq!(format["json_schema"]["schema"]["properties"]["open"]["type"], "integer", "{format}");
    endpoint.request();
    let repair = endpoint.request()["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(repair.contains("/open"), "the model is told once what is wrong: {repair}");
    // A second invalid answer ends the turn.
    let stubborn = Endpoint::new(vec![text("two"), text("2")]);
    let rig = self::rig(&stubborn);
    rig.write("answer.json", &schema.to_string());
    let ended = rig.run(&ask);
    assert!(ended.code == 1 && ended.stdout.is_empty(), "{ended:?}");
}

#[test]
fn what_is_no_schema_of_an_answer_is_refused_before_anything_is_asked() {
    let endpoint = Endpoint::new(vec![]);
    let rig = rig(&endpoint);
    for (content, part) in [
        ("[]", "the answer is not an object"),
        ("{\"type\":\"string\"}", "the answer is not an object"),
        ("{\"type\":\"object\",\"properties\":5}", "properties"),
        ("{", "line 1"),
    ] {
        rig.write("answer.json", content);
        let ended = rig.run(&["--json", "chat", "--answer-schema", "answer.json", "Hello"]).code(2);
        assert_eq!(ended.error(), "schema", "{content}");
        assert!(ended.stderr.contains(part), "{content}: {}", ended.stderr);
    }
    let missing = rig.run(&["--json", "chat", "--answer-schema", "missing.json", "Hello"]).code(2);
    assert_eq!(missing.error(), "unreadable_input");
}
