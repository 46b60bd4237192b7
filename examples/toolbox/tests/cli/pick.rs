//! Tests `pick`, `export --pick` and `chat --pick`, which select the tools for a request.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::endpoint::{Endpoint, call, text};
use crate::rig::{Ended, Rig};

/// The names in a printed JSON array of picks.
fn names(ended: &Ended) -> Vec<String> {
    let picks = ended.json();
    picks.as_array().unwrap().iter().map(|pick| pick["name"].as_str().unwrap().to_owned()).collect()
}

/// The names that a request or an export for Chat Completions offers.
fn offered(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

fn tool(name: &str, description: &str) -> String {
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    json!({"name": name, "description": description, "inputSchema": schema}).to_string()
}

#[test]
fn the_tools_that_fit_are_printed_with_their_reasons() {
    let rig = Rig::new();
    let table = rig.run(&["pick", "List my tasks."]).code(0).stdout;
    let rows: Vec<_> = table.lines().collect();
    assert!(rows[0].starts_with("NAME") && rows[1].starts_with("tasks__list_tasks"), "{table}");
    assert!(rows[1].contains("tasks") && rows.len() <= 4, "{table}");
    let picked = rig.run(&["--json", "pick", "List my tasks.", "-k", "2"]).code(0);
    assert_eq!(names(&picked)[0], "tasks__list_tasks");
    assert_eq!(names(&picked).len(), 2);
    let first = &picked.json()[0];
    assert!(first["score"].as_f64().unwrap() > 0.05 && first["reasons"][0]["word"].is_string(), "{first}");
    assert!(!rig.path("data").exists(), "picking opens no data");
}

#[test]
fn questions_of_users_find_the_list_and_not_a_function_word() {
    let rig = Rig::new();
    for (query, unmatched) in [
        ("Which tasks are open?", ""),
        ("is anything overdue?", ""),
        ("Which of my deadlines are in the fridge?", "no tool has: fridge\n"),
    ] {
        let picked = rig.run(&["pick", query, "-k", "1"]).code(0);
        assert!(picked.stdout.contains("\ntasks__list_tasks"), "{query}: {picked:?}");
        assert_eq!(picked.stderr, unmatched, "{query}");
    }
    let nothing = rig.run(&["pick", "what do I have to do?"]).code(0);
    assert!(nothing.stdout.is_empty() && nothing.stderr.contains("no tool fits"), "{nothing:?}");
}

#[test]
fn what_the_policy_hides_is_not_picked() {
    let rig = Rig::new();
    rig.write(
        "p.toml",
        "allowed_tools = ['tasks__list_tasks']\n[principals.bob]\ndenied_tools = ['tasks__list_tasks']\n",
    );
    let pick = |words: &[&str]| {
        rig.run(&[&["--json", "--policy", "p.toml"], words, &["pick", "delete or list the tasks", "-k", "20"]].concat())
    };
    assert_eq!(names(&pick(&[]).code(0)), ["tasks__list_tasks"]);
    assert!(names(&pick(&["--principal", "bob"]).code(0)).is_empty());
}

/// Like `call`, the commands `list`, `show`, `export` and `pick` take the attributes of the party into account.
#[test]
fn what_an_attribute_denies_is_in_no_listing() {
    let rig = Rig::new();
    rig.write(
        "p.toml",
        "allowed_tools = ['tasks__list_tasks']\n[attributes.status.suspended]\ndenied_tools = ['tasks__list_tasks']\n",
    );
    let run = |words: &[&str]| {
        rig.run(&[&["--json", "--policy", "p.toml", "--attribute", "status=suspended"], words].concat())
    };
    let listed = run(&["list"]).code(0).json();
    let row = listed.as_array().unwrap().iter().find(|row| row["name"] == "tasks__list_tasks").unwrap();
    assert_eq!((&row["decision"], &row["rule"]), (&json!("deny"), &json!("attributes.status.suspended.denied_tools")));
    let shown = run(&["show", "tasks__list_tasks"]).code(0);
    assert!(shown.stderr.contains("policy: deny"), "{shown:?}");
    let exported = run(&["export", "--as", "openai-chat"]).code(0).stdout;
    assert!(!exported.contains("tasks__list_tasks"), "{exported}");
    assert!(names(&run(&["pick", "list the tasks"])).is_empty());
    run(&["call", "tasks__list_tasks", "{}"]).code(3);
}

#[test]
fn what_fits_no_tool_says_so() {
    let rig = Rig::new();
    let long = "x9 ".repeat(30_000);
    for query in ["", " ", "🙂🙃", "!?", &long] {
        let ended = rig.run(&["pick", query]).code(0);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains("no tool fits"), "{}", ended.stderr);
        assert_eq!(rig.run(&["--json", "pick", query]).code(0).json(), json!([]));
    }
    let none = rig.run(&["export", "--as", "openai-chat", "--pick", "🙂"]).code(0);
    assert!(none.stderr.contains("no tool fits"), "{none:?}");
}

