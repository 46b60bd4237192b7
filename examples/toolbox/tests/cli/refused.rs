//! Tests decisions and options for shared runs that are refused before a message is posted.

use serde_json::{Value, json};

use crate::endpoint::{Endpoint, call, text};
use crate::rig::{Rig, TASK};
use crate::worker::{Working, shared, until};

/// Enqueues a run whose model calls two tools that wait.
fn two_wait(rig: &Rig) {
    rig.run(&["worker", "put", "--run", "run-1", &format!("Delete {TASK}.")]).code(0);
    let working = Working::start(rig, &[]);
    until(rig, "run-1", "approval_required");
    working.end().code(0);
}

fn delete() -> Value {
    call("c1", "tasks__delete_task", &json!({ "task_id": TASK }))
}

fn posts(rig: &Rig) -> Value {
    rig.run(&["--json", "worker", "show", "run-1"]).code(5).json()["posts"].clone()
}

#[test]
fn an_expired_call_reads_like_an_unknown_one() {
    let endpoint = Endpoint::new(vec![delete(), text("Too late.")]);
    let rig = shared(&endpoint);
    two_wait(&rig);
    // Simulates that the time for a decision is over and no worker has closed the call yet.
    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    let late = "UPDATE tool_runtime_documents SET body = json_set(body, '$.waiting.call.expires_at', '2020-01-01T00:00:00Z') WHERE \
                space = 'waiting'";
    assert_eq!(database.execute(late, []).unwrap(), 1);
    for words in [
        &["approvals", "approve", "ID", "--as", "grace"][..],
        &["approvals", "edit", "ID", "{}", "--as", "grace"],
        &["approvals", "deny", "ID", "--as", "grace"],
        &["approvals", "answer", "ID", "{}", "--as", "grace"],
        &["worker", "post", "run-1", "--approve", "ID", "--as", "grace"],
        &["worker", "post", "run-1", "--deny", "ID", "--as", "grace"],
        &["worker", "post", "run-1", "--answer", "ID", "{}", "--as", "grace"],
    ] {
        let with = |id: &'static str| words.iter().map(move |word| if *word == "ID" { id } else { *word });
        let expired = rig.run(&with("c1").collect::<Vec<_>>()).code(2);
        let unknown = rig.run(&with("c9").collect::<Vec<_>>()).code(2);
        assert_eq!(expired.stderr, unknown.stderr.replace("c9", "c1"), "{words:?}");
    }
    assert_eq!(posts(&rig), 0);
    assert!(rig.run(&["approvals", "list"]).code(0).stdout.contains("expired"));
}

#[test]
fn a_decision_that_is_posted_is_not_posted_again() {
    let endpoint = Endpoint::new(vec![delete(), text("Then not.")]);
    let rig = shared(&endpoint);
    two_wait(&rig);
    let both = rig.run(&["worker", "post", "run-1", "--approve", "c1", "--deny", "c1", "--as", "grace"]).code(2);
    assert!(both.stderr.contains("`c1` is decided twice"), "{both:?}");
    let waiting = rig.waiting();
    let question = waiting.iter().find(|call| call["id"] == "c1").expect("it waits")["question"].as_str().unwrap();
    let both = rig.run(&["worker", "post", "run-1", "--approve", "c1", "--deny", question, "--as", "grace"]).code(2);
    assert!(both.stderr.contains("`c1` is decided twice"), "{both:?}");
    rig.run(&["worker", "post", "run-1", "--deny", "c1", "--as", "grace"]).code(0);
    for words in [
        &["worker", "post", "run-1", "--approve", "c1", "--as", "heidi"][..],
        &["worker", "post", "run-1", "--deny", "c1", "--as", "grace"],
        &["approvals", "approve", "c1", "--as", "heidi", "--role", "approver"],
    ] {
        assert_eq!(rig.run(&[&["--json"], words].concat()).code(2).error(), "not_pending", "{words:?}");
    }
    assert_eq!(posts(&rig), 1);
    for words in [&["approvals", "list"][..], &["approvals", "show", "c1"]] {
        let shown = rig.run(words).code(0).stdout;
        assert!(shown.contains("its process (decided)"), "{words:?}: {shown}");
    }
    assert_eq!(rig.waiting()[0]["decided"], true);
    let working = Working::start(&rig, &[]);
    assert_eq!(until(&rig, "run-1", "answered")["text"], "Then not.");
    working.end().code(0);
    let decided = rig.run(&["--json", "audit", "show", "--kind", "decision"]).code(0).stdout;
    let (refused, taken): (Vec<_>, Vec<_>) = decided.lines().partition(|line| line.contains("not_pending"));
    assert_eq!((refused.len(), taken.len()), (3, 1), "each attempt is recorded, one counts: {decided}");
}

