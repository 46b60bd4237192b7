//! Tests approvals, grants and conversations at the keyboard with a store that workers share.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use office_tools::Failure;
use office_tools::mail::{Mail, Mailer, send_email};
use office_tools::tasks::{Task, TaskChange, TaskWriter, create_task};
use serde_json::{Value, json};
use tool_runtime::call::Decider;
use tool_runtime::runner::{ApprovalDecision, Grant};
use tool_runtime::store::{GrantScope, Key, RecordFilter, Store, Transaction};
use tool_runtime::{
    Capabilities, Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool,
};
use tool_runtime_sql::{SqlOptions, SqlStore};
use uuid::Uuid;

use crate::endpoint::{Endpoint, call, held, text};
use crate::rig::{Ended, Rig, TASK};
use crate::worker::{Working, shared, until};

/// Enqueues a conversation whose model sends a mail, and waits until the call waits for its approval.
fn mail_waits(rig: &Rig, run: &str) -> Working {
    rig.run(&["worker", "put", "--run", run, "Tell Ada."]).code(0);
    let working = Working::start(rig, &["-vv"]);
    until(rig, run, "approval_required");
    working
}

fn mail() -> Value {
    call("c1", "mail__send_email", &json!({"to": ["ada@example.com"], "subject": "Hello", "body": "Canary"}))
}

#[track_caller]
fn silent(ended: &Ended) {
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("Canary"), "{ended:?}");
}

