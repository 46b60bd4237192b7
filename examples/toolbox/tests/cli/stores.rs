//! Tests stores in operation: modes of files, migrations, options, and a restored backup.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::endpoint::{Endpoint, call, text};
use crate::rig::{Ended, Rig, TASK};
use crate::worker::{Working, shared, until};

const GUIDE: &str = include_str!("../../../../docs/src/store.md");

/// Runs a command under umask 000: files are world-readable unless the command sets their mode.
#[track_caller]
fn open_handed(rig: &Rig, words: &[&str]) -> Ended {
    let mut shell = Command::new("sh");
    let output = shell
        .args(["-c", "umask 000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_toolbox")])
        .args(words)
        .current_dir(rig.folder())
        .env_clear()
        .envs(rig.environment())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn mode(path: &Path) -> String {
    format!("{:04o}", fs::metadata(path).unwrap().permissions().mode() & 0o777)
}

/// Returns every file and folder below a folder, with its mode.
fn modes(folder: &Path) -> BTreeMap<String, String> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.strip_prefix(folder).unwrap().display().to_string(), mode(&path));
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

#[test]
fn every_file_is_its_owners_alone_as_the_guide_says() {
    let delete = || call("c1", "tasks__delete_task", &json!({ "task_id": TASK }));
    let endpoint = Endpoint::new(vec![delete()]);
    let rig = Rig::new();
    let model = ["--model-url", &endpoint.url, "--model", "m", "--no-stream"];
    open_handed(&rig, &[&["--log", "run.log", "chat"], &model[..], &[&format!("Delete {TASK}")]].concat()).code(5);
    open_handed(&rig, &["approvals", "deny", "c1", "keep it"]).code(0);
    open_handed(&rig, &["--store", "sqlite:shared.db", "worker", "put", "Go on."]).code(0);
    open_handed(&rig, &["check", "--lock", "tools.lock", "--write"]).code(0);
    // While the database is open, SQLite has more files next to it.
    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    database.query_row("SELECT count(*) FROM tool_runtime_documents", [], |row| row.get::<_, i64>(0)).unwrap();

    let mut found = modes(rig.folder());
    // The data folder and the database are omitted, because the application creates them itself.
    found.retain(|name, _| {
        name != "data"
            && (!name.starts_with("data/")
                || name.starts_with("data/conversations")
                || name.contains("tool-runtime.db"))
    });
    let place = |name: &str| match name {
        "data/tool-runtime.db" => "`DATA/tool-runtime.db`, the store without `--store`",
        "shared.db" => "`STORE.db`, the file of a store",
        "shared.db-wal" | "shared.db-shm" | "data/tool-runtime.db-wal" | "data/tool-runtime.db-shm" => {
            "`STORE.db-wal`, `STORE.db-shm`, in the same folder"
        }
        "data/conversations" => "`DATA/conversations`, a folder",
        "run.log" => "`FILE` of `--log FILE`",
        "tools.lock" => "`FILE` of `check --lock FILE --write`",
        _ if name.strip_suffix(".json").is_some() => "`DATA/conversations/ID.json`",
        _ if name.strip_suffix(".lock").is_some() => "`DATA/conversations/ID.lock`",
        _ => panic!("{name} is not in the table of the guide"),
    };
    let told: BTreeMap<_, _> = GUIDE
        .split("\n## ")
        .find(|section| section.starts_with("File permissions"))
        .unwrap()
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?, cells.next()?.strip_prefix('`')?.strip_suffix('`')?))
        })
        .collect();
    let seen: BTreeMap<_, _> = found.iter().map(|(name, mode)| (place(name), mode.as_str())).collect();
    for (name, mode) in &found {
        assert_eq!(Some(&mode.as_str()), told.get(place(name)), "{name}");
    }
    let unseen: Vec<_> = told.keys().filter(|cell| !seen.contains_key(*cell)).collect();
    assert_eq!(unseen, [&"definitions of pinned servers, next to the policy"], "the same function writes them");
}