#[test]
fn mistakes_say_what_to_write() {
    let rig = Rig::new();
    rig.write("empty.jsonl", "\n\n");
    rig.write("queries.jsonl", "{\"id\":1,\"query\":\"tasks\"}\n{\"id\":2}\n");
    rig.write("array.json", &format!("[{}]", tool("a__b", "Does it.")));
    for (words, part) in [
        (&["pick"][..], "<QUERY"),
        (&["pick", "tasks", "--queries", "queries.jsonl"], "cannot be used with"),
        (&["pick", "tasks", "-k", "0"], "at least 1"),
        (&["pick", "tasks", "-k", "many"], "-k <TOOLS>"),
        (&["pick", "tasks", "-k", "129"], "128"),
        (&["pick", "tasks", "--tools", "missing.jsonl"], "missing.jsonl"),
        (&["pick", "tasks", "--tools", "empty.jsonl"], "no usable tool definition"),
        (&["pick", "tasks", "--tools", "array.json"], "one JSON object per line"),
        (&["pick", "--queries", "missing.jsonl"], "missing.jsonl"),
        (&["pick", "--queries", "queries.jsonl"], "line 2"),
        (&["export", "--as", "ollama", "-k", "3"], "--pick"),
        (&["export", "--as", "ollama", "--pick", "tasks", "-k", "0"], "at least 1"),
        (&["chat", "--pick", "0", "--model-url", "http://127.0.0.1:1", "--model", "m", "hello"], "at least 1"),
    ] {
        let ended = rig.run(words).code(2);
        assert!(ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn broken_definitions_cost_no_good_one_its_place() {
    let rig = Rig::new();
    let mut lines = String::new();
    for number in 0..10_000 {
        let broken = match number % 5 {
            0 => "{\"name\":".to_owned(),
            1 => json!({"name": "no name", "schema": {"type": "object"}}).to_string(),
            2 => json!({"name": format!("a__{number}"), "schema": {"type": 7}}).to_string(),
            3 => "\u{1b}[2J\u{202e}null".to_owned(),
            _ => json!({"name": null, "inputSchema": {}}).to_string(),
        };
        writeln!(lines, "{broken}").unwrap();
        if number % 2_500 == 1_000 {
            writeln!(lines, "{}", tool(&format!("billing__invoice_{number}"), "Sends an invoice.")).unwrap();
        }
    }
    rig.write("tools.jsonl", &lines);
    let ended = rig.run(&["--json", "pick", "--tools", "tools.jsonl", "send an invoice", "-k", "9"]).code(0);
    let expected = [1_000, 3_500, 6_000, 8_500].map(|number| format!("billing__invoice_{number}"));
    assert_eq!(names(&ended), expected);
    assert!(ended.stderr.lines().count() < 10, "{}", ended.stderr);
    assert!(ended.stderr.contains("line 1: left out") && ended.stderr.contains("10000 definitions left out, 4 taken"));
    assert!(!ended.stderr.contains(['\u{1b}', '\u{202e}']), "{:?}", ended.stderr);
}

/// The files have the format of `hydrate`. A byte that is not text affects only one definition.
#[test]
fn calls_are_hydrated_against_what_can_be_read() {
    let rig = Rig::new();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let good = |name: &str| json!({"id": name, "wire_name": name, "name": "x", "schema": schema}).to_string();
    let mut tools = format!("{}\n{{\"name\":\n{}\n", good("a__one"), good("a__one")).into_bytes();
    tools.extend(b"{\"name\":\"\xff\"}\n");
    tools.extend(good("a__two").as_bytes());
    std::fs::write(rig.path("tools.jsonl"), tools).unwrap();
    let call = |name: &str| {
        let function = json!({"name": name, "arguments": "{\"n\":1}"});
        json!({"id": name, "payload": {"id": "c1", "function": function}}).to_string()
    };
    rig.write("calls.jsonl", &["a__one", "a__two", "a__three"].map(call).join("\n"));
    let ended = rig.run(&["hydrate", "--tools", "tools.jsonl", "--calls", "calls.jsonl"]).code(0);
    let outcomes: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<_> = outcomes.iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["ok", "ok", "unknown_tool"]);
    for said in ["line 2: left out", "line 3: left out: it is another `a__one`", "line 4: left out: it is not UTF-8"] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    let ended = rig.run(&["--json", "pick", "--tools", "tools.jsonl", "two"]).code(0);
    assert_eq!(names(&ended), ["a__two"]);
}

#[test]
fn definitions_of_every_spelling_are_read() {
    let rig = Rig::new();
    let schema = json!({"type": "object", "properties": {}});
    let rows = [
        json!({"name": "a__inputSchema", "description": "Paints.", "inputSchema": schema}),
        json!({"name": "a__input_schema", "description": "Paints.", "input_schema": schema}),
        json!({"name": "a__parameters", "description": "Paints.", "parameters": schema}),
        // With the name under which it was published.
        json!({"wire_name": "a__schema", "name": "schema", "description": "Paints.", "schema": schema}),
        json!({"name": "mcp__studio__paint", "description": null, "inputSchema": schema}),
    ];
    rig.write("tools.jsonl", &rows.map(|row| row.to_string()).join("\r\n"));
    let ended = rig.run(&["--json", "pick", "--tools", "tools.jsonl", "paint", "-k", "9"]).code(0);
    let mut found = names(&ended);
    found.sort();
    assert_eq!(found, ["a__inputSchema", "a__input_schema", "a__parameters", "a__schema", "mcp__studio__paint"]);
    assert_eq!(ended.stderr, "");
}

#[test]
fn each_request_of_a_file_is_answered_on_a_line() {
    let rig = Rig::new();
    let rows = "{\"id\":\"q1\",\"query\":\"List my tasks.\"}\n\n{\"id\":2,\"query\":\"🙂\"}\r\n";
    rig.write("queries.jsonl", rows);
    for (file, stdin) in [("queries.jsonl", ""), ("-", rows)] {
        let ended = rig.run_with(&["pick", "--queries", file, "-k", "1"], stdin).code(0);
        let answers: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers.len(), 2, "{ended:?}");
        assert_eq!((&answers[0]["id"], &answers[0]["ranked"]), (&json!("q1"), &json!(["tasks__list_tasks"])));
        assert_eq!((&answers[1]["id"], &answers[1]["ranked"]), (&json!(2), &json!([])));
        assert!(answers[0]["ms"].is_number());
    }
}

#[test]
fn export_prints_the_picked_tools() {
    let rig = Rig::new();
    let export = |words: &[&str]| rig.run(&[&["export", "--as", "openai-chat"], words].concat()).code(0).json();
    let picked = export(&["--pick", "List my tasks.", "-k", "2"]);
    assert_eq!(offered(&picked)[0], "tasks__list_tasks");
    assert_eq!(offered(&picked).len(), 2);
    assert_eq!(offered(&export(&["--pick", "List my tasks."])).len(), 3);
}

#[test]
fn a_conversation_finds_a_tool_and_keeps_it() {
    let endpoint = Endpoint::new(vec![
        call("c1", "notes__list_notes", &json!({})),
        call("c2", "tools__search", &json!({"query": "list the notes"})),
        call("c3", "notes__list_notes", &json!({})),
        text("There are notes."),
        text("Sunny."),
    ]);
    let mut rig = Rig::new();
    rig.set("TOOLBOX_MODEL_URL", &endpoint.url).set("TOOLBOX_MODEL", "m");
    let ended = rig.run(&["chat", "--no-stream", "--pick", "1", "List my tasks."]).code(0);
    assert!(ended.stdout.ends_with("There are notes.\n"), "{ended:?}");
    let requests: Vec<_> = (0..4).map(|_| endpoint.request()).collect();
    let first = ["tools__search", "tasks__list_tasks"];
    assert_eq!(offered(&requests[0]), first);
    assert_eq!(offered(&requests[1]), first);
    let answered = |request: &Value| request["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(answered(&requests[1]).contains("Load it with `tools__search`"), "{}", requests[1]);
    assert!(answered(&requests[2]).contains("notes__list_notes"), "{}", requests[2]);
    assert!(offered(&requests[2]).starts_with(&first) && offered(&requests[2]).contains(&"notes__list_notes"));
    assert_eq!(offered(&requests[3]), offered(&requests[2]));
    // In another process, the offered tools are the same, in the same order, and the new message appends some.
    rig.run(&["chat", "--no-stream", "--pick", "1", "--continue", "What is the weather forecast?"]).code(0);
    let later = endpoint.request();
    assert!(offered(&later).starts_with(&offered(&requests[3])), "{later}");
    assert!(offered(&later).contains(&"weather__get_forecast"), "{later}");
    assert_eq!(later["messages"][0], requests[0]["messages"][0], "the instructions stay");
}

#[test]
fn without_picking_no_search_is_offered() {
    let endpoint = Endpoint::new(vec![text("Hello.")]);
    let mut rig = Rig::new();
    rig.set("TOOLBOX_MODEL_URL", &endpoint.url).set("TOOLBOX_MODEL", "m");
    rig.run(&["chat", "--no-stream", "Hello"]).code(0);
    let request = endpoint.request();
    let names = offered(&request);
    assert!(names.contains(&"tasks__list_tasks") && !names.contains(&"tools__search"), "{names:?}");
}