#[test]
fn a_call_of_a_worker_is_decided_from_elsewhere() {
    let endpoint = Endpoint::new(vec![mail(), text("Sent.")]);
    let rig = shared(&endpoint);
    let working = mail_waits(&rig, "run-1");
    let listed = rig.run(&["--json", "approvals", "list"]).code(0);
    let row = &listed.json()[0];
    assert_eq!((&row["id"], &row["run"], &row["conversation"]), (&json!("c1"), &json!("run-1"), &Value::Null));
    silent(&listed);
    let table = rig.run(&["approvals", "list"]).code(0).stdout;
    assert!(table.contains("c1") && table.contains("run-1"), "{table}");
    // The output for a person, and the JSON for a program.
    let shown = rig.run(&["approvals", "show", "c1"]).code(0);
    for part in [
        "Sends an e-mail about",
        "(arguments, digest ",
        "decided by any principal of example-org)",
        "in the run run-1",
        "required by",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    silent(&shown);
    let whole = rig.run(&["--json", "approvals", "show", "run-1/c1"]).code(0);
    silent(&whole);
    let whole = whole.json();
    assert_eq!(whole["argument_digest"].as_str().unwrap().len(), 8 + 1 + 64, "with the id of its key");
    assert_eq!(whole["deciders"], json!({"tenant": "example-org", "roles": null, "own_calls": true}));
    // Another tenant, another id, and a call that does not wait get the same message.
    for words in [
        &["approvals", "approve", "c2", "--as", "grace"][..],
        &["--tenant", "other", "approvals", "approve", "c1", "--as", "grace"],
        &["--tenant", "other", "approvals", "show", "run-1/c1"],
    ] {
        let unknown = rig.run(&[&["--json"], words].concat()).code(2);
        assert_eq!(unknown.error(), "not_pending", "{words:?}");
    }
    assert_eq!(rig.run(&["--tenant", "other", "--json", "approvals", "list"]).code(0).json(), json!([]));
    // Messages about mistakes suggest the correct form.
    for (words, code, part) in [
        (&["approvals", "approve", "c1"][..], 2, "--as ada"),
        (
            &["approvals", "approve", "c1", "--as", "grace", "--model-url", "http://127.0.0.1:1"],
            2,
            "leave `--model-url` out",
        ),
        (&["approvals", "edit", "c1", "{\"to\":", "--as", "grace"], 4, "not JSON"),
        (&["approvals", "edit", "c1", "{\"to\":\"Canary\"}", "--as", "grace"], 4, "/to: type, an array"),
        (&["approvals", "approve", "c1", "--as", "grace", "--wait", "5"], 2, "the unit is"),
        (&["approvals", "approve"], 2, "<ID>"),
    ] {
        let ended = rig.run(words).code(code);
        assert!(ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
        silent(&ended);
    }
    // The person's refused edit has a record.
    let refused = rig.run(&["audit", "show", "--kind", "decision"]).code(0);
    assert!(refused.stdout.contains("refused: edited"), "{}", refused.stdout);
    silent(&refused);
    let edited = r#"{"to":["ada@example.com"],"subject":"Canary 2","body":"Canary 3"}"#;
    let decided = rig.run(&["--json", "approvals", "edit", "c1", edited, "--as", "grace", "--wait", "1h"]).code(0);
    assert_eq!(
        decided.json(),
        json!({"call": "c1", "run": "run-1", "decision": "edited", "state": "ended", "outcome": "ok"})
    );
    assert_eq!(until(&rig, "run-1", "answered")["text"], "Sent.");
    assert_eq!(rig.mails(), 1);
    assert_eq!(rig.run(&["--json", "approvals", "deny", "c1", "--as", "grace"]).code(2).error(), "not_pending");
    silent(&working.end().code(0));
    silent(&rig.run(&["audit", "show"]).code(0));
}

#[test]
fn a_decision_is_posted_once_and_kept_until_a_worker_comes() {
    let endpoint = Endpoint::new(vec![mail(), text("Then not.")]);
    let rig = shared(&endpoint);
    mail_waits(&rig, "run-1").end().code(0);
    // An attempt without the right to decide is recorded, even while no worker runs.
    rig.write("strict.toml", "allowed_tools = ['mail__send_email']\nrequire_approval_for_effects = ['external_side_effect']\n[approvals]\nroles = ['approver']\n");
    let strict =
        |words: &[&str], code: i32| rig.run(&[&["--json", "--policy", "strict.toml"], words].concat()).code(code);
    let deny = ["approvals", "deny", "c1", "not now"];
    assert_eq!(strict(&[&deny[..], &["--as", "eve"]].concat(), 3).error(), "not_allowed");
    let own = strict(&[&deny[..], &["--as", "ada", "--role", "approver"]].concat(), 3);
    assert!(own.stderr.contains("own_calls"), "{own:?}");
    let refused = rig.run(&["audit", "show", "--kind", "decision"]).code(0).stdout;
    assert!(refused.contains("eve") && refused.contains("refused: denied (policy_denied: decider_role)"), "{refused}");
    assert!(refused.contains("refused: denied (policy_denied: own_call)"), "{refused}");
    let shown = rig.run(&["--policy", "strict.toml", "approvals", "show", "c1"]).code(0).stdout;
    assert!(shown.contains("any principal of example-org with the role approver, but not ada"), "{shown}");
    let posted = strict(&[&deny[..], &["--as", "grace", "--role", "approver"]].concat(), 0);
    assert_eq!(posted.json()["state"], "posted");
    let twice = rig.run(&["--json", "approvals", "approve", "c1", "--as", "heidi"]).code(2);
    assert_eq!(twice.error(), "not_pending", "the first decision counts");
    assert_eq!(rig.run(&["--json", "worker", "show", "run-1"]).code(5).json()["posts"], 1);
    let working = Working::start(&rig, &[]);
    assert_eq!(until(&rig, "run-1", "answered")["text"], "Then not.");
    working.end().code(0);
    assert_eq!(rig.mails(), 0);
}

/// One command decides calls of several runs: all of them, or none.
#[tokio::test]
async fn calls_of_several_runs_are_decided_together() {
    let endpoint = Endpoint::new(vec![mail(), mail(), text("Then not."), text("Then not.")]);
    let rig = shared(&endpoint);
    for run in ["run-1", "run-2"] {
        mail_waits(&rig, run).end().code(0);
    }
    let (application, _store) = application(&rig, "order-1").await;
    let arguments = r#"{"to":["ada@example.com"],"subject":"Hello","body":"Canary"}"#;
    application.exec(ToolCall::text("c1", "mail__send_email", arguments)).await;
    let shell = |words: &[&str]| rig.run(&[&["--json", "--policy", "asks.toml", "approvals"], words].concat());
    let approver = ["--as", "grace", "--role", "approver"];
    let both = ["approve", "run-1/c1", "run-2/c1"];
    for (words, who, code, error) in [
        (&["approve", "run-1/c1", "run-2/c9"][..], &approver[..], 2, "not_pending"),
        (&["approve", "run-1/c1", "run-1/c1"], &approver, 2, "usage"),
        (&["approve", "run-1/c1", "order-1/c1"], &approver, 2, "not_shared"),
        (&["deny", "order-1/c1", "no", "--also", "run-1/c1"], &approver, 2, "not_shared"),
        (&both, &["--as", "eve"], 3, "not_allowed"),
    ] {
        let refused = shell(&[words, who].concat()).code(code);
        assert_eq!(refused.error(), error, "{words:?}: {refused:?}");
        for run in ["run-1", "run-2"] {
            assert_eq!(rig.run(&["--json", "worker", "show", run]).code(5).json()["posts"], 0, "{words:?}");
        }
    }
    let named = shell(&[&both[..], &["--as", "eve"]].concat()).code(3);
    assert!(named.stderr.contains("run-1/c1: ") && named.stderr.contains("no call is decided"), "{named:?}");
    let denied = shell(&[&["deny", "run-1/c1", "not now", "--also", "run-2/c1"], &approver[..]].concat()).code(0);
    assert_eq!(denied.stdout.matches("posted").count(), 2, "{denied:?}");
    let working = Working::start(&rig, &[]);
    for run in ["run-1", "run-2"] {
        assert_eq!(until(&rig, run, "answered")["text"], "Then not.");
    }
    working.end().code(0);
    assert_eq!(rig.mails(), 0);
}

#[test]
fn a_decision_that_no_worker_takes_in_time_is_said() {
    let endpoint = Endpoint::new(vec![mail(), text("Sent.")]);
    let rig = shared(&endpoint);
    mail_waits(&rig, "run-1").end().code(0);
    let late = rig.run(&["--json", "approvals", "approve", "c1", "--as", "grace", "--wait", "300ms"]).code(1);
    assert_eq!(late.error(), "timeout");
    // Without a worker the conversation continues here, and applies the posted messages.
    let here = rig.run(&["chat", "--no-stream", "--continue", "run-1"]).code(0);
    assert!(here.stdout.ends_with("Sent.\n") && here.stderr.contains("posted"), "{here:?}");
    assert_eq!(rig.mails(), 1);
    let shown = rig.run(&["--json", "worker", "show", "run-1"]).code(0).json();
    assert_eq!((&shown["state"], &shown["held"], &shown["posts"]), (&json!("answered"), &json!(false), &json!(0)));
}

#[test]
fn an_answer_of_a_client_reaches_a_worker() {
    let open = call("c1", "editor__open_in_editor", &json!({ "path": "plan.md" }));
    let endpoint = Endpoint::new(vec![open, text("It is open.")]);
    let rig = shared(&endpoint);
    rig.run(&["worker", "put", "--run", "run-1", "Open the plan."]).code(0);
    let working = Working::start(&rig, &[]);
    until(&rig, "run-1", "client_required");
    rig.run(&["worker", "show", "run-1"]).code(6);
    assert!(rig.run(&["approvals", "approve", "c1", "--as", "grace"]).code(2).stderr.contains("approvals answer"));
    let unfit = rig.run(&["--json", "approvals", "answer", "c1", "{\"opened\":7}", "--wait", "1h"]).code(4);
    assert_eq!(unfit.error(), "approval_mismatch");
    rig.run(&["approvals", "answer", "c1", "{\"opened\":true}", "--wait", "1h"]).code(0);
    assert_eq!(until(&rig, "run-1", "answered")["text"], "It is open.");
    working.end().code(0);
}

#[test]
fn a_conversation_in_the_store_is_continued_by_one_process_at_a_time() {
    let endpoint = Endpoint::new(vec![text("First."), held(&text("Second.")), text("Third."), text("Fourth.")]);
    let rig = shared(&endpoint);
    rig.run(&["chat", "--no-stream", "Hello"]).code(0);
    assert!(!rig.path("data/conversations").exists(), "it is in the store");
    endpoint.request();
    let first = rig.start(&["chat", "--no-stream", "--continue", "And now?"]);
    endpoint.request();
    let run = newest(&rig);
    let refused = rig.run(&["--json", "chat", "--no-stream", "--conversation", &run, "Me too?"]).code(1);
    assert_eq!(refused.error(), "run_held");
    assert!(refused.stderr.contains("--wait 30s"), "{refused:?}");
    let mut third = rig.start(&["chat", "--no-stream", "--wait", "1h", "--continue", &run, "And then?"]);
    let mut notes = BufReader::new(third.stderr.take().unwrap()).lines();
    assert!(notes.any(|note| note.unwrap().contains("waiting for it")));
    endpoint.release();
    assert!(notes.all(|note| note.is_ok()), "its standard error is read to its end");
    let third = third.wait_with_output().unwrap();
    assert_eq!((third.status.code(), &*third.stdout), (Some(0), &b"Third.\n"[..]));
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(endpoint.request()["messages"].as_array().unwrap().len(), 6);
    // A worker continues a conversation after a post.
    rig.run(&["worker", "post", &run, "And you?"]).code(0);
    let working = Working::start(&rig, &[]);
    while until(&rig, &run, "answered")["text"] != "Fourth." {}
    working.end().code(0);
    // Conversations of other principals are unknown.
    for words in [
        &["--principal", "bob", "chat", "--conversation", &run, "x"][..],
        &["--tenant", "other", "chat", "--continue", &run, "x"],
        &["chat", "--conversation", "nowhere", "x"],
        &["chat", "--continue", "0123abcd", "x"],
    ] {
        let unknown = rig.run(&[&["--json"], words].concat()).code(2);
        assert_eq!(unknown.error(), "not_found", "{words:?}");
    }
}

/// The run that changed last.
fn newest(rig: &Rig) -> String {
    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    database.query_row("SELECT scope FROM tool_runtime_documents WHERE space = 'run'", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_call_of_a_conversation_in_the_store_waits_there() {
    let delete = call("c1", "tasks__delete_task", &json!({ "task_id": TASK }));
    let endpoint = Endpoint::new(vec![delete]);
    let rig = shared(&endpoint);
    let waits = rig.run(&["chat", "--no-stream", &format!("Delete {TASK}")]).code(5);
    assert!(waits.stderr.contains("approvals approve c1"), "{waits:?}");
    let run = newest(&rig);
    let listed = rig.run(&["--json", "approvals", "list"]).code(0).json();
    assert_eq!((&listed[0]["run"], listed.as_array().unwrap().len()), (&json!(run), 1));
    let shown = rig.run(&["--json", "worker", "show", &run]).code(5).json();
    assert_eq!((&shown["held"], &shown["state"]), (&json!(false), &json!("approval_required")));
    assert!(shown["due"].is_string(), "somebody closes it when it has expired");
}

/// After reviewing a call, a person decides for later calls.
#[test]
fn a_decision_is_made_for_later_calls() {
    let endpoint = Endpoint::new(vec![mail(), mail(), text("Sent."), mail()]);
    let rig = shared(&endpoint);
    mail_waits(&rig, "run-1").end().code(0);
    let add = |words: &[&str]| rig.run(&[&["--json", "grants", "add"], words].concat());
    let bounded = ["--uses", "1", "--expires-in", "7d"];
    let long = json!([{"pointer": "/subject", "one_of": ["x".repeat(70_000)]}]).to_string();
    for (words, code, error) in [
        (&["c1", "--for", "principal", "--as", "grace"][..], 2, "grant_unbounded"),
        (&["c1", "--for", "principal", "--as", "grace", "--uses", "0", "--expires-in", "7d"], 2, "grant_scope"),
        (&["c1", "--for", "principal", "--as", "grace", "--uses", "1", "--expires-in", "0s"], 2, "grant_scope"),
        (&["c1", "--for", "principal", "--as", "grace", "--matching", "{}"], 2, "grant_conditions"),
        (&["c1", "--for", "principal", "--as", "grace", "--matching", &long], 2, "grant_conditions"),
        (&["c1", "--for", "principal", "--as", "", "--uses", "1", "--expires-in", "7d"], 2, "usage"),
        (&["c1", "--for", "principal"], 2, "usage"),
        (&["c1", "--for", "everybody", "--as", "grace"], 2, "usage"),
        (&["c1", "--for", "principal", "--as", "grace", "--deny", "--uses", "2"], 2, "usage"),
        (&["c1", "--for", "principal", "--as", "grace", "--expires-in", "7w"], 2, "usage"),
        (&["c9", "--for", "principal", "--as", "grace"], 2, "not_pending"),
        (&["run-1/c9", "--for", "principal", "--as", "grace"], 2, "not_pending"),
    ] {
        assert_eq!(add(words).code(code).error(), error, "{words:?}");
    }
    let foreign = ["--tenant", "other", "--json", "grants", "add", "c1", "--for", "tenant", "--as", "grace"];
    assert_eq!(rig.run(&foreign).code(2).error(), "not_pending");
    let strict = "allowed_tools = ['mail__send_email']\nrequire_approval_for_effects = ['external_side_effect']\n[approvals]\nroles = ['approver']\n";
    rig.write("strict.toml", strict);
    let eve = ["--policy", "strict.toml", "c1", "--for", "principal", "--as", "eve"];
    assert_eq!(add(&[&eve[..], &bounded].concat()).code(3).error(), "not_allowed");
    assert_eq!(rig.run(&["--json", "grants", "list"]).code(0).json(), json!([]), "nothing was refused and kept");

    let to = r#"[{"pointer": "/to/0", "one_of": ["ada@example.com"]}]"#;
    let words = ["run-1/c1", "--for", "principal", "--matching", to, "--as", "grace", "--reason", "routine"];
    let granted = add(&[&words[..], &bounded].concat()).code(0).json();
    assert_eq!((&granted["tool"], &granted["uses"]), (&json!("mail__send_email"), &json!(1)));
    assert_eq!(rig.run(&["--json", "grants", "list"]).code(0).json()[0]["id"], granted["id"]);
    let decided = rig.run(&["--json", "audit", "show", "--kind", "decision"]).code(0).stdout;
    assert!(decided.contains(granted["id"].as_str().unwrap()) && decided.contains("routine"), "{decided}");
    assert!(decided.contains("eve"), "the attempt has a record, too: {decided}");
    // The call itself still waits. The next one uses the grant, and the one after it needs an approval again.
    rig.run(&["worker", "put", "--run", "run-2", "Tell Ada."]).code(0);
    let working = Working::start(&rig, &[]);
    assert_eq!(until(&rig, "run-2", "answered")["text"], "Sent.");
    rig.run(&["worker", "put", "--run", "run-3", "Tell Ada."]).code(0);
    until(&rig, "run-3", "approval_required");
    working.end().code(0);
    assert_eq!(rig.mails(), 1);
    let waits = rig.run(&["--json", "approvals", "list"]).code(0).json();
    assert_eq!(waits.as_array().unwrap().len(), 2, "{waits}");
    // An id that two runs have is ambiguous; the run's id and RUN/CALL are not.
    let both = rig.run(&["approvals", "show", "c1"]).code(2).stderr;
    assert!(both.contains("run-1/c1") && both.contains("run-3/c1"), "{both}");
    for id in ["run-3", "run-3/c1"] {
        assert_eq!(rig.run(&["--json", "approvals", "show", id]).code(0).json()["run"], "run-3");
    }
    let told = rig.run(&["grants", "add", "run-3", "--for", "tenant", "--deny", "--as", "grace"]).code(0).stdout;
    assert!(told.contains("such calls of mail__send_email are refused, for the tenant"), "{told}");
    rig.run(&["audit", "verify"]).code(0);
}

/// Takes a note.
#[tool(name = "shared__note", effect = state_change, redact = ["$"])]
fn note(
    /// The text.
    text: String,
) -> Result<String, ToolError> {
    Ok(text)
}

/// A store with two grants: one of the rig's tenant, one of another.
async fn granted(rig: &Rig, text: &str) -> Vec<String> {
    let policy = "allowed_tools = ['shared__note']\nrequire_approval_for_tools = ['shared__note']";
    let catalog = ToolCatalog::builder().tool::<note>().build().unwrap();
    let store = Arc::new(SqlStore::sqlite(rig.path("shared.db"), SqlOptions::new()).await.unwrap());
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true).store(store);
    let runner = runner.build().unwrap();
    let mut ids = Vec::new();
    for tenant in ["example-org", "other"] {
        let run = runner.run(RunOptions::new().principal("ada").tenant(tenant));
        let asked = run.exec(ToolCall::text("c1", "shared__note", json!({ "text": text }).to_string())).await;
        let question = asked.question().unwrap();
        let decider = Decider::new("grace").tenant(tenant).because("routine");
        let grant = run.remember(question, Grant::allow(GrantScope::Principal).uses(3), &decider).await.unwrap();
        ids.push(grant.id.to_string());
    }
    ids
}

#[tokio::test]
async fn grants_are_listed_and_taken_back() {
    let endpoint = Endpoint::new(vec![]);
    let rig = shared(&endpoint);
    let ids = granted(&rig, "Canary").await;
    let listed = rig.run(&["--json", "grants", "list"]).code(0);
    silent(&listed);
    let rows = listed.json();
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(
        (&rows[0]["id"], &rows[0]["uses"], &rows[0]["decided_by"]),
        (&json!(ids[0]), &json!(3), &json!("grace"))
    );
    let table = rig.run(&["grants", "list"]).code(0);
    assert!(table.stdout.contains("runs of ada") && table.stdout.contains("never"), "{table:?}");
    silent(&table);
    let foreign = rig.run(&["--json", "grants", "revoke", &ids[1]]).code(2);
    assert_eq!(foreign.error(), "not_found");
    let unknown = rig.run(&["--json", "grants", "revoke", "nowhere"]).code(2);
    assert_eq!(unknown.stderr, foreign.stderr.replace(&ids[1], "nowhere"));
    rig.run(&["grants", "revoke", &ids[0], "--as", "heidi", "--reason", "ada left"]).code(0);
    assert_eq!(rig.run(&["--json", "grants", "revoke", &ids[0]]).code(2).error(), "not_found");
    assert_eq!(rig.run(&["grants", "list"]).code(0).stdout, "");
    assert_eq!(rig.run(&["--tenant", "other", "--json", "grants", "list"]).code(0).json().as_array().unwrap().len(), 1);
    let records = rig.run(&["--json", "audit", "show", "--outcome", "revoked"]).code(0).stdout;
    let record: Value = serde_json::from_str(records.trim()).expect("one record");
    let decision = &record["record"]["decision"];
    assert_eq!((&decision["grant"], &decision["decision"]), (&json!(ids[0]), &json!("revoked")), "{record}");
    assert_eq!((&decision["decider"]["principal"], &decision["call_id"]), (&json!("heidi"), &json!("c1")), "{record}");
    // The call itself still waits. A decision is possible, but this program does not have the tool.
    let elsewhere = rig.run(&["--json", "approvals", "approve", "c1", "--as", "grace"]).code(3).json();
    assert_eq!((&elsewhere["outcome"], &elsewhere["mismatch"]), (&json!("approval_mismatch"), &json!("definition")));
}

/// After the key of the store was lost and created again, the records still verify, and the report names the comparison
/// that is not possible any more.
#[tokio::test]
async fn digests_of_a_lost_key_cannot_be_compared() {
    let endpoint = Endpoint::new(vec![]);
    let rig = shared(&endpoint);
    granted(&rig, "one").await;
    assert!(!rig.run(&["audit", "verify"]).code(0).stdout.contains("several keys"));
    let store = SqlStore::sqlite(rig.path("shared.db"), SqlOptions::new()).await.unwrap();
    let lost = |transaction: &mut Transaction| transaction.remove(&Key::digest_key());
    store.update(vec![Key::digest_key()], Box::new(lost)).await.unwrap();
    granted(&rig, "two").await;
    let verified = rig.run(&["audit", "verify"]).code(0).stdout;
    assert!(
        verified.contains("several keys (") && verified.contains("different keys cannot be compared"),
        "{verified}"
    );
    let verified = rig.run(&["--json", "audit", "verify"]).code(0).json();
    assert_eq!(verified["digest_keys"].as_array().map(Vec::len), Some(2), "{verified}");
}

const ASKS: &str = "allowed_tools = ['mail__send_email']\nrequire_approval_for_tools = ['mail__send_email']\n\
    [approvals]\nroles = ['approver']\n";

/// A mail server that is never called, because the application only requests approvals.
struct Unused;

#[async_trait]
impl Mailer for Unused {
    async fn send(&self, _: &Mail, _: &str) -> Result<(), Failure> {
        Err(Failure::Forbidden)
    }
}

/// An application without conversations, which passes calls to the gate itself and uses the store of the rig.
async fn application(rig: &Rig, run_id: &str) -> (Run, Arc<SqlStore>) {
    rig.write("asks.toml", ASKS);
    let store = Arc::new(SqlStore::sqlite(rig.path("shared.db"), SqlOptions::new()).await.unwrap());
    let catalog = ToolCatalog::builder().tool::<send_email>().build().unwrap();
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(ASKS).unwrap())
        .capabilities(Capabilities::new().with(Arc::new(Unused) as Arc<dyn Mailer>))
        .approvals(true)
        .store(Arc::clone(&store))
        .build()
        .unwrap();
    (runner.run(RunOptions::new().run_id(run_id).principal("ada").tenant("example-org")), store)
}

/// The outcomes of the application's calls, and the deciders without effect.
async fn seen(store: &SqlStore, run_id: &str) -> (Vec<Outcome>, Vec<String>) {
    let records = store.records(&RecordFilter::run(run_id)).await.unwrap();
    let calls = records.iter().filter_map(|sealed| sealed.record.as_call());
    let late = records.iter().filter_map(|sealed| sealed.record.as_decision().filter(|late| late.refused().is_some()));
    let late = late.map(|late| late.decider.as_ref().unwrap().principal().to_owned());
    (calls.map(|call| call.outcome).collect(), late.collect())
}

/// A call that an application suspended is listed, shown and decided from a shell, once.
#[tokio::test]
async fn a_call_of_an_application_is_decided_from_a_shell() {
    let endpoint = Endpoint::new(vec![]);
    let rig = shared(&endpoint);
    let (run, store) = application(&rig, "order-1").await;
    let arguments = r#"{"to":["ada@example.com"],"subject":"Hello","body":"Canary"}"#;
    let asked = run.exec(ToolCall::text("c1", "mail__send_email", arguments)).await;
    assert_eq!(asked.outcome(), Outcome::ApprovalRequired);
    let shell = |words: &[&str]| rig.run(&[&["--policy", "asks.toml", "--json"], words].concat());
    let approver = ["--as", "grace", "--role", "approver"];

    let listed = shell(&["approvals", "list"]).code(0);
    silent(&listed);
    let rows = listed.json();
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["id"], &rows[0]["run"]), (1, &json!("c1"), &json!("order-1")));
    assert_eq!(shell(&["--tenant", "other", "approvals", "list"]).code(0).json(), json!([]));
    let shown = rig.run(&["--policy", "asks.toml", "approvals", "show", "order-1/c1"]).code(0);
    silent(&shown);
    for part in ["Sends an e-mail about", "in the run order-1", "with the role approver"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    // A decider without the right is refused, and the call still waits.
    let words = |verb: &str, who: &[&'static str]| [&["approvals", verb, "c1"][..], who].concat().join(" ");
    let decide = |verb: &str, who: &[&'static str]| shell(&words(verb, who).split(' ').collect::<Vec<_>>());
    assert_eq!(decide("approve", &["--as", "eve"]).code(3).error(), "not_allowed");
    assert_eq!(decide("approve", &["--as", "ada", "--role", "approver"]).code(3).error(), "not_allowed");
    assert_eq!(
        shell(&["--tenant", "other", "approvals", "approve", "c1", "--as", "grace"]).code(2).error(),
        "not_pending"
    );
    assert_eq!((rig.mails(), seen(&store, "order-1").await.0), (0, vec![]));

    let approved = decide("approve", &approver).code(0);
    silent(&approved);
    assert_eq!(approved.json()["outcome"], "ok", "{approved:?}");
    assert_eq!(rig.mails(), 1);
    let twice = decide("approve", &approver).code(2);
    assert_eq!(twice.error(), "not_pending");
    assert_eq!(decide("deny", &approver).code(2).error(), "not_pending");
    assert_eq!(rig.mails(), 1);
    assert_eq!(shell(&["approvals", "list"]).code(0).json(), json!([]));

    // The application reads the result, and the call is not decided again.
    let ended = run.recover(&"c1".into()).await.unwrap().unwrap();
    assert_eq!((ended.outcome(), ended.to_model().contains("queued")), (Outcome::Ok, true));
    let grace = Decider::new("grace").tenant("example-org").role("approver");
    let late = run.resume(asked.question().unwrap(), ApprovalDecision::Approve, &grace).await.unwrap_err();
    assert_eq!(late.code(), "not_pending");
    let (outcomes, refused) = seen(&store, "order-1").await;
    assert_eq!(outcomes, [Outcome::Ok]);
    // The first `grace` is of another tenant, and the last one is too late.
    assert_eq!(refused[..3], ["eve", "ada", "grace"], "{refused:?}");
    assert!(refused.len() > 3 && refused.last().unwrap() == "grace", "{refused:?}");
    rig.run(&["audit", "verify"]).code(0);
}

/// Two shells and the application decide at the same time. One of the three decisions has an effect.
#[tokio::test]
async fn a_call_of_an_application_is_decided_by_one_of_several() {
    let endpoint = Endpoint::new(vec![]);
    let rig = shared(&endpoint);
    let (run, store) = application(&rig, "order-1").await;
    let arguments = r#"{"to":["ada@example.com"],"subject":"Hello","body":"Canary"}"#;
    run.exec(ToolCall::text("c1", "mail__send_email", arguments)).await;
    let approve =
        ["--policy", "asks.toml", "--json", "approvals", "approve", "c1", "--as", "grace", "--role", "approver"];
    let shells: Vec<_> = (0..3).map(|_| rig.start(&approve)).collect();
    let codes: Vec<_> =
        shells.into_iter().map(|shell| shell.wait_with_output().unwrap().status.code().unwrap()).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(rig.mails(), 1);
    assert_eq!(seen(&store, "order-1").await.0, [Outcome::Ok]);
}

/// A mail server that never answers.
struct Silent(Arc<tokio::sync::Notify>);

#[async_trait]
impl Mailer for Silent {
    async fn send(&self, _: &Mail, _: &str) -> Result<(), Failure> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Copies a store as a process leaves it if it is killed now. The lease of its call has ended in the copy.
fn killed(app: &Path, file: &Path) {
    killed_before(app, file, "-1 minutes");
}

/// The same, with a lease that ended at this time.
fn killed_before(app: &Path, file: &Path, ended_at: &str) {
    let app = rusqlite::Connection::open(app).unwrap();
    app.execute("VACUUM INTO ?1", [file.to_str().unwrap()]).unwrap();
    let left = rusqlite::Connection::open(file).unwrap();
    let ended = "UPDATE tool_runtime_documents SET due = 0, body = json_set(body, (SELECT fullkey FROM json_tree(body) \
                 WHERE key = 'until'), strftime('%Y-%m-%dT%H:%M:%SZ', 'now', ?1)) WHERE space = 'call'";
    assert_eq!(left.execute(ended, [ended_at]).unwrap(), 1);
}

/// The call of a killed process is closed by every command on the store of the data folder. In a store of a service,
/// only `store sweep` closes it.
#[tokio::test]
async fn a_call_of_a_killed_process_is_swept_through_both_doors() {
    let endpoint = Endpoint::new(vec![]);
    let rig = shared(&endpoint);
    let (store, began) = (SqlStore::sqlite(rig.path("app.db"), SqlOptions::new()).await.unwrap(), Arc::default());
    let runner = ToolRunner::builder(
        ToolCatalog::builder().tool::<send_email>().build().unwrap(),
        ToolPolicy::allow(["mail__send_email"]),
    )
    .capabilities(Capabilities::new().with(Arc::new(Silent(Arc::clone(&began))) as Arc<dyn Mailer>))
    .store(Arc::new(store))
    .build()
    .unwrap();
    let run = runner.run(RunOptions::new().run_id("order-1").principal("ada").tenant("example-org"));
    let mail = ToolCall::text("c1", "mail__send_email", r#"{"to":["ada@example.com"],"subject":"Hi","body":"Canary"}"#);
    let call = tokio::spawn(run.exec(mail));
    began.notified().await;
    // A copy of the file as a killed process would leave it, and another copy in which the lease has ended.
    let own = Rig::new();
    std::fs::create_dir_all(own.path("data")).unwrap();
    for file in [rig.path("shared.db"), own.path("data/tool-runtime.db")] {
        killed(&rig.path("app.db"), &file);
    }
    call.abort();

    let open = || rig.run(&["--json", "audit", "open"]).code(0).stdout;
    assert!(open().contains("mail__send_email"));
    rig.run(&["call", "tasks__list_tasks"]).code(0);
    assert!(open().contains("mail__send_email"), "a command on a store of a service sweeps nothing");
    let cut = rig.run(&["--json", "store", "sweep", "--for", "0s"]).code(1);
    assert_eq!(cut.json(), json!({"removed": null, "complete": false}));
    for wrong in ["", "10", "-1s", "1.5s", "1w", "18446744073709551616s", "18446744073709551615d", "s"] {
        rig.run(&["store", "sweep", &format!("--for={wrong}")]).code(2);
    }
    rig.run(&["--store", "sqlite:nowhere.db", "store", "sweep"]).code(2);
    assert!(!rig.path("nowhere.db").exists(), "a sweep creates no store");
    let swept = rig.run(&["--json", "store", "sweep", "--for", "18446744073709551615s"]).code(0);
    assert_eq!(swept.json(), json!({"removed": 0, "complete": true}));
    let again = rig.run(&["--json", "store", "sweep"]).code(0);
    assert_eq!(again.json(), json!({"removed": 0, "complete": true}));
    assert_eq!(open(), "");
    let unknown = rig.run(&["--json", "outcomes", "list"]).code(0).json();
    assert_eq!((&unknown[0]["call"], &unknown[0]["cause"]), (&json!("c1"), &json!("lost")));
    rig.run(&["audit", "verify"]).code(0);

    // With the store of the data folder, any command closes the call.
    let unknown = own.run(&["--json", "outcomes", "list"]).code(0).json();
    assert_eq!((&unknown[0]["call"], &unknown[0]["cause"]), (&json!("c1"), &json!("lost")));
}

/// A file that never ends a write.
struct Stuck(Arc<tokio::sync::Notify>);

#[async_trait]
impl TaskWriter for Stuck {
    async fn create(&self, _: Task) -> Result<Task, Failure> {
        self.0.notify_one();
        std::future::pending().await
    }

    async fn update(&self, _: Uuid, _: TaskChange) -> Result<Task, Failure> {
        std::future::pending().await
    }

    async fn delete(&self, _: Uuid) -> Result<(), Failure> {
        std::future::pending().await
    }
}

/// `store sweep --tools` repeats a call of an `idempotent` tool whose process was killed. No other command does.
#[tokio::test]
async fn a_call_of_a_killed_process_is_repeated_on_request() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.path("data")).unwrap();
    let (store, began) = (SqlStore::sqlite(rig.path("app.db"), SqlOptions::new()).await.unwrap(), Arc::default());
    let runner = ToolRunner::builder(
        ToolCatalog::builder().tool::<create_task>().build().unwrap(),
        ToolPolicy::allow(["tasks__create_task"]),
    )
    .capabilities(Capabilities::new().with(Arc::new(Stuck(Arc::clone(&began))) as Arc<dyn TaskWriter>))
    .store(Arc::new(store))
    .build()
    .unwrap();
    let run = runner.run(RunOptions::new().run_id("order-1").principal("ada").tenant("example-org"));
    let call = tokio::spawn(run.exec(ToolCall::text("c1", "tasks__create_task", r#"{"title":"Canary"}"#)));
    began.notified().await;
    let kept = rig.path("data/tool-runtime.db");
    killed(&rig.path("app.db"), &kept);
    // After a machine was off for more than a week, the sweep still repeats the call before it closes abandoned calls.
    let late = Rig::new();
    std::fs::create_dir_all(late.path("data")).unwrap();
    killed_before(&rig.path("app.db"), &late.path("data/tool-runtime.db"), "-8 days");
    call.abort();
    late.run(&["store", "sweep", "--tools"]).code(0);
    assert!(late.run(&["call", "tasks__list_tasks"]).code(0).stdout.contains("Canary"));

    let outcomes = rig.run(&["outcomes", "list"]).code(0);
    assert!(outcomes.stderr.contains("calls whose process died before they ended: 1;"), "{outcomes:?}");
    assert!(rig.run(&["audit", "open"]).code(0).stdout.contains("abandoned"));
    assert!(!rig.run(&["call", "tasks__list_tasks"]).code(0).stdout.contains("Canary"), "it did not run again");
    rig.run(&["store", "sweep", "--tools", "--for", "1s"]).code(2);
    rig.run(&["store", "sweep", "--tools"]).code(0);
    assert!(rig.run(&["call", "tasks__list_tasks"]).code(0).stdout.contains("Canary"));
    assert_eq!(rig.run(&["--json", "audit", "open"]).code(0).stdout, "");
}

/// A call whose outcome is unknown is listed and settled from a shell, once, by a person who may decide on it.
#[tokio::test]
async fn an_unknown_outcome_is_settled_from_a_shell() {
    let new = Rig::new().run(&["outcomes", "list"]).code(2);
    assert!(
        new.stderr.contains("has no records of earlier commands") && new.stderr.contains("`--store URL`"),
        "{}",
        new.stderr
    );
    let endpoint = Endpoint::new(vec![]);
    let rig = shared(&endpoint);
    let policy = "allowed_tools = ['mail__send_email']\n[approvals]\nroles = ['approver']\n";
    rig.write("mails.toml", policy);
    let (store, began) = (SqlStore::sqlite(rig.path("shared.db"), SqlOptions::new()).await.unwrap(), Arc::default());
    let runner = ToolRunner::builder(
        ToolCatalog::builder().tool::<send_email>().build().unwrap(),
        ToolPolicy::from_toml(policy).unwrap(),
    )
    .capabilities(Capabilities::new().with(Arc::new(Silent(Arc::clone(&began))) as Arc<dyn Mailer>))
    .approvals(true)
    .store(Arc::new(store))
    .build()
    .unwrap();
    let run = runner.run(RunOptions::new().run_id("order-1").principal("ada").tenant("example-org"));
    let mail =
        |id| ToolCall::text(id, "mail__send_email", r#"{"to":["ada@example.com"],"subject":"Hi","body":"Canary"}"#);
    let call = tokio::spawn(run.exec(mail("c1")));
    began.notified().await;
    run.cancel();
    assert_eq!(call.await.unwrap().outcome(), Outcome::OutcomeUnknown);

    let shell = |words: &[&str]| rig.run(&[&["--policy", "mails.toml", "--json"], words].concat());
    let listed = shell(&["outcomes", "list"]).code(0);
    silent(&listed);
    let row = &listed.json()[0];
    assert_eq!((&row["call"], &row["run"], &row["cause"]), (&json!("c1"), &json!("order-1"), &json!("cancelled")));
    let table = rig.run(&["--policy", "mails.toml", "outcomes", "list"]).code(0).stdout;
    assert!(table.contains("mail__send_email") && table.contains("order-1"), "{table}");
    assert_eq!(shell(&["--tenant", "other", "outcomes", "list"]).code(0).json(), json!([]));
    // The approver of the call with the same arguments reads why it waits.
    let again = runner.run(RunOptions::new().run_id("order-2").principal("ada").tenant("example-org"));
    assert_eq!(again.exec(mail("c2")).await.outcome(), Outcome::ApprovalRequired);
    let shown = rig.run(&["--policy", "mails.toml", "approvals", "show", "c2"]).code(0).stdout;
    assert!(shown.contains("has an unknown outcome: call") && shown.contains("unknown_outcome"), "{shown}");

    let settle = |words: &[&str]| shell(&[&["outcomes", "settle", "c1"], words].concat());
    assert_eq!(settle(&["--did-not-happen", "--as", "eve"]).code(3).error(), "not_allowed");
    let grace = ["--as", "grace", "--role", "approver", "--reason", "the log of the mail server shows it"];
    assert_eq!(settle(&[&["--happened", "7"], &grace[..]].concat()).code(2).error(), "approval_mismatch");
    settle(&["--as", "grace"]).code(2);
    // A person of another tenant reads that there is no such call. The run and the log record the attempt.
    for happened in ["7", "no JSON"] {
        let theirs = ["--log", "error", "--tenant", "other", "outcomes", "settle", "order-1/c1", "--as", "grace"];
        let foreign = shell(&[&theirs[..], &["--happened", happened]].concat()).code(2);
        assert_eq!(foreign.error(), "not_found");
        assert!(foreign.stderr.contains("ERROR") && foreign.stderr.contains("decider_tenant"), "{foreign:?}");
    }
    let unknown = shell(&["--tenant", "other", "outcomes", "settle", "order-1/c9", "--as", "grace", "--happened", "7"]);
    assert_eq!(unknown.code(2).error(), "not_found");
    let refused = shell(&["audit", "show", "--kind", "decision"]).code(0).stdout;
    assert_eq!(refused.matches("decider_tenant").count(), 2, "{refused}");
    let settled = settle(&[&["--happened", r#"{"queued":true,"recipients":1}"#], &grace[..]].concat()).code(0);
    assert_eq!(settled.json()["outcome"], "ok");
    assert_eq!(settle(&[&["--did-not-happen"], &grace[..]].concat()).code(2).error(), "not_found");
    assert_eq!(shell(&["outcomes", "list"]).code(0).json(), json!([]));

    // Two runs have a call with this id, so the command requires RUN/CALL.
    for (run_id, subject) in [("order-3", "One"), ("order-4", "Two")] {
        let run = runner.run(RunOptions::new().run_id(run_id).principal("ada").tenant("example-org"));
        let arguments = json!({"to": ["ada@example.com"], "subject": subject, "body": "Canary"}).to_string();
        let call = tokio::spawn(run.exec(ToolCall::text("c9", "mail__send_email", arguments)));
        began.notified().await;
        run.cancel();
        assert_eq!(call.await.unwrap().outcome(), Outcome::OutcomeUnknown);
    }
    let settle = |id: &str| shell(&[&["outcomes", "settle", id, "--did-not-happen"], &grace[..]].concat());
    assert_eq!(settle("c9").code(2).error(), "ambiguous");
    // The same call at the shell waits, as a call of an application does.
    let two = r#"{"to":["ada@example.com"],"subject":"Two","body":"Canary"}"#;
    let asked = shell(&["call", "mail__send_email", two]).code(5).json();
    assert_eq!((&asked["errorCode"], rig.mails()), (&json!("approval_required"), 0), "{asked}");
    let shown = rig.waiting().into_iter().find(|row| row["id"] != "c2").unwrap();
    let sentence = shown["summary"].as_str().unwrap();
    assert!(sentence.contains("unknown outcome: call “c9” of run “order-4”"), "{shown}");
    assert_eq!(settle("order-4/c9").code(0).json()["run"], "order-4");
    let left = shell(&["outcomes", "list"]).code(0).json();
    assert_eq!((left.as_array().unwrap().len(), &left[0]["run"]), (1, &json!("order-3")));
    shell(&["call", "mail__send_email", two]).code(0);
    assert_eq!(rig.mails(), 1);
    let records = shell(&["audit", "show", "--outcome", "happened"]).code(0);
    assert!(records.stdout.contains("the log of the mail server shows it"), "{records:?}");
    rig.run(&["audit", "verify"]).code(0);
}
