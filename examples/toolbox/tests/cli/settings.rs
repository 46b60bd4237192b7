//! Tests the settings of a command: options, environment, configuration file and principal.

use serde_json::Value;

use crate::rig::Rig;

/// The decision of `list` for a tool.
fn decision(rig: &Rig, words: &[&str], tool: &str) -> Value {
    let mut all = vec!["--json", "list"];
    all.extend(words);
    let rows = rig.run(&all).code(0).json();
    rows.as_array().unwrap().iter().find(|row| row["name"] == tool).unwrap()["decision"].clone()
}

#[test]
fn an_option_wins_over_the_environment_and_that_over_the_file() {
    let mut rig = Rig::new();
    rig.write("config/toolbox/config.toml", "policy = \"narrow.toml\"\n");
    rig.write("config/toolbox/narrow.toml", "allowed_tools = [\"docs__search\"]");
    rig.write("none.toml", "allowed_tools = []");
    rig.write("notes.toml", "allowed_tools = [\"notes__list_notes\"]");
    assert_eq!(decision(&rig, &[], "docs__search"), "allow");
    assert_eq!(decision(&rig, &[], "notes__list_notes"), "deny");
    rig.set("TOOLBOX_POLICY", "none.toml");
    assert_eq!(decision(&rig, &[], "docs__search"), "deny");
    assert_eq!(decision(&rig, &["--policy", "notes.toml"], "notes__list_notes"), "allow");
}

#[test]
fn a_key_that_the_file_does_not_know_is_refused() {
    let rig = Rig::new();
    let file = rig.write("mine.toml", "polciy = \"x.toml\"\n");
    let ended = rig.run(&["--json", "--config", file.to_str().unwrap(), "list"]).code(2);
    assert_eq!(ended.error(), "config");
    assert!(ended.stderr.contains("polciy"), "{}", ended.stderr);
    assert_eq!(rig.run(&["--json", "--config", "missing.toml", "list"]).code(2).error(), "unreadable_input");
}

#[test]
fn list_export_and_show_decide_as_call_does() {
    let rig = Rig::new();
    let policy = "allowed_tools = [\"docs__search\"]\n[principals.bob]\ndenied_tools = [\"docs__search\"]\n\
                  [roles.writer]\nallowed_tools = [\"notes__add_note\"]\n";
    rig.write("p.toml", policy);
    let with = |words: &[&'static str]| {
        let mut all = vec!["--policy", "p.toml"];
        all.extend(words);
        all
    };
    for (party, allowed) in [(&[][..], true), (&["--principal", "bob"], false)] {
        let search = ["call", "docs__search", "{\"query\":\"login\"}"];
        let called = rig.run(&with(&[party, &search].concat()));
        assert_eq!(called.code, if allowed { 0 } else { 3 }, "{party:?}: {called:?}");
        let listed = decision(&rig, &with(party), "docs__search");
        assert_eq!(listed, if allowed { "allow" } else { "deny" }, "{party:?}");
        let exported = rig.run(&with(&[party, &["export", "--as", "openai-chat"]].concat())).code(0).stdout;
        assert_eq!(exported.contains("docs__search"), allowed, "{party:?}");
        let shown = rig.run(&with(&[party, &["show", "docs__search"]].concat())).code(0);
        assert_eq!(shown.stderr.contains("policy: deny"), !allowed, "{party:?}: {}", shown.stderr);
    }
    let note = ["call", "notes__add_note", "{\"text\":\"x\"}"];
    rig.run(&with(&note)).code(3);
    rig.run(&with(&[&["--role", "writer"], &note[..]].concat())).code(0);
}

#[test]
fn commands_that_only_look_check_the_policy() {
    let rig = Rig::new();
    rig.write("p.toml", "allowed_tools = [\"docs__serch\"]");
    for words in [&["list"][..], &["show", "docs__search"], &["export", "--as", "ollama"], &["call", "docs__search"]] {
        let ended = rig.run(&[&["--json", "--policy", "p.toml"], words].concat()).code(2);
        assert_eq!(ended.error(), "policy_problem", "{words:?}");
        assert_eq!(ended.stdout, "", "{words:?}");
    }
    rig.run(&["--policy", "p.toml", "check"]).code(1);
    assert!(!rig.path("data/conversations").exists());
}

