//! Tests `check --lock`: exit codes, and accepted and refused changes.

use std::fs;

use serde_json::Value;

use crate::rig::Rig;

const LOCK: &str = include_str!("../../tools.lock");

#[test]
fn a_lock_is_checked_and_written() {
    let rig = Rig::new();
    let path = rig.path("tools.lock");
    let file = path.to_str().unwrap();
    let missing = rig.run(&["check", "--lock", file]).code(2);
    assert!(missing.stderr.contains("`--write` creates it"), "{missing:?}");
    rig.run(&["check", "--lock", file, "--write"]).code(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), LOCK);
    rig.run(&["check", "--lock", file]).code(0);

    // A changed description is a patch, so `--write` needs no `--accept`.
    fs::write(&path, LOCK.replace("List tasks with their ids.", "Lists them.")).unwrap();
    let visible = rig.run(&["check", "--lock", file]).code(1);
    assert!(visible.stdout.contains("tasks__list_tasks: patch, visible\n  patch visible /description"), "{visible:?}");
    rig.run(&["check", "--lock", file, "--write"]).code(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), LOCK);

    // A new capability needs a review.
    let older = LOCK.replacen("\"TaskReader\": \"read_only\"", "\"Other\": \"read_only\"", 1);
    fs::write(&path, &older).unwrap();
    for words in [&[][..], &["--accept", "major"]] {
        let refused = rig.run(&[&["check", "--lock", file, "--write"], words].concat()).code(1);
        assert!(refused.stdout.contains("--accept major,review"), "{refused:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), older);
    }
    let told = rig.run(&["--json", "check", "--lock", file]).code(1);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let tool = &told["lock"]["tools"][0];
    assert_eq!((&tool["name"], &tool["review"]), (&"tasks__list_tasks".into(), &true.into()), "{told}");
    rig.run(&["check", "--lock", file, "--write", "--accept", "major,review"]).code(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), LOCK);
}

#[test]
fn a_lock_that_cannot_be_read_stays_as_it_is() {
    let rig = Rig::new();
    let path = rig.path("tools.lock");
    let file = path.to_str().unwrap();
    for (text, code, says) in [
        (LOCK.replacen('\n', "\n<<<<<<< HEAD\n", 1), "lock_merge", "line 2 begins with `<<<<<<<`"),
        (LOCK.replace("\"version\": 1", "\"version\": 2"), "lock_version", "version 2"),
        (LOCK[..500].to_owned(), "lock_malformed", "line "),
        ("\u{feff}[]".to_owned(), "lock_shape", "not an object"),
    ] {
        fs::write(&path, &text).unwrap();
        let refused = rig.run(&["--json", "check", "--lock", file, "--write", "--accept", "major,review"]).code(2);
        assert!(refused.stderr.contains(code) && refused.stderr.contains(says), "{refused:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    for words in [
        &["check", "--write"][..],
        &["check", "--lock", file, "--accept", "major"],
        &["check", "--lock", "-", "--write"],
    ] {
        rig.run(words).code(2);
    }
}
