//! Tests `call`, and approvals in another process.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Rig, TASK};

#[test]
fn exit_codes_follow_outcomes() {
    let rig = Rig::new();
    let mail = r#"{"to":["a@example.com"],"subject":"s","body":"b"}"#;
    for (words, code) in [
        (&["call", "core__get_current_time"][..], 0),
        (&["call", "fs__read_file", r#"{"path":"missing.md"}"#], 1),
        (&["call"], 2),
        (&["call", "core__get_current_time", "@missing.json"], 2),
        (&["call", "core__nothing"], 3),
        (&["call", "core__get_current_time", r#"{"zone":1}"#], 4),
        (&["call", "mail__send_email", mail], 5),
        (&["call", "editor__open_in_editor", r#"{"path":"plan.md"}"#], 6),
    ] {
        rig.run(words).code(code);
    }
}

#[test]
fn json_is_a_document_for_results_and_for_errors() {
    let rig = Rig::new();
    let good = rig.run(&["--json", "call", "core__get_current_time"]).code(0).json();
    assert_eq!((&good["ok"], &good["outcome"]), (&json!(true), &json!("ok")));
    assert!(good["value"]["iso"].is_string() && good["model"].is_string(), "{good}");
    let bad = rig.run(&["call", "--json", "core__get_current_time", "{"]).code(4).json();
    assert_eq!((&bad["ok"], &bad["errorCode"]), (&json!(false), &json!("invalid_json")));
    // The JSON does not contain the hints for a person.
    let unknown = rig.run(&["call", "nope", "--json"]).code(3);
    assert_eq!((&unknown.json()["errorCode"], &*unknown.stderr), (&json!("unavailable"), ""));
    for (words, code) in [
        (&["--json", "nothing"][..], "usage"),
        (&["--json", "call", "core__get_current_time", "@missing.json"], "unreadable_input"),
        (&["--json", "show", "core__nothing"], "unavailable"),
        (&["--json", "--policy", "missing.toml", "list"], "policy_problem"),
        (&["chat", "--json", "hello"], "usage"),
    ] {
        let ended = rig.run(words).code(2);
        assert_eq!(ended.error(), code, "{words:?}");
        assert_eq!(ended.stdout, "", "{words:?}");
    }
}

#[test]
fn a_tool_returns_a_file_of_which_the_record_has_type_and_size() {
    let rig = Rig::new();
    let arguments = r#"{"city":"Oslo","unit":"celsius","days":3}"#;
    let printed = rig.run(&["--json", "call", "weather__print_forecast", arguments]).code(0).json();
    assert_eq!(printed["value"], json!({"city": "Oslo", "days": 3}), "{printed}");
    assert!(!printed["model"].as_str().unwrap().contains("file"), "the model gets it: {printed}");
    let record = rig.run(&["call", "weather__print_forecast", arguments, "--view", "audit"]).code(0).stdout;
    assert!(record.contains("application/pdf") && !record.contains("JVBERi0"), "{record}");
}

#[test]
fn arguments_come_from_standard_input_and_files() {
    let rig = Rig::new();
    rig.write("arguments.json", r#"{"timezone":"Asia/Tokyo"}"#);
    let expected = |stdout: &str| stdout.contains("Asia/Tokyo");
    assert!(expected(
        &rig.run_with(&["call", "core__get_current_time", "-"], r#"{"timezone":"Asia/Tokyo"}"#).code(0).stdout
    ));
    assert!(expected(&rig.run(&["call", "core__get_current_time", "@arguments.json"]).code(0).stdout));
    let response = crate::endpoint::text("hi").to_string();
    rig.run_with(&["chat", "--transcript", "-", "hello"], &response).code(0);
    rig.run_with(&["replay", "--format", "openai-chat", "-"], &response).code(0);
}

fn delete(rig: &Rig) -> String {
    let arguments = json!({ "task_id": TASK }).to_string();
    rig.run(&["call", "tasks__delete_task", &arguments, "--user-text", TASK]).code(5);
    rig.waiting().last().unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn another_process_approves_once() {
    let rig = Rig::new();
    let id = delete(&rig);
    let shown = rig.run(&["approvals", "show", &id]).code(0).stdout;
    for expected in ["Delete one task", TASK, "Onboarding of the new colleague", "require_approval_for_tools", "ada"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    // The author's sentence has the title in place of the id.
    let sentence = shown.lines().find(|line| line.trim_start().starts_with("Deletes the task")).unwrap_or_default();
    assert!(sentence.contains("Onboarding of the new colleague") && sentence.ends_with("for good"), "{shown}");
    let row = rig.run(&["--json", "approvals", "show", &id]).code(0).json();
    assert_eq!(row["names"][0]["pointer"], "/task_id", "{row}");
    assert!(row["summary"].as_str().unwrap().contains("Onboarding of the new colleague"), "{row}");
    let approved = rig.run(&["approvals", "approve", &id]).code(0);
    assert!(approved.stdout.contains(TASK), "{}", approved.stdout);
    assert!(rig.waiting().is_empty());
    assert_eq!(rig.run(&["--json", "approvals", "approve", &id]).code(2).error(), "not_pending");
    assert!(!rig.run(&["call", "tasks__list_tasks"]).code(0).stdout.contains(TASK));
}

#[test]
fn of_processes_that_decide_together_one_does() {
    let rig = Rig::new();
    let mail = r#"{"to":["a@example.com"],"subject":"s","body":"b"}"#;
    rig.run(&["call", "mail__send_email", mail]).code(5);
    let id = rig.waiting()[0]["id"].as_str().unwrap().to_owned();
    let codes: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| rig.run(&["approvals", "approve", &id]).code)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(rig.mails(), 1);
}

#[test]
fn decisions_are_denied_edited_and_answered() {
    let rig = Rig::new();
    let id = delete(&rig);
    let denied = rig.run(&["approvals", "deny", &id, "not this week"]).code(0).stdout;
    assert!(denied.contains("approval_denied") && denied.contains("not this week"), "{denied}");
    let id = delete(&rig);
    let unfit = rig.run(&["approvals", "edit", &id, "{\"task_id\":\"nonsense\"}"]).code(4).stdout;
    assert!(unfit.contains("approval_mismatch") && unfit.contains("/task_id"), "{unfit}");
    // The call still waits for a valid decision.
    assert_eq!(rig.waiting().len(), 1);
    rig.run(&["approvals", "answer", &id, &json!({ "task_id": TASK }).to_string()]).code(0);
    assert!(rig.run(&["call", "tasks__list_tasks"]).code(0).stdout.contains(TASK), "an answer deletes nothing");
}

#[test]
fn whom_the_policy_does_not_let_decide_is_refused() {
    let rig = Rig::new();
    rig.write(
        "p.toml",
        "allowed_tools = [\"tasks__delete_task\"]\nrequire_approval_for_tools = [\"tasks__delete_task\"]\n\
         [approvals]\nroles = [\"approver\"]\n",
    );
    let run = |words: &[&str]| rig.run(&[&["--json", "--policy", "p.toml"], words].concat());
    let arguments = json!({ "task_id": TASK }).to_string();
    run(&["call", "tasks__delete_task", &arguments, "--user-text", TASK]).code(5);
    let id = rig.waiting()[0]["id"].as_str().unwrap().to_owned();
    for by in [&[][..], &["--role", "approver"], &["--as", "grace"], &["--as", "grace", "--role", "auditor"]] {
        let refused = run(&[&["approvals", "approve", &id], by].concat()).code(3);
        assert_eq!(refused.error(), "not_allowed", "{by:?}");
    }
    assert_eq!(rig.waiting().len(), 1);
    run(&["approvals", "approve", &id, "--as", "grace", "--role", "approver", "--reason", "It is done."]).code(0);
    assert!(rig.waiting().is_empty());
}

#[test]
fn a_call_that_needs_two_people_says_who_approved_and_waits_for_the_other() {
    let rig = Rig::new();
    rig.write(
        "p.toml",
        "allowed_tools = [\"tasks__delete_task\"]\nrequire_approval_for_tools = [\"tasks__delete_task\"]\n\
         [approvals]\nrequired = 2\nprincipals = [\"grace\", \"heidi\", \"ivan\"]\n\
         [tools.tasks__delete_task]\neffect = \"external_side_effect\"\n",
    );
    let run = |words: &[&str]| rig.run(&[&["--policy", "p.toml"], words].concat());
    let arguments = json!({ "task_id": TASK }).to_string();
    let explained = run(&["policy", "explain", "tasks__delete_task"]).code(5);
    assert!(explained.stdout.contains("2 different deciders have to approve it"), "{}", explained.stdout);
    assert_eq!(run(&["--json", "policy", "explain", "tasks__delete_task"]).code(5).json()["required_approvals"], 2);
    run(&["call", "tasks__delete_task", &arguments, "--user-text", TASK]).code(5);
    let id = rig.waiting()[0]["id"].as_str().unwrap().to_owned();
    assert!(run(&["approvals", "list"]).code(0).stdout.contains("2 people: 0 of 2"));
    let first = run(&["approvals", "approve", &id, "--as", "grace"]).code(5);
    assert!(first.stdout.contains("1 of 2 approvals are noted"), "{}", first.stdout);
    assert_eq!(run(&["--json", "approvals", "approve", &id, "--as", "grace"]).code(3).error(), "not_allowed");
    assert_eq!(run(&["--json", "approvals", "approve", &id, "--as", "mallory"]).code(3).error(), "not_allowed");
    let listed = run(&["approvals", "list"]).code(0).stdout;
    assert!(listed.contains("2 people: 1 of 2, by grace"), "{listed}");
    let shown = run(&["approvals", "show", &id]).code(0).stdout;
    assert!(shown.contains("waits for 2 people: 1 of 2, by grace"), "{shown}");
    assert!(shown.contains("decided by grace or heidi or ivan of"), "{shown}");
    assert!(shown.contains("It reaches outside this system"), "the policy raises the effect: {shown}");
    let row = run(&["--json", "approvals", "list"]).code(0).json();
    assert_eq!((&row[0]["required"], &row[0]["approved_by"]), (&json!(2), &json!(["grace"])));
    run(&["approvals", "approve", &id, "--as", "heidi"]).code(0);
    assert!(rig.waiting().is_empty());
    let audited = run(&["audit", "show", "--kind", "decision"]).code(0).stdout;
    assert!(audited.contains("approved (1 of 2)") && audited.contains("approved (2 of 2)"), "{audited}");
}

/// If the file changes between the question and the decision, the decision does not count, and the call waits again.
#[test]
fn an_approval_counts_only_for_the_file_that_was_shown() {
    let rig = Rig::new();
    let note = "an approval counts only for the state of the world that was shown";
    let shown = rig.run(&["show", "fs__write_file"]).code(0).stdout;
    assert!(shown.contains(&format!("has a precondition: {note}")), "{shown}");
    assert!(!rig.run(&["show", "fs__read_file"]).code(0).stdout.contains("precondition"));
    let checked = rig.run(&["check"]).code(0).stderr;
    assert!(checked.contains(&format!("`fs__write_file` has a precondition: {note}")), "{checked}");

    rig.write(
        "p.toml",
        "allowed_tools = [\"fs__read_file\", \"fs__write_file\"]\nrequire_approval_for_tools = [\"fs__write_file\"]\n\
         [approvals]\nown_calls = true\n",
    );
    let run = |words: &[&str]| rig.run(&[&["--policy", "p.toml"], words].concat());
    run(&["call", "fs__write_file", r#"{"path":"a.txt","text":"new"}"#]).code(5);
    let id = rig.waiting()[0]["id"].as_str().unwrap().to_owned();
    let asked = run(&["approvals", "show", &id]).code(0).stdout;
    assert!(asked.contains("does not exist yet"), "{asked}");
    let question = || rig.waiting()[0]["question"].as_str().unwrap().to_owned();
    let before = question();
    rig.write("data/workspace/a.txt", "somebody else's");
    let changed = run(&["approvals", "approve", &id]).code(3).stdout;
    assert!(changed.contains("waits with a new question"), "{changed}");
    assert_ne!(question(), before);
    let asked = run(&["approvals", "show", &id]).code(0).stdout;
    assert!(asked.contains("somebody else's"), "{asked}");
    // The id of the call does not identify the question that the person has read.
    assert_eq!(run(&["--json", "approvals", "approve", &before]).code(3).json()["mismatch"], "question");
    assert_eq!(run(&["--json", "approvals", "approve", &id]).code(3).error(), "not_allowed");
    let named = run(&["approvals", "approve", &id]).code(3).stderr;
    assert!(asked.contains(&question()) && named.contains(&question()), "{named}");
    run(&["approvals", "approve", &question()]).code(0);
    assert!(run(&["call", "fs__read_file", r#"{"path":"a.txt"}"#]).code(0).stdout.contains("new"));
}

#[test]
fn arguments_may_be_an_option() {
    let rig = Rig::new();
    let listed = rig.run(&["call", "tasks__list_tasks", "--arguments", "{}"]).code(0).stdout;
    assert_eq!(listed, rig.run(&["call", "tasks__list_tasks", "{}"]).code(0).stdout);
    rig.run(&["call", "tasks__list_tasks", "{}", "--arguments", "{}"]).code(2);
}

#[test]
fn only_the_party_of_a_call_continues_it() {
    let rig = Rig::new();
    let id = delete(&rig);
    let other = rig.run(&["--json", "--principal", "mallory", "approvals", "approve", &id]).code(3);
    assert_eq!(other.error(), "other_principal");
    let told = rig.run(&["--principal", "mallory", "approvals", "approve", &id]).code(3).stderr;
    assert!(told.contains("name the decider with --as: --principal ada"), "{told}");
    assert_eq!(rig.waiting().len(), 1);
}

#[test]
fn sensitive_arguments_are_masked_until_somebody_asks() {
    let rig = Rig::new();
    rig.run(&["call", "mail__send_email", r#"{"to":["a@example.com"],"subject":"s","body":"TOP-SECRET"}"#]).code(5);
    let id = rig.waiting()[0]["id"].as_str().unwrap().to_owned();
    assert!(!rig.run(&["approvals", "show", &id]).code(0).stdout.contains("TOP-SECRET"));
    assert!(rig.run(&["approvals", "show", &id, "--unmask"]).code(0).stdout.contains("TOP-SECRET"));
    let whole = rig.run(&["--json", "approvals", "show", &id, "--unmask"]).code(0).json();
    assert_eq!(whole["arguments"]["body"], "TOP-SECRET");
    assert!(!rig.run(&["--json", "approvals", "show", &id]).code(0).stdout.contains("TOP-SECRET"));
}

#[cfg(unix)]
#[test]
fn documents_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let rig = Rig::new();
    delete(&rig);
    for entry in std::fs::read_dir(rig.path("data/conversations")).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}

#[test]
fn a_client_call_is_answered_now_or_later() {
    let rig = Rig::new();
    let open = ["call", "editor__open_in_editor", r#"{"path":"plan.md"}"#];
    rig.run(&[&open[..], &["--answer", "{\"opened\":true}"]].concat()).code(0);
    let waits = rig.run(&open).code(6);
    assert!(waits.stderr.contains("toolbox approvals answer call_"), "{}", waits.stderr);
    let id = rig.waiting()[0]["id"].as_str().unwrap().to_owned();
    let wrong = rig.run(&["approvals", "approve", &id]).code(2);
    assert!(wrong.stderr.contains("waits for its client"), "{}", wrong.stderr);
    rig.run(&["approvals", "answer", &id, "{\"opened\":true}"]).code(0);
    assert!(rig.waiting().is_empty());
}

/// A printed command finds the call, because it contains the data folder and the configuration file.
#[test]
fn the_command_that_decides_a_waiting_call_names_its_place() {
    let rig = Rig::new();
    rig.write("own.toml", "principal = 'bob'\n");
    let place = ["--config", "own.toml", "--data", "other place"];
    for (words, code, command) in [
        (["call", "editor__open_in_editor", r#"{"path":"plan.md"}"#], 6, "answer"),
        (["call", "mail__send_email", r#"{"to":["a@example.com"],"subject":"s","body":"b"}"#], 5, "show"),
    ] {
        let waits = rig.run(&[&place[..], &words].concat()).code(code);
        let line = waits.stderr.lines().find(|line| line.contains("toolbox approvals ")).unwrap();
        let (_, printed) = line.split_once(&format!("toolbox approvals {command} ")).unwrap();
        let id = printed.split(' ').next().unwrap();
        assert!(printed.ends_with(" --config own.toml --data 'other place' --principal bob"), "{line}");
        rig.run(&["approvals", "show", id]).code(2);
        rig.run(&[&["approvals", "show", id], &place[..]].concat()).code(0);
    }
}

/// The lock ends with its process. A mark remains and is reported once, because the call may have run.
#[test]
fn a_killed_decision_is_told_and_blocks_nobody() {
    let mut rig = Rig::new();
    // Without a ledger, only the mark shows that there was an attempt.
    rig.set("TOOLBOX_STORE", "memory");
    let (id, lock) = killed_decision(&rig, |_| true);
    rig.run(&["approvals", "approve", &id]).code(0);
    assert!(rig.waiting().is_empty() && !lock.exists());
}

/// The ledger of the data folder shows that the call began, so a second decision does not run it again.
#[test]
fn a_call_of_a_killed_decision_does_not_begin_again() {
    let rig = Rig::new();
    let (id, _) =
        killed_decision(&rig, |rig| rig.run(&["audit", "open"]).code(0).stdout.contains("tasks__delete_task"));
    let refused = rig.run(&["--json", "approvals", "approve", &id]).code(1);
    assert!(refused.error() == "unfinished" && refused.stderr.contains("toolbox audit open"), "{refused:?}");
    assert!(rig.run(&["audit", "open"]).code(0).stdout.contains("tasks__delete_task"));
    assert!(rig.run(&["call", "tasks__list_tasks"]).code(0).stdout.contains(TASK));
}

/// Kills a process that carries out a decision once it has begun, and returns the call and the lock of its document.
fn killed_decision(rig: &Rig, has_begun: impl Fn(&Rig) -> bool) -> (String, std::path::PathBuf) {
    let (id, lock) = loop {
        let id = delete(rig);
        let database = rusqlite::Connection::open(rig.path("data/toolbox.db")).unwrap();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut first = rig.start(&["approvals", "approve", &id]);
        let conversation = rig.waiting()[0]["conversation"].as_str().unwrap().to_owned();
        let lock = rig.path(&format!("data/conversations/{conversation}.lock"));
        let claims = || std::fs::metadata(&lock).map_or(0, |lock| lock.len()) > 0;
        // On a busy machine, the tool may stop waiting for its database before this test has looked: another attempt.
        let mut ended = false;
        while !(ended || claims() && has_begun(rig)) {
            std::thread::sleep(Duration::from_millis(10));
            ended = first.try_wait().unwrap().is_some();
        }
        let second = rig.run(&["--json", "approvals", "approve", &id]);
        ended |= first.try_wait().unwrap().is_some();
        first.kill().unwrap();
        first.wait().unwrap();
        database.execute_batch("ROLLBACK").unwrap();
        if !ended {
            assert_eq!(second.code(1).error(), "claimed");
            break (id, lock);
        }
    };
    let told = rig.run(&["--json", "approvals", "approve", &id]).code(1);
    assert_eq!(told.error(), "interrupted");
    assert!(told.stderr.contains("the call may have run"), "{told:?}");
    (id, lock)
}

#[test]
fn a_slip_of_the_keyboard_decides_nothing() {
    let rig = Rig::new();
    let id = delete(&rig);
    for words in [["approvals", "edit", &id, "{"], ["approvals", "answer", &id, "nope"]] {
        let slip = rig.run(&[&["--json"], &words[..]].concat()).code(4);
        assert_eq!(slip.error(), "invalid_json");
        assert_eq!(rig.waiting().len(), 1, "{words:?}");
    }
}

#[test]
fn a_document_that_cannot_be_read_hides_no_other() {
    let rig = Rig::new();
    let id = delete(&rig);
    rig.write("data/conversations/broken.json", "{\"version\":1,\"secret\":\"TOP-SECRET\"}");
    let listed = rig.run(&["approvals", "list"]).code(0);
    assert!(listed.stdout.contains(&id) && listed.stderr.contains("broken.json"), "{listed:?}");
    assert!(!listed.stderr.contains("TOP-SECRET"), "{listed:?}");
}

/// A table of `approvals.tools` does not make calls wait.
#[test]
fn an_approval_table_without_a_rule_has_a_warning() {
    let rig = Rig::new();
    let table = "allowed_tools = [\"fs__write_file\"]\n[approvals.tools.fs__write_file]\nrequired = 2\n";
    rig.write("p.toml", table);
    let warned = rig.run(&["--policy", "p.toml", "check"]).code(0);
    let why = "`approvals.tools.fs__write_file`: no rule requires an approval of `fs__write_file`";
    assert!(warned.stderr.contains(why), "{}", warned.stderr);
    rig.write("p.toml", &format!("require_approval_for_tools = [\"fs__write_file\"]\n{table}"));
    let silent = rig.run(&["--policy", "p.toml", "check"]).code(0);
    assert!(!silent.stderr.contains("no rule requires"), "{}", silent.stderr);
}
