//! Effect keys through the command line: each call is a process of its own.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

fn start(folder: &Path, words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_once-shell"))
        .args(["--store", "sqlite:shared.db", "--json"])
        .args(words)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("EFFECTS", folder.join("effects"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn pay(folder: &Path) -> Child {
    start(folder, &["call", "bills__pay", r#"{"bill":"b-1"}"#])
}

/// The exit code, and the document.
fn ended(output: &Output) -> (Option<i32>, Value) {
    let said = String::from_utf8_lossy(&output.stdout);
    let document = serde_json::from_str(&said)
        .unwrap_or_else(|_| panic!("no JSON: {said} {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), document)
}

fn effects(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("effects")).map_or(0, |lines| lines.lines().count())
}

#[test]
fn a_call_in_a_shell_is_told_of_one_that_runs_and_gets_the_result_of_one_that_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("hold"), "").expect("a file");
    let mut first = pay(folder);
    while effects(folder) == 0 {
        assert!(first.try_wait().expect("it is ours").is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (code, told) = ended(&pay(folder).wait_with_output().expect("it ends"));
    assert_eq!((&told["errorCode"], &told["toolCode"]), (&json!("cancelled"), &json!("in_progress")), "{told}");
    assert_ne!(code, Some(0), "{told}");
    std::fs::remove_file(folder.join("hold")).expect("a file");
    let (code, paid) = ended(&first.wait_with_output().expect("it ends"));
    assert_eq!((code, &paid["value"]), (Some(0), &json!("paid b-1")), "{paid}");
    let (code, had) = ended(&pay(folder).wait_with_output().expect("it ends"));
    assert_eq!((code, &had["value"]), (Some(0), &json!("paid b-1")), "{had}");
    assert!(had["model"].as_str().is_some_and(|text| text.contains("The tool did not run again")), "{had}");
    assert_eq!(effects(folder), 1);
}
