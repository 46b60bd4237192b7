//! Tests `audit`: searching, checking, exporting and anchoring records of a database, and detecting manipulation.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::endpoint::{Endpoint, call, text};
use crate::rig::{Ended, Rig, TASK};

const OK: &[&str] = &["call", "core__get_current_time", "{}"];

/// A store with calls of every kind, and a decision.
fn history() -> Rig {
    let mut rig = Rig::new();
    rig.set("TOOLBOX_STORE", "sqlite:records.db");
    rig.run(OK).code(0);
    rig.run(&["call", "core__get_current_time", r#"{"timezone":7}"#]).code(4);
    rig.run(&["call", "nobody__knows", "{}"]).code(3);
    let delete = json!({ "task_id": TASK }).to_string();
    rig.run(&["call", "tasks__delete_task", &delete, "--user-text", TASK]).code(5);
    let id = rig.waiting()[0]["id"].as_str().unwrap().to_owned();
    rig.run(&["approvals", "deny", &id, "not now"]).code(0);
    rig
}

fn lines(ended: &Ended) -> Vec<Value> {
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(rig: &Rig, words: &[&str]) -> usize {
    let words: Vec<_> = ["audit", "show", "--json"].iter().chain(words).copied().collect();
    lines(&rig.run(&words).code(0)).len()
}

#[test]
fn missing_records_are_named_with_the_options_of_the_command() {
    let rig = Rig::new();
    for (words, reads_files) in [
        (&["audit", "show"][..], true),
        (&["audit", "verify"], true),
        (&["audit", "open"], false),
        (&["audit", "anchor"], false),
        (&["audit", "export", "--anchors"], false),
    ] {
        let refused = rig.run(words).code(2).stderr;
        assert!(refused.contains("--store URL"), "{words:?}: {refused}");
        assert_eq!(refused.contains("--records FILE"), reads_files, "{words:?}: {refused}");
    }
}

#[test]
fn records_are_found_by_what_they_say() {
    let rig = history();
    let all = lines(&rig.run(&["audit", "show", "--json"]).code(0));
    assert_eq!(all.len(), 5, "{all:#?}");
    let run = all[0]["record"]["call"]["run_id"].as_str().unwrap();
    for (words, expected) in [
        (&["--run", run][..], 1),
        (&["--tool", "core__get_current_time"], 2),
        (&["--outcome", "unavailable"], 1),
        (&["--outcome", "validation_error", "--tool", "core__get_current_time"], 1),
        (&["--principal", "nobody"], 0),
        (&["--tenant", "nobody"], 0),
        (&["--decider", "ada"], 1),
        (&["--decider", "nobody"], 0),
        (&["--outcome", "denied"], 1),
        (&["--kind", "decision"], 1),
        (&["--kind", "call"], 4),
        (&["--since", "2020-01-01"], all.len()),
        (&["--until", "2020-01-01"], 0),
        (&["--limit", "2"], 2),
    ] {
        assert_eq!(count(&rig, words), expected, "{words:?}");
    }
    for (limit, rows, has_more) in [("4", 4, true), ("5", 5, false), ("6", 5, false)] {
        let shown = rig.run(&["audit", "show", "--limit", limit]).code(0);
        assert_eq!(shown.stdout.lines().count() - 1, rows, "{shown:?}");
        assert_eq!(shown.stderr.contains("these are the first"), has_more, "{shown:?}");
    }
    let table = rig.run(&["audit", "show", "--kind", "decision"]).code(0).stdout;
    assert!(table.starts_with("TIME") && table.contains("tasks__delete_task"), "{table}");
    for words in [&["--outcome", "allowed"][..], &["--kind", "grant"], &["--since", "yesterday"]] {
        let words: Vec<_> = ["audit", "show"].iter().chain(words).copied().collect();
        rig.run(&words).code(2);
    }
}

#[test]
fn records_are_kept_in_the_data_folder() {
    let endpoint = Endpoint::new(vec![call("c1", "tasks__list_tasks", &json!({})), text("Five.")]);
    let rig = Rig::new();
    let none = rig.run(&["--json", "audit", "show"]).code(2);
    assert!(none.error() == "usage" && none.stderr.contains("`data` has no records"), "{none:?}");
    assert!(!rig.path("data").exists(), "looking makes no folder");
    rig.run(OK).code(0);
    rig.run(&["chat", "--model-url", &endpoint.url, "--model", "m", "--no-stream", "Which tasks?"]).code(0);
    let delete = json!({ "task_id": TASK }).to_string();
    rig.run(&["call", "tasks__delete_task", &delete, "--user-text", TASK]).code(5);
    let id = rig.waiting()[0]["id"].as_str().unwrap().to_owned();
    rig.run(&["approvals", "approve", &id]).code(0);
    let shown = rig.run(&["audit", "show"]).code(0).stdout;
    for tool in ["core__get_current_time", "tasks__list_tasks", "tasks__delete_task"] {
        assert!(shown.contains(tool), "{shown}");
    }
    assert_eq!(count(&rig, &["--outcome", "approved"]), 1);
    rig.run(&["audit", "verify"]).code(0);
    let kept = count(&rig, &[]);
    rig.run(&[&["--store", "memory"], OK].concat()).code(0);
    assert_eq!(count(&rig, &[]), kept);
    rig.run(&["--store", "memory", "audit", "show"]).code(2);
    rig.run(&["grants", "list"]).code(0);
    rig.run(&["store", "migrate"]).code(0);
    // The conversations stay documents, so that nothing but `--store` makes a run that workers share.
    rig.run(&["worker", "show", "x"]).code(2);
}

#[test]
fn a_folder_that_cannot_hold_records_is_named_and_a_broken_store_is_refused() {
    let rig = Rig::new();
    rig.run(&[&["--store", "memory"], OK].concat()).code(0);
    std::os::unix::fs::symlink("nowhere/x.db", rig.path("data/tool-runtime.db")).unwrap();
    let ended = rig.run(&[&["--quiet"], OK].concat()).code(0);
    assert!(ended.stderr.contains("the records of this command are not kept"), "{ended:?}");
    assert!(ended.stderr.contains("--data") && ended.stderr.contains("data/tool-runtime.db"), "{ended:?}");
    std::fs::remove_file(rig.path("data/tool-runtime.db")).unwrap();
    rig.write("data/tool-runtime.db", "this is no database, and its records are not skipped in silence");
    let broken = rig.run(&[&["--json"], OK].concat()).code(2);
    assert!(broken.error() == "store_corrupt" && broken.stdout.is_empty(), "{broken:?}");
}

#[test]
fn one_file_is_searched_and_checked_like_a_store() {
    let rig = history();
    let exported = rig.run(&["audit", "export"]).code(0).stdout;
    let file = rig.write("records.jsonl", &exported);
    let file = file.to_str().unwrap();
    assert_eq!(count(&rig, &["--records", file]), exported.lines().count());
    assert_eq!(count(&rig, &["--records", file, "--outcome", "unavailable"]), 1);
    let anchors = rig.run(&["audit", "anchor"]).code(0).stdout;
    rig.write("anchors.jsonl", &anchors);
    assert_eq!(rig.run(&["audit", "export", "--anchors"]).code(0).stdout, anchors);
    assert_eq!(rig.run(&["audit", "anchor"]).code(0).stdout, "", "nothing is new");
    let verify = |words: &[&str]| rig.run(&[&["audit", "verify", "--json"], words].concat());
    let whole = verify(&["--anchors", "anchors.jsonl"]).code(0).json();
    assert_eq!(verify(&["--records", file, "--anchors", "anchors.jsonl"]).code(0).json(), whole);
    assert_eq!((&whole["ok"], &whole["anchors"], &whole["unanchored_runs"]), (&json!(true), &json!(1), &json!(0)));
    // The record that `call` prints is the stored one, and `policy replay` accepts it.
    let view = rig.run(&["call", "core__get_current_time", "{}", "--view", "audit"]).code(0).stdout;
    rig.write("view.jsonl", &view);
    verify(&["--records", "view.jsonl"]).code(0);
    rig.write("same.toml", "allowed_tools = [\"core__get_current_time\"]\n");
    rig.run(&["policy", "replay", "--records", "view.jsonl", "--with", "same.toml"]).code(0);
    // A file without its first and last records is a part.
    let lines: Vec<_> = exported.lines().collect();
    rig.write("part.jsonl", lines[lines.len() - 1]);
    verify(&["--records", "part.jsonl"]).code(1);
    verify(&["--records", "part.jsonl", "--part"]).code(0);
    rig.write("torn.jsonl", &lines[0][..lines[0].len() / 2]);
    assert_eq!(verify(&["--records", "torn.jsonl"]).code(2).error(), "unreadable_input");
    assert_eq!(verify(&["--records", "nowhere.jsonl"]).code(2).error(), "unreadable_input");
    assert_eq!(verify(&["--store", "sqlite:nowhere.db"]).code(2).error(), "unreadable_input");
    assert!(!rig.path("nowhere.db").exists(), "looking makes no database");
}

/// The store of [`history`], with an exported anchor.
fn anchored() -> Rig {
    let rig = history();
    let anchors = rig.run(&["audit", "anchor"]).code(0).stdout;
    rig.write("anchors.jsonl", &anchors);
    rig
}

fn attack(rig: &Rig, sql: &str) {
    let database = Connection::open(rig.path("records.db")).unwrap();
    let changed = database.execute(sql, []).unwrap();
    assert!(changed > 0, "{sql}");
}

/// The code of the first finding of `audit verify`, and whether it names a run and a place.
fn named(rig: &Rig, words: &[&str]) -> (String, bool) {
    let found = rig.run(&[&["audit", "verify", "--json"], words].concat()).code(1).json();
    assert_eq!(found["ok"], json!(false));
    (found["code"].as_str().unwrap().to_owned(), found["run"].is_string() && found["sequence"].is_u64())
}

#[test]
fn every_change_of_a_database_is_named() {
    let longest = "(SELECT run_id FROM tool_runtime_records WHERE sequence = 1 LIMIT 1)";
    for (sql, expected) in [
        // Edited in place.
        (
            "UPDATE tool_runtime_records SET body = replace(body, '\"executed\":true', '\"executed\":false') WHERE number = 1"
                .to_owned(),
            "record_changed",
        ),
        (
            "UPDATE tool_runtime_records SET body = replace(body, '\"ada\"', '\"eve\"'), principal = 'eve' WHERE number = 1".to_owned(),
            "record_changed",
        ),
        ("UPDATE tool_runtime_records SET body = substr(body, 1, 40) WHERE number = 1".to_owned(), "record_unreadable"),
        // A duplicate member. Other readers may use the first one, so this library refuses the record.
        (
            "UPDATE tool_runtime_records SET body = replace(body, '\"executed\":true', '\"executed\":false,\"executed\":true') \
             WHERE number = 1"
                .to_owned(),
            "record_unreadable",
        ),
        (
            "UPDATE tool_runtime_records SET body = replace(body, '\"result\":{', '\"result\":{\"iso\":\"FORGED\",') WHERE number = 1"
                .to_owned(),
            "record_changed",
        ),
        ("UPDATE tool_runtime_records SET body = replace(body, '{\"call\":{', '{\"call\":{\"note\":1,') WHERE number = 1".to_owned(), "record_changed"),
        ("UPDATE tool_runtime_records SET hash = upper(hash) WHERE number = 1".to_owned(), "record_changed"),
        // The column has no text, or another type.
        ("UPDATE tool_runtime_records SET body = x'ff00fe' WHERE number = 1".to_owned(), "record_unreadable"),
        ("UPDATE tool_runtime_records SET at = 'yesterday' WHERE number = 1".to_owned(), "record_unreadable"),
        // The record is hidden from a search.
        ("UPDATE tool_runtime_records SET principal = 'eve' WHERE number = 1".to_owned(), "record_misfiled"),
        ("UPDATE tool_runtime_records SET at = 0 WHERE number = 1".to_owned(), "record_misfiled"),
        // Records are removed at the beginning, at the end, and all together.
        (format!("DELETE FROM tool_runtime_records WHERE run_id = {longest} AND sequence = 0"), "records_missing"),
        (format!("DELETE FROM tool_runtime_records WHERE run_id = {longest} AND sequence = 1"), "records_cut"),
        ("DELETE FROM tool_runtime_records".to_owned(), "records_cut"),
        // Swapped and moved.
        (
            "UPDATE tool_runtime_records SET body = (SELECT body FROM tool_runtime_records AS other WHERE other.number = 3 - tool_runtime_records.number) \
             WHERE number IN (1, 2)"
                .to_owned(),
            "record_misfiled",
        ),
        (format!("UPDATE tool_runtime_records SET run_id = {longest}, sequence = 2 WHERE number = 1"), "record_misfiled"),
        (
            format!("UPDATE tool_runtime_records SET sequence = sequence + 1 WHERE run_id = {longest} AND sequence = 1"),
            "records_missing",
        ),
        ("UPDATE tool_runtime_records SET previous = hash WHERE number = 1".to_owned(), "record_unlinked"),
        // Anchors.
        (
            "UPDATE tool_runtime_documents SET body = replace(body, '\"position\":', '\"position\":1') WHERE space = 'anchor'"
                .to_owned(),
            "anchor_broken",
        ),
        (
            "UPDATE tool_runtime_documents SET body = replace(body, '\"position\":', '\"position\":1') \
             WHERE space = 'anchor' AND id = 'last'"
                .to_owned(),
            "anchor_broken",
        ),
        (
            "UPDATE tool_runtime_documents SET id = '00000000000000000007' WHERE space = 'anchor' AND id <> 'last'".to_owned(),
            "anchor_broken",
        ),
        ("UPDATE tool_runtime_documents SET body = '{' WHERE space = 'anchor' AND id <> 'last'".to_owned(), "anchor_broken"),
        ("DELETE FROM tool_runtime_documents WHERE space = 'anchor' AND id <> 'last'".to_owned(), "anchor_broken"),
        ("DELETE FROM tool_runtime_documents WHERE space = 'anchor' AND id = 'last'".to_owned(), "anchor_broken"),
    ] {
        let rig = anchored();
        rig.run(&["audit", "verify"]).code(0);
        attack(&rig, &sql);
        let (code, is_placed) = named(&rig, &[]);
        assert_eq!(code, expected, "{sql}");
        assert_eq!(is_placed, code != "anchor_broken", "{sql}");
    }
}

/// An unreadable row does not hide other damage, and neither does an edited record.
#[test]
fn verification_goes_on_behind_what_it_finds() {
    let rig = anchored();
    attack(&rig, "UPDATE tool_runtime_records SET body = x'ff' WHERE number = 1");
    attack(
        &rig,
        "UPDATE tool_runtime_records SET body = replace(body, '\"executed\":false', '\"executed\":true') WHERE number = 3",
    );
    let found = rig.run(&["audit", "verify", "--json"]).code(1).json();
    let codes: Vec<_> = found["findings"].as_array().unwrap().iter().map(|found| found["code"].clone()).collect();
    assert_eq!(codes, ["record_unreadable", "record_changed"], "{found}");
    let text = rig.run(&["audit", "verify"]).code(1).stdout;
    assert_eq!(text.matches("broken:").count(), 2, "{text}");
}

/// A list and an export report the unreadable row, and contain all others.
#[test]
fn a_row_that_cannot_be_read_hides_no_other_from_a_list() {
    let rig = anchored();
    let whole = rig.run(&["audit", "export"]).code(0).stdout;
    attack(&rig, "UPDATE tool_runtime_records SET body = x'ff' WHERE number = 1");
    for words in [&["audit", "export"][..], &["--json", "audit", "show"]] {
        let rest = rig.run(words).code(1);
        assert_eq!(rest.stdout.lines().collect::<Vec<_>>(), whole.lines().skip(1).collect::<Vec<_>>(), "{words:?}");
        assert_eq!(rest.stderr.matches("broken:").count(), 1, "{}", rest.stderr);
    }
    let table = rig.run(&["audit", "show"]).code(1);
    assert_eq!((table.stdout.lines().count(), table.stderr.matches("broken:").count()), (whole.lines().count(), 1));
}

/// A file of records is compared as text, too.
#[test]
fn a_line_that_says_more_than_its_record_is_named() {
    let rig = history();
    let exported = rig.run(&["audit", "export"]).code(0).stdout;
    for (from, to) in
        [("\"result\":{", "\"result\":{\"iso\":\"FORGED\","), ("{\"sequence\"", "{\"note\":1,\"sequence\"")]
    {
        let forged = exported.replacen(from, to, 1);
        assert_ne!(forged, exported, "{from}");
        rig.write("forged.jsonl", &forged);
        let (code, is_placed) = named(&rig, &["--records", "forged.jsonl"]);
        assert_eq!((code.as_str(), is_placed), ("record_changed", true), "{from}");
    }
}

#[test]
fn what_was_made_anew_with_its_anchors_is_found_by_what_was_exported() {
    let rig = anchored();
    attack(&rig, "DELETE FROM tool_runtime_documents WHERE space = 'anchor'");
    rig.run(&["audit", "verify"]).code(0);
    assert_eq!(named(&rig, &["--anchors", "anchors.jsonl"]).0, "anchor_broken");
    // Another store, whose chains and anchors are all in order.
    for name in ["records.db", "records.db-wal", "records.db-shm"] {
        let _ = std::fs::remove_file(rig.path(name));
    }
    rig.run(OK).code(0);
    rig.run(&["audit", "anchor"]).code(0);
    rig.run(&["audit", "verify"]).code(0);
    assert_eq!(named(&rig, &["--anchors", "anchors.jsonl"]), ("records_cut".to_owned(), true));
    assert!(Path::new(&rig.path("anchors.jsonl")).exists());
}

#[test]
fn calls_that_have_no_end_are_listed() {
    let rig = history();
    let none = rig.run(&["audit", "open"]).code(0);
    assert!(none.stdout.is_empty() && none.stderr.contains("every call that began has its record"), "{}", none.stderr);
    assert!(rig.run(&["audit", "open", "--json", "--run", "nonsense"]).code(0).stdout.is_empty());
}

/// A lost record is reported.
#[test]
fn a_record_that_is_lost_fails_the_command() {
    let rig = history();
    attack(&rig, "DELETE FROM tool_runtime_records");
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON tool_runtime_records BEGIN SELECT RAISE(ABORT, 'no'); END";
    Connection::open(rig.path("records.db")).unwrap().execute(refuse, []).unwrap();
    let ended = rig.run(OK).code(1);
    assert!(ended.stderr.contains("a record could not be stored"), "{}", ended.stderr);
    assert!(ended.stdout.contains("iso"), "the result is there: {}", ended.stdout);
    assert_eq!(rig.run(&["call", "core__get_current_time", "{}", "--json"]).code(1).error(), "record_lost");
}

/// Unreadable anchors are reported, and later anchors are checked, exported and continued.
#[test]
fn an_unreadable_anchor_hides_nothing_behind_it() {
    let rig = history();
    for _ in 0..3 {
        rig.run(OK).code(0);
        rig.run(&["audit", "anchor"]).code(0);
    }
    attack(&rig, "UPDATE tool_runtime_documents SET body = '{' WHERE space = 'anchor' AND id = '00000000000000000001'");
    let verify = || rig.run(&["audit", "verify", "--json"]).code(1).json();
    let found = verify();
    let findings = found["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{found}");
    assert_eq!((&findings[0]["anchor"], &findings[0]["code"]), (&json!(1), &json!("anchor_broken")));
    assert_eq!(findings[0]["message"], "anchor 1: it cannot be read");
    let exported = rig.run(&["audit", "export", "--anchors"]).code(1);
    let numbers: Vec<_> = lines(&exported).iter().map(|anchor| anchor["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 2]);
    assert!(exported.stderr.contains("anchor 1: it cannot be read"), "{exported:?}");
    // A later anchor still shows that a record is missing, and the next anchor can be made.
    attack(&rig, "DELETE FROM tool_runtime_records WHERE number = (SELECT max(number) FROM tool_runtime_records)");
    let codes: Vec<_> = verify()["findings"].as_array().unwrap().iter().map(|found| found["code"].clone()).collect();
    assert_eq!(codes, ["anchor_broken", "records_cut"]);
    rig.run(OK).code(0);
    let next = lines(&rig.run(&["audit", "anchor"]).code(0));
    assert_eq!(next[0]["number"], json!(3));
}

const BY: [&str; 4] = ["--as", "grace", "--reason", "policy 4"];

fn with_by<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(BY).collect()
}

#[test]
fn old_runs_leave_and_held_runs_stay() {
    let rig = history();
    let all = lines(&rig.run(&["audit", "show", "--json"]).code(0));
    let run = all[0]["record"]["call"]["run_id"].as_str().unwrap();
    rig.run(&["audit", "anchor"]).code(0);
    rig.run(&["audit", "purge", "--before", "0s"]).code(2);
    let held = rig.run(&with_by(&["--json", "audit", "hold", "add", "--run", run])).code(0).stdout;
    let hold = serde_json::from_str::<Value>(&held).unwrap()["id"].as_str().unwrap().to_owned();
    let listed = rig.run(&["audit", "hold", "list"]).code(0).stdout;
    assert!(listed.contains(&hold) && listed.contains("grace") && listed.contains("policy 4"), "{listed}");
    rig.run(&with_by(&["audit", "hold", "add"])).code(2);

    let refused = rig.run(&with_by(&["--json", "audit", "purge", "--before", "0s", "--run", run])).code(1);
    assert_eq!(refused.error(), "legal_hold", "{refused:?}");
    let none = rig.run(&with_by(&["--json", "audit", "purge", "--before", "1d"])).code(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&none).unwrap()["runs"], 0, "{none}");
    let purge = with_by(&["--json", "audit", "purge", "--before", "0s"]);
    let dry = rig.run(&[&purge[..], &["--dry-run"]].concat()).code(0).stdout;
    assert_eq!(count(&rig, &["--outcome", "purged"]), 0, "{dry}");
    let purged: Value = serde_json::from_str(&rig.run(&purge).code(0).stdout).unwrap();
    assert_eq!(purged["kept"], json!([{"run": run, "why": "legal_hold"}]), "{purged}");
    assert_eq!(purged["records"], all.len() - 1, "{purged}");
    assert!(dry.contains(&format!("\"records\":{}", all.len() - 1)), "{dry}");
    assert_eq!(count(&rig, &["--run", run]), 1);
    let verified = rig.run(&["audit", "verify"]).code(0).stdout;
    assert!(verified.contains(&format!("records purged {}", all.len() - 1)), "{verified}");
    let table = rig.run(&["audit", "show", "--outcome", "purged"]).code(0).stdout;
    assert!(table.contains("purged (1)") && table.contains("grace"), "{table}");

    rig.run(&with_by(&["audit", "hold", "lift", "nothing"])).code(2);
    rig.run(&with_by(&["audit", "hold", "lift", &hold])).code(0);
    rig.run(&with_by(&["audit", "purge", "--before", "0s", "--run", run])).code(0);
    assert_eq!(count(&rig, &["--kind", "call"]), 0);
    assert_eq!(count(&rig, &["--outcome", "hold_lifted"]), 1);
    rig.run(&["audit", "verify"]).code(0);
    // A run that was removed by hand is found.
    let database = Connection::open(rig.path("records.db")).unwrap();
    database.execute("DELETE FROM tool_runtime_records WHERE run_id = ?1", [run]).unwrap();
    let found = rig.run(&["--json", "audit", "verify"]).code(1).stdout;
    assert!(found.contains("records_cut"), "{found}");
}

#[test]
fn the_data_of_a_principal_is_erased() {
    let rig = history();
    let all = count(&rig, &[]);
    rig.run(&["audit", "erase", "--reason", "asked for"]).code(2);
    // An erasure in the wrong tenant finds nothing, so the command prints the principal and the tenant.
    let both = ["audit", "erase", "--principal", "ada", "--tenant", "acme", "--no-tenant"];
    rig.run(&with_by(&both)).code(2);
    for (which, shown) in [(&["--tenant", "acme"][..], "in the tenant acme"), (&["--no-tenant"], "without a tenant")] {
        let words = [&["audit", "erase", "--principal", "ada"], which].concat();
        let nothing = rig.run(&with_by(&words)).code(0).stdout;
        assert!(nothing.starts_with(&format!("the data of ada {shown}\nerased: runs 0")), "{nothing}");
    }
    rig.run(&with_by(&["audit", "hold", "add", "--principal", "ada"])).code(0);
    let in_tenant = ["--json", "audit", "erase", "--principal", "ada", "--tenant", "acme"];
    let refused = rig.run(&with_by(&in_tenant)).code(1);
    assert_eq!(refused.error(), "legal_hold", "a hold without a tenant covers every tenant: {refused:?}");
    let refused = rig.run(&with_by(&["--json", "audit", "erase", "--principal", "ada"])).code(1);
    assert_eq!(refused.error(), "legal_hold", "{refused:?}");
    let holds = lines(&rig.run(&["--json", "audit", "hold", "list"]).code(0));
    rig.run(&with_by(&["audit", "hold", "lift", holds[0]["id"].as_str().unwrap()])).code(0);
    let erased = rig.run(&with_by(&["--json", "audit", "erase", "--principal", "ada"])).code(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&erased).unwrap()["records"], all, "{erased}");
    let shown = rig.run(&["audit", "export"]).code(0).stdout;
    let erased: Vec<_> = shown.lines().filter(|line| line.contains("{\"erased\":{\"call\"")).collect();
    assert!(
        !erased.is_empty() && erased.iter().all(|line| !line.contains(TASK) && !line.contains("\"ada\"")),
        "{shown}"
    );
    let verified = rig.run(&["audit", "verify"]).code(0).stdout;
    assert!(verified.contains(&format!("records erased {all}")), "{verified}");
    std::fs::write(rig.path("records.jsonl"), shown).unwrap();
    // An export contains no key, so an option names the accepted key.
    let unknown = rig.run(&["--json", "audit", "verify", "--records", "records.jsonl"]).code(1).stdout;
    assert!(unknown.contains("removal_unchecked"), "{unknown}");
    let signed = std::fs::read_to_string(rig.path("records.jsonl")).unwrap();
    let signature = signed.lines().find_map(|line| line.split("\"signature\":\"").nth(1)).expect("a signed record");
    let id = signature.split(':').next().unwrap();
    let accepted = ["audit", "verify", "--records", "records.jsonl", "--accept-key", id];
    let exported = rig.run(&accepted).code(0).stdout;
    assert!(exported.contains("without a comparison") && exported.contains(id), "{exported}");
    let changed = signed.replacen("\"outcome\":\"ok\"", "\"outcome\":\"policy_denied\"", 1);
    assert_ne!(signed, changed);
    std::fs::write(rig.path("records.jsonl"), changed).unwrap();
    let found = rig.run(&[&["--json"], &accepted[..]].concat()).code(1).stdout;
    assert!(found.contains("record_changed"), "{found}");
}

/// An application's own key signs and checks removals, and the store contains no key.
#[test]
fn a_key_in_a_file_signs() {
    let rig = history();
    let stored = || {
        let sql = "SELECT count(*) FROM tool_runtime_documents WHERE space = 'digest_key'";
        Connection::open(rig.path("records.db")).unwrap().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    attack(&rig, "DELETE FROM tool_runtime_documents WHERE space = 'digest_key'");
    rig.write("key", &format!("{}\n", "5a".repeat(32)));
    let key = ["--digest-key-file", "key"];
    let hold = rig.run(&with_by(&[&key[..], &["audit", "hold", "add", "--run", "x"]].concat())).code(0);
    let id = hold.stdout.trim().rsplit(' ').next().unwrap().to_owned();
    rig.run(&with_by(&[&key[..], &["audit", "hold", "lift", &id]].concat())).code(0);
    rig.run(&with_by(&[&key[..], &["audit", "erase", "--principal", "ada"]].concat())).code(0);
    rig.run(&with_by(&[&key[..], &["audit", "purge", "--before", "0s"]].concat())).code(0);
    assert_eq!(stored(), 0, "a reader of the database cannot sign");
    rig.run(&[&key[..], &["audit", "verify"]].concat()).code(0);
    let found = rig.run(&["--json", "audit", "verify"]).code(1).stdout;
    assert!(found.contains("removal_unchecked"), "{found}");
    let exported = rig.run(&["audit", "export"]).code(0).stdout;
    rig.write("records.jsonl", &exported);
    rig.run(&[&key[..], &["audit", "verify", "--records", "records.jsonl"]].concat()).code(0);
    rig.write("key", "not a key");
    let refused = rig.run(&[&key[..], &["audit", "verify"]].concat()).code(2);
    assert!(refused.stderr.contains("64 hexadecimal digits") && !refused.stderr.contains("not a key"), "{refused:?}");
}

/// An option or a variable names the key file. The option overrides the variable.
#[test]
fn the_key_file_is_named_by_a_variable() {
    let mut rig = history();
    attack(&rig, "DELETE FROM tool_runtime_documents WHERE space = 'digest_key'");
    rig.write("key", &"5a".repeat(32));
    rig.write("other", &"5b".repeat(32));
    rig.set("TOOLBOX_DIGEST_KEY_FILE", "key");
    rig.run(&with_by(&["audit", "purge", "--before", "0s"])).code(0);
    rig.run(&["audit", "verify"]).code(0);
    let other = rig.run(&["--json", "--digest-key-file", "other", "audit", "verify"]).code(1).stdout;
    assert!(other.contains("removal_unchecked"), "{other}");
    let sql = "SELECT count(*) FROM tool_runtime_documents WHERE space = 'digest_key'";
    let database = Connection::open(rig.path("records.db")).unwrap();
    assert_eq!(database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "the store gets none");
}

/// A run can be held before it begins. A note on stderr shows a misspelt id.
#[test]
fn a_hold_on_a_run_without_records_is_said() {
    let rig = history();
    let unknown = rig.run(&with_by(&["audit", "hold", "add", "--run", "typo"])).code(0);
    assert!(unknown.stdout.starts_with("held: "), "{unknown:?}");
    assert_eq!(unknown.stderr, "no records of run `typo` yet: the hold is kept\n");
    assert!(rig.run(&["audit", "hold", "list"]).code(0).stdout.contains("run typo"));
    let all = lines(&rig.run(&["audit", "show", "--json"]).code(0));
    let run = all[0]["record"]["call"]["run_id"].as_str().unwrap();
    let known = rig.run(&with_by(&["audit", "hold", "add", "--run", run])).code(0);
    assert_eq!(known.stderr, "");
}

/// If an erasure has to keep a run, the command exits with 1, prints the remedy, and can be repeated.
#[test]
fn an_erasure_that_is_not_done_fails() {
    let rig = history();
    let all = count(&rig, &[]);
    let database = Connection::open(rig.path("records.db")).unwrap();
    let first = "SELECT body FROM tool_runtime_records WHERE number = (SELECT min(number) FROM tool_runtime_records)";
    let body: String = database.query_row(first, [], |row| row.get(0)).unwrap();
    let write =
        "UPDATE tool_runtime_records SET body = ?1 WHERE number = (SELECT min(number) FROM tool_runtime_records)";
    database.execute(write, ["{"]).unwrap();
    let erase = with_by(&["audit", "erase", "--principal", "ada"]);
    let broken = rig.run(&erase).code(1);
    assert!(broken.stdout.contains(&format!("records {}", all - 1)) && broken.stdout.contains("broken"), "{broken:?}");
    for part in ["broken: ", "audit verify", "backup", "erase again"] {
        assert!(broken.stderr.contains(part), "{part}: {broken:?}");
    }
    let again = rig.run(&[&["--json"], &erase[..]].concat()).code(1);
    assert_eq!((again.error(), &again.json()["records"]), (json!("broken"), &json!(0)));
    database.execute(write, [&body]).unwrap();
    let done = rig.run(&erase).code(0);
    assert!(done.stdout.contains("records 1,") && done.stderr.is_empty(), "{done:?}");
    rig.run(&["audit", "verify"]).code(0);
}
