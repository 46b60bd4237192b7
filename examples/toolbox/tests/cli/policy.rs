//! Tests `policy explain` and `policy replay`.

use serde_json::{Value, json};

use crate::endpoint::{Endpoint, call, text};
use crate::rig::Rig;

const UNTRUSTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/untrusted.toml");
const KNOWN: &str = r#"{"to":["ada@example.com"],"subject":"Hello","body":"Canary"}"#;
const STRANGER: &str = r#"{"to":["eve-canary@example.net"],"subject":"Hello","body":"Canary"}"#;

/// The verdict and the rule of each stage, and the exit code.
#[track_caller]
fn check(words: &[&str], stages: &[&str], code: i32) {
    let rig = Rig::new();
    let mut all = vec!["--json", "--policy", UNTRUSTED, "policy", "explain", "mail__send_email"];
    all.extend(words);
    let ended = rig.run(&all).code(code);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    let told = told["stages"].as_array().unwrap().iter().map(|stage| {
        format!(
            "{} {} {}",
            stage["stage"].as_str().unwrap(),
            stage["verdict"].as_str().unwrap(),
            stage["rule"].as_str().unwrap()
        )
    });
    assert_eq!(told.collect::<Vec<_>>(), stages);
    assert!(!format!("{}{}", ended.stdout, ended.stderr).to_lowercase().contains("canary"), "{ended:?}");
    assert!(!rig.path("data").exists(), "explaining opens no data");
}

#[test]
fn each_stage_has_its_rule() {
    let allowed = ["visibility allow allowed_tools", "admission allow allowed_tools"];
    check(&[], &allowed, 0);
    check(&["--arguments", KNOWN], &[allowed[0], allowed[1], "arguments allow allowed_tools"], 0);
    let rule = "tools.mail__send_email.arguments[0]";
    check(&["--arguments", STRANGER], &[allowed[0], allowed[1], &format!("arguments deny {rule}")], 3);
    // A label that only results add is absent when the tools are chosen.
    let asks = "require_approval labels.untrusted.require_approval_for_effects";
    check(&["--label", "untrusted"], &[allowed[0], &format!("admission {asks}")], 5);
    let stages = [allowed[0], &format!("admission {asks}"), &format!("arguments {asks}")];
    check(&["--label", "untrusted", "--arguments", KNOWN], &stages, 5);
    let denied = "deny callers.graph.allowed_tools";
    let stages = [&*format!("visibility {denied}"), &format!("admission {denied}")];
    check(&["--caller", "graph:report"], &stages, 3);
}