#[test]
fn what_would_decide_nothing_is_refused() {
    let endpoint = Endpoint::new(vec![]);
    let mut rig = shared(&endpoint);
    for (words, part) in [
        (&["worker", "--concurrency", "0"][..], "at least 1"),
        (&["worker", "--runs-per-tenant", "0"], "at least 1"),
        (&["worker", "--lease", "1ms"], "at least one second"),
        (&["worker", "put", "--run", "", "Hello"], "--run <ID>"),
        (&["worker", "put", " "], "the message is empty"),
        (&["audit", "show", "--limit", "0"], "at least 1"),
    ] {
        let refused = rig.run(words).code(2);
        assert!(refused.stderr.contains(part), "{words:?}: {refused:?}");
    }
    // `//` does not mean a file at the root of the disk.
    rig.set("TOOLBOX_STORE", "sqlite://shared.db");
    let host = rig.run(&["worker", "put", "Hello"]).code(2);
    assert!(host.stderr.contains("sqlite:shared.db"), "{host:?}");
}

#[test]
fn a_conversation_whose_process_was_killed_is_continued_when_its_lease_is_over() {
    let endpoint = Endpoint::new(vec![Value::Null, text("I am here.")]);
    let rig = shared(&endpoint);
    let mut killed = rig.start(&["chat", "--no-stream", "Hello"]);
    endpoint.request();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let held = rig.run(&["--json", "chat", "--no-stream", "--continue", "And now?"]).code(1);
    assert_eq!(held.error(), "run_held");
    // Simulates an expired lease.
    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    let over = "UPDATE tool_runtime_documents SET body = json_set(body, '$.run.holder.until', '2020-01-01T00:00:00Z') WHERE space = 'run'";
    assert_eq!(database.execute(over, []).unwrap(), 1);
    let next = rig.run(&["chat", "--no-stream", "--continue", "And now?"]).code(0);
    assert_eq!(next.stdout, "I am here.\n");
    let messages = endpoint.request()["messages"].clone();
    let messages = messages.as_array().unwrap().iter().filter(|message| message["role"] == "user");
    let said: Vec<_> = messages.map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["Hello", "And now?"], "what was said before is kept");
    rig.run(&["audit", "verify"]).code(0);
}

#[test]
fn what_a_killed_process_did_is_in_the_conversation() {
    let list = call("c1", "tasks__create_task", &json!({ "title": "Buy chalk" }));
    let endpoint = Endpoint::new(vec![list, Value::Null, text("It is created.")]);
    let rig = shared(&endpoint);
    let mut killed = rig.start(&["chat", "--no-stream", "Create a task."]);
    endpoint.request();
    endpoint.request();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    let over = "UPDATE tool_runtime_documents SET body = json_set(body, '$.run.holder.until', '2020-01-01T00:00:00Z') WHERE space = \
                'run'";
    assert_eq!(database.execute(over, []).unwrap(), 1);
    let next = rig.run(&["chat", "--no-stream", "--continue", "Is it there?"]).code(0);
    assert_eq!(next.stdout, "It is created.\n");
    let asked = endpoint.request();
    let results = asked["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    assert_eq!(results.count(), 1, "the model knows what was done: {asked}");
    let records = rig.run(&["--json", "audit", "show", "--kind", "call"]).code(0).stdout;
    assert_eq!(records.lines().count(), 1, "{records}");
}

/// A newer library wrote one of two waiting calls. The other is listed and decided.
#[test]
fn a_call_of_another_version_hides_no_other() {
    let endpoint = Endpoint::new(vec![delete(), delete()]);
    let rig = shared(&endpoint);
    for run in ["run-1", "run-2"] {
        rig.run(&["worker", "put", "--run", run, &format!("Delete {TASK}.")]).code(0);
    }
    let working = Working::start(&rig, &[]);
    until(&rig, "run-1", "approval_required");
    until(&rig, "run-2", "approval_required");
    working.end().code(0);
    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    let newer = "UPDATE tool_runtime_documents SET body = json_set(body, '$.waiting.call.version', 2) \
                 WHERE space = 'waiting' AND scope = 'run-1'";
    assert_eq!(database.execute(newer, []).unwrap(), 1);
    let listed = rig.run(&["approvals", "list"]).code(1);
    assert_eq!((listed.stdout.contains("run-2"), listed.stderr.matches("broken:").count()), (true, 1), "{listed:?}");
    let rows = rig.run(&["--json", "approvals", "list"]).code(1).json();
    assert_eq!((rows.as_array().map(Vec::len), &rows[0]["run"]), (Some(1), &json!("run-2")));
    rig.run(&["approvals", "deny", "run-2/c1", "--as", "grace"]).code(0);
    rig.run(&["approvals", "approve", "run-1/c1", "--as", "grace"]).code(2);
    let posted = |run| rig.run(&["--json", "worker", "show", run]).code(5).json()["posts"].clone();
    assert_eq!((posted("run-1"), posted("run-2")), (json!(0), json!(1)));
}