#[test]
fn a_file_that_others_may_read_is_left_as_it_is_and_named() {
    let rig = Rig::new();
    let put = ["--store", "sqlite:shared.db", "worker", "put", "Go on."];
    rig.run(&put).code(0);
    rig.write("run.log", "");
    for name in ["shared.db", "run.log"] {
        fs::set_permissions(rig.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let noted = rig.run(&[&["--log", "run.log"], &put[..]].concat()).code(0);
    for name in ["shared.db (mode 0644): chmod 600", "run.log (mode 0644): chmod 600"] {
        assert!(noted.stderr.contains(name), "{noted:?}");
    }
    assert_eq!((mode(&rig.path("shared.db")), mode(&rig.path("run.log"))), ("0644".to_owned(), "0644".to_owned()));
    let quiet = rig.run(&[&["--quiet"], &put[..]].concat()).code(0);
    assert_eq!(quiet.stderr, "");
    // A replaced file keeps its mode.
    rig.run(&["check", "--lock", "tools.lock", "--write"]).code(0);
    fs::set_permissions(rig.path("tools.lock"), fs::Permissions::from_mode(0o664)).unwrap();
    let lock = fs::read_to_string(rig.path("tools.lock")).unwrap();
    fs::write(rig.path("tools.lock"), lock.replace("List tasks with their ids.", "Lists them.")).unwrap();
    rig.run(&["check", "--lock", "tools.lock", "--write"]).code(0);
    assert_eq!(mode(&rig.path("tools.lock")), "0664");
}

/// Statements that turn a current database into one of version 2.
const OLD: &str = "
    ALTER TABLE tool_runtime_documents RENAME TO documents;
    ALTER TABLE tool_runtime_records RENAME TO records;
    UPDATE documents SET body = json_set(body, '$.run.document', (
        SELECT group_concat(part.body, '' ORDER BY instr(documents.parts, part.hash))
        FROM tool_runtime_parts AS part WHERE part.scope = documents.scope)) WHERE parts IS NOT NULL;
    ALTER TABLE documents DROP COLUMN parts;
    DROP INDEX tool_runtime_documents_lane;
    ALTER TABLE documents DROP COLUMN lane; ALTER TABLE documents DROP COLUMN leased_until;
    DROP TABLE tool_runtime_parts;
    DROP INDEX tool_runtime_documents_number; DROP INDEX tool_runtime_documents_due;
    DROP INDEX tool_runtime_records_call; DROP INDEX tool_runtime_records_at;
    CREATE INDEX documents_number ON documents (space, number);
    CREATE INDEX documents_due ON documents (space, due) WHERE due IS NOT NULL;
    CREATE INDEX records_call ON records (call_id);
    CREATE INDEX records_at ON records (at);
    UPDATE tool_runtime_schema SET version = 2;";

#[test]
fn a_store_is_migrated_where_that_is_asked_for() {
    let mut rig = Rig::new();
    rig.set("TOOLBOX_STORE", "sqlite:shared.db");
    let put = ["--json", "worker", "put", "--run", "run-1", "Go on."];
    assert_eq!(rig.run(&[&["--no-migrate"], &put[..]].concat()).code(2).error(), "store_older");
    fs::remove_file(rig.path("shared.db")).unwrap();
    assert!(rig.run(&["store", "migrate"]).code(0).stdout.contains("has its tables now: version 6"));
    assert!(rig.run(&["store", "migrate"]).code(0).stdout.contains("has version 6 already"));
    rig.run(&[&["--no-migrate"], &put[..]].concat()).code(0);

    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    database.execute_batch(OLD).unwrap();
    let version = || database.query_row("SELECT version FROM tool_runtime_schema", [], |row| row.get::<_, i64>(0));
    for words in [
        &["audit", "verify"][..],
        &["audit", "export"],
        &["approvals", "list"],
        &["grants", "list"],
        &["worker", "show", "run-1"],
        &["worker", "post", "run-1", "x"],
        &["--no-migrate", "worker", "put", "x"],
    ] {
        let refused = rig.run(&[&["--json"], words].concat()).code(2);
        assert_eq!(refused.error(), "store_older", "{words:?}");
        assert!(
            refused.stderr.contains("version 2, and this library needs 6") && refused.stderr.contains("store migrate")
        );
    }
    assert_eq!(version().unwrap(), 2);
    assert_eq!(rig.run(&["--json", "store", "migrate"]).code(0).json(), json!({"was": 2, "version": 6}));
    assert_eq!(rig.run(&["--json", "store", "migrate"]).code(0).json(), json!({"was": 6, "version": 6}));
    rig.run(&["audit", "verify"]).code(0);
    assert!(rig.run(&["worker", "show", "run-1"]).code(0).stdout.starts_with("run-1  new"));
    database.execute_batch(OLD).unwrap();
    rig.run(&["worker", "put", "Another."]).code(0);
    assert_eq!(version().unwrap(), 6, "a command that writes migrates");
}

#[test]
fn how_the_store_is_used_is_set_like_everything_else() {
    let mut rig = Rig::new();
    rig.set("TOOLBOX_STORE", "sqlite:shared.db");
    let put = ["worker", "put", "--run", "run-1", "Go on."];
    for prefix in [&["--store-prefix", "orders_"][..], &[]] {
        let words = [prefix, &["--store-connections", "2", "--store-patience", "1s"], &put].concat();
        rig.run(&words).code(0);
    }
    rig.run(&["--store-prefix", "orders_", "worker", "show", "run-1"]).code(0);
    let wrong = rig.run(&["--json", "--store-prefix", "x; DROP", "worker", "put", "x"]).code(2);
    assert_eq!(wrong.error(), "store_misconfigured");
    for words in [["--store-connections", "0"], ["--store-patience", "long"]] {
        rig.run(&[&words[..], &put].concat()).code(2);
    }
    rig.write(
        "config.toml",
        "store_connections = 3\nstore_patience = \"2s\"\nstore_prefix = \"file_\"\nstore_migrate = false\n",
    );
    rig.set("TOOLBOX_CONFIG", "config.toml");
    assert_eq!(rig.run(&[&["--json"], &put[..]].concat()).code(2).error(), "store_older");
    rig.set("TOOLBOX_STORE_MIGRATE", "true").set("TOOLBOX_STORE_PREFIX", "variable_");
    rig.run(&put).code(0);
    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    let tables =
        "SELECT group_concat(name) FROM (SELECT name FROM sqlite_master WHERE name LIKE '%schema' ORDER BY name)";
    let tables: String = database.query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(tables, "orders_schema,tool_runtime_schema,variable_schema");
    for (variable, value) in [("STORE_MIGRATE", "yes"), ("STORE_PATIENCE", "5"), ("STORE_CONNECTIONS", "many")] {
        let mut rig = Rig::new();
        rig.set("TOOLBOX_STORE", "sqlite:shared.db").set(&format!("TOOLBOX_{variable}"), value);
        let refused = rig.run(&[&["--json"], &put[..]].concat()).code(2);
        assert!(
            refused.error() == "config" && refused.stderr.contains(&format!("TOOLBOX_{variable}: ")),
            "{refused:?}"
        );
    }
}

#[test]
fn runs_that_are_behind_after_a_restore_wait_for_a_person() {
    let list = |id: &str| call(id, "tasks__list_tasks", &json!({}));
    let endpoint =
        Endpoint::new(vec![list("c1"), text("One."), text("Other."), list("c2"), text("Again."), text("Third.")]);
    let rig = shared(&endpoint);
    rig.run(&["worker", "put", "--run", "run-1", "Which tasks?"]).code(0);
    let database = rusqlite::Connection::open(rig.path("shared.db")).unwrap();
    database.execute("VACUUM INTO ?1", [rig.path("backup.db").to_str().unwrap()]).unwrap();
    drop(database);
    let working = Working::start(&rig, &[]);
    until(&rig, "run-1", "answered");
    working.end();
    // The worker may have anchored it already.
    rig.run(&["audit", "anchor"]).code(0);
    let anchors = rig.run(&["audit", "export", "--anchors"]).code(0).stdout;
    rig.write("anchors.jsonl", &anchors);
    let restored = ["store", "restored", "--anchors", "anchors.jsonl"];
    let whole = rig.run(&restored).code(0);
    assert!(whole.stdout.is_empty() && whole.stderr.contains("no run is behind"), "{whole:?}");

    for name in ["shared.db-wal", "shared.db-shm"] {
        let _ = fs::remove_file(rig.path(name));
    }
    fs::copy(rig.path("backup.db"), rig.path("shared.db")).unwrap();
    let behind = rig.run(&[&["--json"], &restored[..]].concat()).code(1);
    assert_eq!(behind.json(), json!({"run": "run-1", "anchored": 1, "found": 0, "held_back": true}));
    assert!(rig.run(&restored).code(1).stdout.contains("run-1  records 0 of 1; held back until `store release`"));
    rig.run(&["worker", "put", "--run", "run-2", "And you?"]).code(0);
    rig.run(&["worker", "post", "run-1", "Go on."]).code(0);
    let working = Working::start(&rig, &[]);
    assert_eq!(until(&rig, "run-2", "answered")["text"], "Other.", "other runs go on");
    let shown: Value = rig.run(&["--json", "worker", "show", "run-1"]).code(0).json();
    assert_eq!((&shown["state"], &shown["held_back"]), (&json!("new"), &json!(true)));
    let chat = rig.run(&["--json", "chat", "--continue", "run-1", "Now?"]).code(1);
    assert_eq!(chat.error(), "run_held_back");

    assert_eq!(rig.run(&["--json", "store", "release", "run-3"]).code(2).error(), "not_found");
    rig.run(&["store", "release", "run-1"]).code(0);
    // The worker also takes the message that was posted meanwhile.
    until(&rig, "run-1", "answered");
    working.end();
    rig.write("empty.jsonl", "\n");
    let empty = rig.run(&["--json", "store", "restored", "--anchors", "empty.jsonl"]).code(2);
    assert!(empty.error() == "unreadable_input" && empty.stderr.contains("no anchors"), "{empty:?}");
    rig.write("forged.jsonl", &anchors.replace("\"sequence\":0", "\"sequence\":7"));
    let forged = rig.run(&["--json", "store", "restored", "--anchors", "forged.jsonl"]);
    assert_eq!(forged.error(), "store_corrupt", "{forged:?}");
}
