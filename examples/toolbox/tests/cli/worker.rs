//! Tests `worker`: processes that share a store continue its conversations.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr};
use std::time::Duration;

use serde_json::{Value, json};

use crate::endpoint::{Endpoint, call, held, text};
use crate::rig::{Ended, Rig, TASK};

/// A worker process that gets a signal to end when it goes out of scope.
pub(crate) struct Working(Option<Child>);

impl Working {
    pub(crate) fn start(rig: &Rig, words: &[&str]) -> Self {
        let words = [&["worker", "--no-stream", "--lease", "1h"], words].concat();
        Self(Some(rig.start(&words)))
    }

    /// Signals a worker with `-v` to end, and waits for its log line about the signal. Returns its standard error after
    /// that.
    fn tell(&mut self) -> BufReader<ChildStderr> {
        let child = self.0.as_mut().unwrap();
        terminate(child);
        let mut notes = BufReader::new(child.stderr.take().unwrap());
        let mut note = String::new();
        while !note.contains("the worker is stopping") {
            note.clear();
            assert!(notes.read_line(&mut note).unwrap() > 0, "the worker ended");
        }
        notes
    }

    /// Signals the worker to end, and returns its exit.
    pub(crate) fn end(mut self) -> Ended {
        let child = self.0.take().unwrap();
        terminate(&child);
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

fn terminate(child: &Child) {
    std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
}

impl Drop for Working {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A rig whose commands share a store, with a model.
pub(crate) fn shared(endpoint: &Endpoint) -> Rig {
    let mut rig = Rig::new();
    rig.set("TOOLBOX_STORE", "sqlite:shared.db");
    rig.set("TOOLBOX_MODEL_URL", &endpoint.url).set("TOOLBOX_MODEL", "m");
    rig
}

/// Waits until a run is in a state.
#[track_caller]
pub(crate) fn until(rig: &Rig, run: &str, state: &str) -> Value {
    loop {
        let shown = rig.run(&["--json", "worker", "show", run]);
        let document: Value = serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{shown:?}"));
        if document["state"] == state && document["held"] == false {
            return document;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_one_process_puts_in_another_answers() {
    let delete = call("c1", "tasks__delete_task", &json!({ "task_id": TASK }));
    let endpoint = Endpoint::new(vec![delete, text("Then not."), text("Good.")]);
    let rig = shared(&endpoint);
    let put = rig.run_with(&["worker", "put", "--run", "run-1", "-"], &format!("Delete {TASK}")).code(0);
    assert_eq!(put.stdout, "run-1\n");
    let new = rig.run(&["worker", "show", "run-1"]).code(0);
    assert!(new.stdout.starts_with("run-1  new\n"), "{new:?}");
    let working = Working::start(&rig, &[]);
    let waits = until(&rig, "run-1", "approval_required");
    assert_eq!((&waits["waiting"][0]["id"], &waits["summary"]["calls"]), (&json!("c1"), &json!({})));
    rig.run(&["worker", "show", "run-1"]).code(5);
    // The principal of the run has to be named to decide, and a decision under a wrong id is refused.
    let own = rig.run(&["worker", "post", "run-1", "--deny", "c1"]).code(2);
    assert!(own.stderr.contains("--as ada"), "{own:?}");
    for words in [
        &["worker", "post", "run-1", "--deny", "c2", "--as", "grace"][..],
        &["worker", "post", "run-1", "--answer", "c1", "{}"],
    ] {
        assert_eq!(rig.run(&[&["--json"], words].concat()).code(2).error(), "not_pending", "{words:?}");
    }
    rig.run(&["worker", "post", "run-1", "--deny", "c1", "--as", "grace", "--reason", "in use"]).code(0);
    let answered = until(&rig, "run-1", "answered");
    assert_eq!(answered["text"], "Then not.");
    rig.run(&["worker", "post", "run-1", "Thanks."]).code(0);
    while until(&rig, "run-1", "answered")["text"] != "Good." {}
    let ended = working.end().code(0);
    assert!(ended.stderr.contains("the worker runs") && ended.stdout.is_empty(), "{ended:?}");
    let decided = rig.run(&["--json", "audit", "show", "--decider", "grace"]).code(0).json();
    assert_eq!(decided["record"]["decision"]["decider"]["reason"], "in use");
    rig.run(&["audit", "verify"]).code(0);
    let again = rig.run(&["--json", "worker", "put", "--run", "run-1", "Once more."]).code(2);
    assert_eq!(again.error(), "store_duplicate");
}

#[test]
fn a_worker_ends_when_the_step_that_has_begun_is_done() {
    let endpoint = Endpoint::new(vec![held(&text("Late.")), text("Never asked.")]);
    let rig = shared(&endpoint);
    rig.run(&["worker", "put", "--run", "run-1", "Hello"]).code(0);
    let mut working = Working::start(&rig, &["-v"]);
    endpoint.request();
    let notes = working.tell();
    endpoint.release();
    let notes: String = notes.lines().map(|note| note.unwrap() + "\n").collect();
    assert!(!notes.contains("ERROR"), "{notes}");
    working.end().code(0);
    // The answer is stored, and no process holds the run.
    let kept = rig.run(&["--json", "worker", "show", "run-1"]).code(0).json();
    assert_eq!((&kept["text"], &kept["held"], &kept["state"]), (&json!("Late."), &json!(false), &json!("asked")));
    // The next worker does not request the same turn again.
    let working = Working::start(&rig, &[]);
    until(&rig, "run-1", "answered");
    working.end().code(0);
}

#[test]
fn workers_of_one_name_share_the_work() {
    let endpoint = Endpoint::new((0..6).map(|_| text("Done.")).collect());
    let rig = shared(&endpoint);
    for number in 0..6 {
        rig.run(&["worker", "put", "--run", &format!("run-{number}"), "Hello"]).code(0);
    }
    let words = ["--concurrency", "1", "--runs-per-tenant", "2", "--leave-other-versions"];
    let workers = [Working::start(&rig, &words), Working::start(&rig, &words)];
    for number in 0..6 {
        let shown = until(&rig, &format!("run-{number}"), "answered");
        assert_eq!(shown["text"], "Done.");
    }
    workers.into_iter().for_each(|worker| drop(worker.end().code(0)));
    // Each turn was requested once.
    (0..6).for_each(|_| drop(endpoint.request()));
}

#[test]
fn a_store_that_cannot_be_used_is_named() {
    let endpoint = Endpoint::new(vec![]);
    let mut rig = shared(&endpoint);
    assert_eq!(rig.run(&["--json", "worker", "show", "run-1"]).code(2).error(), "unreadable_input");
    assert!(!rig.path("shared.db").exists(), "looking makes no database");
    rig.run(&["worker", "put", "--run", "run-1", "Hello"]).code(0);
    for words in [
        &["worker", "show", "run-2"][..],
        &["worker", "post", "run-2", "x"],
        &["--tenant", "other", "worker", "show", "run-1"],
    ] {
        let unknown = rig.run(&[&["--json"], words].concat()).code(2);
        assert_eq!(unknown.error(), "not_found", "{words:?}");
        assert!(unknown.stderr.contains("worker put"), "{unknown:?}");
    }
    assert!(rig.run(&["worker", "post", "run-1"]).code(2).stderr.contains("--approve CALL"));
    assert!(
        rig.run(&["worker", "post", "run-1", " "]).code(2).stderr.contains("worker post RUN"),
        "nobody says nothing"
    );
    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    database.execute("UPDATE tool_runtime_schema SET version = version + 1", []).unwrap();
    for words in [
        &["worker"][..],
        &["worker", "put", "x"],
        &["worker", "show", "run-1"],
        &["approvals", "list"],
        &["grants", "list"],
    ] {
        let newer = rig.run(&[&["--json"], words].concat()).code(2);
        assert_eq!(newer.error(), "store_newer", "{words:?}");
        assert!(newer.stderr.contains("use a newer library"), "{newer:?}");
    }
    database.execute("UPDATE tool_runtime_schema SET version = version - 1", []).unwrap();
    rig.run(&["worker", "show", "run-1"]).code(0);
    rig.write("folder/x", "");
    rig.set("TOOLBOX_STORE", "sqlite:no/such/folder/shared.db");
    assert_eq!(rig.run(&["--json", "worker", "put", "x"]).code(2).error(), "store_unavailable");
    rig.set("TOOLBOX_STORE", "");
    for words in [&["worker"][..], &["worker", "put", "x"], &["grants", "list"]] {
        assert!(rig.run(words).code(2).stderr.contains("--store sqlite:FILE"), "{words:?}");
    }
}

#[test]
fn what_is_left_of_the_budgets_is_shown() {
    let list = call("c1", "tasks__list_tasks", &json!({}));
    let endpoint = Endpoint::new(vec![list, text("Two."), text("Two.")]);
    let rig = shared(&endpoint);
    let budgets = "allowed_tools = ['tasks__list_tasks']\n[budgets.run]\ncalls = 9\n[budgets.principal]\ncalls = 5\nwindow = '1d'\n\
                   [budgets.tenant]\ntokens = 100\nwindow = '1d'\n";
    rig.write("p.toml", budgets);
    rig.run(&["--policy", "p.toml", "worker", "put", "--run", "run-1", "How many?"]).code(0);
    let working = Working::start(&rig, &["--policy", "p.toml"]);
    until(&rig, "run-1", "answered");
    working.end().code(0);
    let shown = rig.run(&["--policy", "p.toml", "--json", "worker", "show", "run-1"]).code(0).json();
    assert_eq!(shown["summary"]["calls"], json!({"ok": 1}));
    let accounts = shown["accounts"].as_array().unwrap();
    let account = |holder: &str, amount: &str| {
        let account = accounts.iter().find(|account| account["holder"] == holder).unwrap();
        account["amounts"][amount].clone()
    };
    assert_eq!(account("run", "calls"), json!({"used": 1.0, "limit": 9.0}));
    assert_eq!(account("principal", "calls"), json!({"used": 1.0, "limit": 5.0}));
    assert_eq!(account("tenant", "tokens"), json!({"used": 4.0, "limit": 100.0}));
    let told = rig.run(&["--policy", "p.toml", "worker", "show", "run-1"]).code(0).stdout;
    assert!(told.contains("calls: 1 ok; tokens: 4") && told.contains("calls 1 of 5"), "{told}");
    // `chat` prints the same.
    let chat = rig.run(&["--policy", "p.toml", "--json", "chat", "--no-stream", "How many?"]).code(0);
    let last: Value = serde_json::from_str(chat.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["accounts"][1]["holder"], "principal", "{last}");
}