#[test]
fn a_policy_file_that_cannot_be_read_is_bad_input_of_check() {
    let rig = Rig::new();
    rig.write("policy.txt", "");
    rig.write("text.toml", "no policy");
    for file in ["missing.toml", "policy.txt", "."] {
        let unread = rig.run(&["--policy", file, "check"]).code(2);
        assert!(unread.stderr.contains(file), "{file}: {}", unread.stderr);
        assert_eq!(unread.stdout, "", "{file}");
    }
    // A mistake in the text is a finding.
    let found = rig.run(&["--policy", "text.toml", "check"]).code(1).stdout;
    assert!(found.contains("text.toml"), "{found}");
    let missing = rig.run(&["--json", "--policy", "missing.toml", "check", "--lock", "tools.lock", "--write"]).code(2);
    assert_eq!(missing.error(), "policy_problem");
    assert!(!rig.path("tools.lock").exists());
}

#[test]
fn a_definition_is_a_tree_for_a_person_and_data_for_a_program() {
    let rig = Rig::new();
    let shown = rig.run(&["show", "tasks__list_tasks"]).code(0).stdout;
    let line = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("owner_email").ends_with("not shown"), "{shown}");
    assert!(line("title").ends_with("model, UI, audit"), "{shown}");
    let mail = rig.run(&["show", "mail__send_email"]).code(0).stdout;
    assert!(mail.contains("sensitive: masked"), "{mail}");
    // A policy that narrows an allowlist narrows the tree.
    let policy =
        "allowed_tools = ['tasks__list_tasks']\ntools.tasks__list_tasks = { redact = ['task_id'], model = ['title'] }";
    rig.write("p.toml", policy);
    let narrow = rig.run(&["--policy", "p.toml", "show", "tasks__list_tasks"]).code(0).stdout;
    let readers = |name: &str| narrow.lines().find(|line| line.starts_with(name)).map(|line| line.ends_with("  model"));
    assert_eq!((readers("title"), readers("task_id")), (Some(true), Some(false)), "{narrow}");
    for words in [&["--json", "show", "tasks__list_tasks"][..], &["show", "tasks__list_tasks", "--as", "spec"]] {
        assert_eq!(rig.run(words).code(0).json()["name"], "tasks__list_tasks", "{words:?}");
    }
}

#[test]
fn what_an_encoder_leaves_out_is_told() {
    let rig = Rig::new();
    for words in [
        &["show", "tasks__update_task", "--as", "openai-chat", "--strict"][..],
        &["export", "--as", "ollama", "--strict"],
    ] {
        let ended = rig.run(words).code(0);
        assert!(ended.stderr.contains("left out: "), "{words:?}: {}", ended.stderr);
        assert!(rig.run(&[words, &["-q"]].concat()).code(0).stderr.is_empty(), "{words:?}");
        ended.json();
    }
}