#[test]
fn people_read_why() {
    let rig = Rig::new();
    let explain = |words: &[&str], code: i32| {
        let mut all = vec!["policy", "explain"];
        all.extend(words);
        rig.run(&all).code(code)
    };
    let words = ["mail__send_email", "--policy", UNTRUSTED, "--label", "untrusted", "--arguments", STRANGER];
    let told = explain(&words, 3).stdout;
    for line in [
        "mail__send_email (external_side_effect)",
        "visibility  allow             allowed_tools: every run may call it",
        "arguments   deny              tools.mail__send_email.arguments[0]: the rule does not admit the argument at \
         `/to`",
        "  also      require_approval  labels.untrusted.require_approval_for_effects: the run has the label `untrusted`, and the effect is `external_side_effect`",
    ] {
        assert!(told.lines().any(|found| found == line), "{line}\n{told}");
    }
    let rules = rig.write(
        "rules.toml",
        "[attributes.department.support]\nallowed_tools = ['docs__search']\n[tenants.acme.roles.clerk]\ndenied_tools = ['docs__search']",
    );
    let rules = rules.display().to_string();
    let search = ["docs__search", "--policy", &rules];
    let with = |words: &[&'static str]| search.iter().copied().chain(words.iter().copied()).collect::<Vec<_>>();
    let denied = explain(&search, 3);
    assert!(denied.stdout.contains("allowed_tools: neither the policy nor a table that applies"), "{}", denied.stdout);
    assert!(denied.stderr.contains("--arguments JSON"), "{}", denied.stderr);
    let granted = explain(&with(&["--attribute", "department=support"]), 0).stdout;
    assert!(granted.contains("`attributes.department.support` may use it"), "{granted}");
    let words = with(&["--attribute", "department=support", "--tenant", "acme", "--role", "clerk"]);
    let taken = explain(&words, 3).stdout;
    assert!(taken.contains("`tenants.acme.roles.clerk` may not use it"), "{taken}");
    // The message names the mistake and quotes no value.
    let wrong = explain(&["mail__send_email", "--arguments", r#"{"to":"canary"}"#], 4).stderr;
    assert!(wrong.contains("/to: type, an array") && !wrong.contains("canary"), "{wrong}");
    assert!(explain(&["mail__sned_email"], 2).stderr.contains("did you mean `mail__send_email`?"));
    assert!(explain(&["mail__send_email", "--caller", "graph:"], 2).stderr.contains("write `direct` or `graph:NAME`"));
    assert!(explain(&["mail__send_email", "--attribute", "department"], 2).stderr.contains("write `NAME=VALUE`"));
}

/// A label that no rule names and an unknown graph have no effect, and may be typing errors.
#[test]
fn what_nobody_knows_of_a_run_is_said() {
    let rig = Rig::new();
    let base = ["policy", "explain", "mail__send_email", "--policy", UNTRUSTED];
    let explain = |words: &[&str], code: i32| rig.run(&[&base, words].concat()).code(code);
    let slip = explain(&["--label", "untrused", "--caller", "graph:report"], 3);
    for part in [
        "no rule names the label `untrused`; did you mean `untrusted`?",
        "neither the application nor a rule knows a graph `report`",
    ] {
        assert!(slip.stderr.contains(part), "{part}: {slip:?}");
    }
    let known = explain(&["--label", "untrusted"], 5);
    assert!(!known.stderr.contains("label") && !known.stderr.contains("graph"), "{known:?}");
    let told = explain(&["--json", "--label", "x"], 0).json();
    assert_eq!(told["notes"], json!(["no rule names the label `x`"]));
    assert_eq!(explain(&["--json"], 0).json()["notes"], Value::Null);
}

/// The records of two calls of one run: a search, and a task that is created after it.
fn records(rig: &Rig) -> [Value; 2] {
    [["docs__search", r#"{"query":"canary"}"#], ["tasks__create_task", r#"{"title":"Canary"}"#]].map(
        |[tool, arguments]| {
            let ended = rig.run(&["call", tool, arguments, "--view", "audit"]).code(0);
            let mut sealed: Value = serde_json::from_str(ended.stdout.trim()).unwrap();
            let mut record = sealed["record"]["call"].take();
            record["run_id"] = json!("run-1");
            record
        },
    )
}

#[test]
fn calls_of_the_past_are_decided_again() {
    let rig = Rig::new();
    let calls = records(&rig);
    let decision = json!({ "sequence": 2, "record": { "decision": { "run_id": "run-1", "call_id": "x" } } });
    let wrapped = [
        json!({ "sequence": 0, "record": { "call": calls[0] }, "previous": "00", "hash": "00" }),
        json!({ "kind": "call", "call": calls[1] }),
    ];
    let mut kind = calls.clone();
    kind.iter_mut().for_each(|record| record["kind"] = json!("call"));
    let replay = |records: &[Value], policy: &str, code: i32| {
        let lines: Vec<_> = records.iter().map(Value::to_string).collect();
        let records = rig.write("records.jsonl", &lines.join("\n")).display().to_string();
        let with = rig.write("with.toml", policy).display().to_string();
        let ended = rig.run(&["policy", "replay", "--records", &records, "--with", &with]).code(code);
        assert!(!format!("{}{}", ended.stdout, ended.stderr).to_lowercase().contains("canary"), "{ended:?}");
        let whole = rig.run(&["--json", "policy", "replay", "--records", &records, "--with", &with]).code(code);
        assert!(!whole.stdout.to_lowercase().contains("canary"), "{}", whole.stdout);
        let lines: Vec<Value> = whole.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(ended.stdout.lines().count(), lines.len());
        (ended.stdout, lines)
    };
    let both = "allowed_tools = ['docs__search', 'tasks__create_task']";
    let (told, _) = replay(&calls, both, 0);
    let lines: Vec<_> = told.lines().collect();
    let searched = "docs__search: allow (allowed_tools) -> allow (allowed_tools)";
    assert!(lines[0].starts_with("same       run-1 ") && lines[0].ends_with(searched), "{told}");
    assert_eq!(lines[2], "2 calls: 2 the same, 0 differ, 0 undecided, 0 of unknown tools, 0 lines without a decision");
    // Under the other policy, the result of the first call labels the run for the second.
    let labels = format!(
        "{both}\n[labels.untrusted]\nfrom_tags = ['untrusted_content']\nrequire_approval_for_effects = ['state_change']"
    );
    for records in [&calls, &wrapped, &kind] {
        let (told, whole) = replay(records, &labels, 1);
        assert!(
            told.contains(" tasks__create_task: allow (allowed_tools) -> require_approval (labels.untrusted.require_approval_for_effects)\n"),
            "{told}"
        );
        assert_eq!(whole[2]["counts"]["differ"], json!({ "allow -> require_approval": 1 }));
        assert_eq!((&whole[0]["result"], &whole[1]["result"]), (&json!("same"), &json!("differs")));
        let (before, now) = (&whole[1]["before"], &whole[1]["now"]);
        assert_eq!((&before["rule"], &now["verdict"]), (&json!("allowed_tools"), &json!("require_approval")));
    }
    let backwards = [calls[1].clone(), calls[0].clone(), decision];
    let (told, _) = replay(&backwards, &labels, 0);
    assert!(
        told.ends_with("2 the same, 0 differ, 0 undecided, 0 of unknown tools, 1 lines without a decision\n"),
        "{told}"
    );
    // Arguments count, and a role that the record names.
    let high =
        format!("{both}\n[[tools.tasks__create_task.arguments]]\npointer = '/title'\nprefix = 'Can'\nthen = 'deny'");
    let (told, whole) = replay(&calls, &high, 1);
    assert!(told.contains("-> deny (tools.tasks__create_task.arguments[0])"), "{told}");
    assert_eq!(whole[2]["counts"]["same"], 1);
    let only = ["policy", "replay", "--differences", "--records", "records.jsonl", "--with", "with.toml"];
    assert_eq!(rig.run(&only).code(1).stdout.lines().count(), 2, "one call, and the counts");
    let mut clerk = calls.clone();
    clerk.iter_mut().for_each(|record| record["roles"] = json!(["clerk"]));
    let (_, whole) = replay(&clerk, &format!("{both}\n[roles.clerk]\ndenied_tools = ['docs__search']"), 1);
    assert_eq!(whole[2]["counts"]["differ"], json!({ "allow -> deny": 1 }));
    // A tool that left the catalog, and a record without arguments.
    let mut unclear = calls.clone();
    unclear[0]["name"] = json!("docs__gone");
    unclear[1]["arguments"] = json!({ "unread": { "length": 3, "digest": format!("00000000:{}", "00".repeat(32)) } });
    let (told, _) = replay(&unclear, &high, 0);
    assert!(told.contains("0 the same, 0 differ, 1 undecided, 1 of unknown tools"), "{told}");
    assert!(told.starts_with("unknown    run-1 ") && told.contains("\nundecided  run-1 "), "{told}");
}

#[test]
fn what_a_record_masks_is_not_guessed() {
    let rig = Rig::new();
    let ended = rig.run(&["--policy", UNTRUSTED, "call", "mail__send_email", KNOWN, "--view", "audit"]).code(0);
    let records = rig.write("records.jsonl", &ended.stdout).display().to_string();
    let replay = |pointer: &str, code: i32| {
        let rule = format!("pointer = '{pointer}'\nequals = 'Hello'\nthen = 'deny'");
        let with = format!("allowed_tools = ['mail__send_email']\n[[tools.mail__send_email.arguments]]\n{rule}");
        let with = rig.write("with.toml", &with).display().to_string();
        rig.run(&["policy", "replay", "--records", &records, "--with", &with]).code(code).stdout
    };
    assert!(replay("/body", 0).contains("0 the same, 0 differ, 1 undecided"));
    assert!(replay("/subject", 1).contains("allow (allowed_tools) -> deny (tools.mail__send_email.arguments[0])"));
}

#[test]
fn what_is_not_a_record_is_refused() {
    let rig = Rig::new();
    let with = rig.write("with.toml", "").display().to_string();
    for (line, says) in
        [("{\"canary\"", "line 2: not a record"), ("{\"tool_call_id\": \"canary\"}", "line 2: not a record")]
    {
        let records = rig.write("records.jsonl", &format!("\n{line}")).display().to_string();
        let ended = rig.run(&["policy", "replay", "--records", &records, "--with", &with]).code(2);
        assert!(ended.stderr.contains(says) && !ended.stderr.contains("canary"), "{}", ended.stderr);
    }
    let records = rig.write("records.jsonl", "[1]\n\"text\"\n").display().to_string();
    let counted = rig.run(&["policy", "replay", "--records", &records, "--with", &with]).code(0).stdout;
    assert!(counted.contains("0 calls: 0 the same") && counted.contains("2 lines without a decision"), "{counted}");
    let broken = rig.write("with.toml", "allowed_tools = ['docs__saerch']").display().to_string();
    let ended = rig.run(&["policy", "replay", "--records", &records, "--with", &broken]).code(2);
    assert!(ended.stderr.contains("did you mean `docs__search`?"), "{}", ended.stderr);
    assert!(rig.run(&["policy", "replay", "--records", &records]).code(2).stderr.contains("--with"));
}

#[test]
fn a_refusal_names_the_command_that_explains_it() {
    let rig = Rig::new();
    rig.write("p.toml", "allowed_tools = ['core__get_current_time']\n");
    let refused = rig.run(&["--policy", "p.toml", "call", "mail__send_email", KNOWN]).code(3);
    assert!(refused.stderr.contains("why: toolbox policy explain mail__send_email --policy p.toml\n"), "{refused:?}");
    assert!(!refused.stderr.contains("did you mean"), "{refused:?}");
    let shown = rig.run(&["--policy", "p.toml", "show", "mail__send_email"]).code(0);
    assert!(shown.stderr.contains("why: toolbox policy explain mail__send_email --policy p.toml"), "{shown:?}");
    let denied = rig.run(&["--policy", UNTRUSTED, "call", "mail__send_email", STRANGER]).code(3);
    let command = format!("policy explain mail__send_email --policy {UNTRUSTED} (with --label untrusted");
    assert!(denied.stderr.contains(&command), "{denied:?}");
    let unknown = rig.run(&["call", "mail__send_emial", KNOWN]).code(3);
    assert!(unknown.stderr.contains("did you mean") && !unknown.stderr.contains("policy explain"), "{unknown:?}");
    let send = call("c1", "mail__send_email", &serde_json::from_str(STRANGER).unwrap());
    let endpoint = Endpoint::new(vec![send, text("It is not allowed.")]);
    let chat = ["chat", "--no-stream", "--model-url", &endpoint.url, "--model", "m", "Send it."];
    let refused = rig.run(&[&["--policy", UNTRUSTED], &chat[..]].concat()).code(0);
    assert!(refused.stderr.contains("   why: toolbox policy explain mail__send_email"), "{refused:?}");
}

/// The printed command gets the same decision: the policy, the party and its roles and attributes are in it.
#[test]
fn the_command_that_explains_a_refusal_finds_the_same_rule() {
    let rig = Rig::new();
    rig.write(
        "my rules.toml",
        "allowed_tools = ['docs__search']\n[attributes.status.suspended]\ndenied_tools = ['docs__search']\n\
         [roles.clerk]\nallowed_tools = ['core__get_current_time']\n",
    );
    let party =
        ["--policy", "my rules.toml", "--principal", "bob", "--role", "clerk", "--attribute", "status=suspended"];
    let search = ["call", "docs__search", "{\"query\":\"tea\"}"];
    let options = "--policy 'my rules.toml' --principal bob --role clerk --attribute status=suspended";
    for words in [&search[..], &["show", "docs__search"]] {
        let ended = rig.run(&[&party[..], words].concat());
        assert!(ended.stderr.contains(&format!("toolbox policy explain docs__search {options}\n")), "{ended:?}");
    }
    let explained = rig.run(&[&["policy", "explain", "docs__search"], &party[..]].concat()).code(3);
    assert!(explained.stdout.contains("attributes.status.suspended.denied_tools"), "{explained:?}");
}