#[test]
fn the_log_says_why_a_tool_failed() {
    let rig = Rig::new();
    rig.run(&["call", "tasks__list_tasks"]).code(0);
    let other = rusqlite::Connection::open(rig.path("data/toolbox.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let note = ["call", "notes__add_note", "{\"text\":\"x\"}"];
    let why = "another program is writing to toolbox.db";
    let silent = rig.run(&note).code(1);
    assert!(!silent.stderr.contains(why) && !silent.stdout.contains(why), "{silent:?}");
    let told = rig.run(&[&["-v"], &note[..]].concat()).code(1);
    assert!(told.stderr.contains(why) && told.stderr.contains("execution_error"), "{told:?}");
    assert!(!told.stdout.contains(why), "{told:?}");
    let file = rig.run(&[&["--log", "operators.log"], &note[..]].concat()).code(1);
    assert!(!file.stderr.contains(why), "{file:?}");
    assert!(std::fs::read_to_string(rig.path("operators.log")).unwrap().contains(why));
    // A filter names targets; the text of a failure is one line, at the level of errors.
    let told = rig.run(&[&["--log", "warn,tool_runtime=debug"], &note[..]].concat()).code(1);
    assert_eq!(told.stderr.matches(why).count(), 1, "{told:?}");
    let off = rig.run(&[&["--log", "info,tool_runtime::failures=off"], &note[..]].concat()).code(1);
    assert!(!off.stderr.contains(why) && off.stderr.contains("a tool call failed"), "{off:?}");
}

#[test]
fn the_usual_variable_filters_the_log() {
    let mut rig = Rig::new();
    rig.run(&["call", "tasks__list_tasks"]).code(0);
    let refused = ["call", "notes__add_note", "{}"];
    assert_eq!(rig.run(&refused).code(4).stderr.matches("a tool call was refused").count(), 0);
    rig.set("RUST_LOG", "tool_runtime=debug");
    assert!(rig.run(&refused).code(4).stderr.contains("a tool call was refused"));
    // The option overrides the variable, and the filter also applies to a file.
    assert!(!rig.run(&[&["--log", "error"], &refused[..]].concat()).code(4).stderr.contains("a tool call was refused"));
    let file = rig.run(&[&["--log", "operators.log"], &refused[..]].concat()).code(4);
    assert!(!file.stderr.contains("a tool call was refused"), "{file:?}");
    assert!(std::fs::read_to_string(rig.path("operators.log")).unwrap().contains("a tool call was refused"));
    rig.set("RUST_LOG", "tool_runtime=loud");
    let wrong = rig.run(&refused).code(2);
    assert!(wrong.stderr.contains("RUST_LOG") && wrong.stderr.contains("warn,tool_runtime=debug"), "{wrong:?}");
}

#[test]
fn a_role_that_the_policy_does_not_name_is_told() {
    let mut rig = Rig::new();
    rig.write("p.toml", "allowed_tools = [\"docs__search\"]\n[roles.writer]\nallowed_tools = [\"notes__add_note\"]\n");
    for words in [&["list"][..], &["call", "docs__search", "{\"query\":\"x\"}"], &["export", "--as", "gemini"]] {
        let told = rig.run(&[&["--policy", "p.toml", "--role", "wrtier"], words].concat()).code(0);
        assert!(told.stderr.contains("no role `wrtier`") && told.stderr.contains("`writer`"), "{told:?}");
    }
    rig.set("TOOLBOX_ROLES", "writer");
    assert_eq!(rig.run(&["--policy", "p.toml", "list"]).code(0).stderr, "");
}

#[test]
fn a_large_file_is_no_policy() {
    let rig = Rig::new();
    rig.write("p.toml", &"# ".repeat(3 * 1024 * 1024));
    let told = rig.run(&["--json", "--policy", "p.toml", "list"]).code(2);
    assert_eq!(told.error(), "policy_problem");
    assert!(told.stderr.contains("larger than 4 MiB"), "{told:?}");
}

#[test]
fn the_environment_wins_over_the_file_for_colours_too() {
    let mut rig = Rig::new();
    rig.write("config/toolbox/config.toml", "color = \"always\"\n");
    assert!(rig.run(&["list"]).stdout.contains('\u{1b}'));
    rig.set("NO_COLOR", "1");
    assert!(!rig.run(&["list"]).stdout.contains('\u{1b}'));
    rig.set("TOOLBOX_FORMAT", "gpt");
    let told = rig.run(&["list"]).code(2).stderr;
    assert!(told.contains("TOOLBOX_FORMAT") && told.contains("openai-chat"), "{told}");
}

/// A terminal shows quoted text of an error, and does not interpret its control characters.
#[test]
fn errors_hold_no_escapes() {
    let rig = Rig::new();
    rig.write("p.toml", "\"\\u001b[31mkey\" = 1");
    for words in [
        &["\u{1b}[2Jlist"][..],
        &["list", "--\u{1b}[2J"],
        &["export", "--as", "\u{1b}[2J"],
        &["call", "x", "@\u{1b}[2J"],
        &["man", "\u{1b}[2J"],
        &["--policy", "p.toml", "list"],
        &["--policy", "\u{1b}[2J", "list"],
        &["--config", "\u{1b}[2J", "list"],
        &["chat", "--transcript", "\u{1b}[2J", "x"],
        &["replay", "--format", "ollama", "\u{1b}[2J"],
        &["chat", "--model-url", "http://127.0.0.1:1", "--model", "m", "--key-env", "\u{1b}[2J", "x"],
    ] {
        let ended = rig.run(words).code(2);
        assert!(!ended.stderr.contains('\u{1b}') && !ended.stderr.is_empty(), "{words:?}: {ended:?}");
    }
}
