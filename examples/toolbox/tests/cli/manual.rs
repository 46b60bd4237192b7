//! Tests help, completions, man pages, widths and colours.

use crate::rig::{Rig, TASK};

const COMMANDS: [&str; 21] = [
    "list",
    "show",
    "export",
    "pick",
    "check",
    "call",
    "chat",
    "approvals",
    "grants",
    "outcomes",
    "notices",
    "audit",
    "policy",
    "mcp",
    "worker",
    "store",
    "replay",
    "wire",
    "hydrate",
    "completions",
    "man",
];

#[test]
fn every_command_has_examples_and_exit_codes() {
    let rig = Rig::new();
    for command in COMMANDS {
        let help = rig.run(&["help", command]).code(0);
        assert!(help.stdout.contains("Examples:\n  ") && help.stdout.contains("Exit codes:"), "{}", help.stdout);
        assert!(!help.stdout.contains('%'), "{}", help.stdout);
        assert_eq!(help.stdout, rig.run(&[command, "--help"]).code(0).stdout);
    }
    let all = rig.run(&["--help"]).code(0).stdout;
    let commands = all.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<_> = commands.filter(|line| !line.starts_with("   ")).collect();
    assert_eq!(commands.len(), COMMANDS.len() + 1, "`help` itself: {commands:?}");
    for expected in ["TOOLBOX_POLICY", "NO_COLOR", "~/.config/toolbox/config.toml"] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    for help in [all, rig.run(&["-h"]).code(0).stdout] {
        for expected in ["Exit codes:", "Examples:\n  toolbox list\n", "Guide:\n  https://", "docs/src/command-line.md"]
        {
            assert!(help.contains(expected), "{expected}: {help}");
        }
    }
}

#[test]
fn the_version_says_what_a_report_needs() {
    let rig = Rig::new();
    assert_eq!(rig.run(&["-V"]).code(0).stdout, concat!("toolbox ", env!("CARGO_PKG_VERSION"), "\n"));
    let long = rig.run(&["--version"]).code(0).stdout;
    assert!(long.starts_with("toolbox ") && long.contains("\ntool-runtime-cli ") && long.contains("build"), "{long}");
}

#[test]
fn completions_and_manual_pages() {
    let rig = Rig::new();
    for (shell, expected) in [("bash", "_toolbox()"), ("zsh", "#compdef toolbox"), ("fish", "complete -c toolbox")] {
        let script = rig.run(&["completions", shell]).code(0).stdout;
        assert!(script.contains(expected) && script.contains("approvals"), "{shell}");
    }
    assert!(rig.run(&["man"]).code(0).stdout.contains(".TH toolbox 1"));
    assert!(rig.run(&["man", "chat"]).code(0).stdout.contains("toolbox\\-chat"));
    let wrong = rig.run(&["man", "chart"]).code(2);
    assert!(wrong.stderr.contains("no command `chart`"), "{}", wrong.stderr);
}

#[test]
fn help_fits_the_columns_and_a_pipe_gets_whole_tables() {
    let mut rig = Rig::new();
    rig.set("COLUMNS", "72");
    for words in [&["help", "chat"][..], &["--help"], &["help", "approvals", "deny"]] {
        let shown = rig.run(words).code(0).stdout;
        let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 72 || only_verbatim(&shown, 72), "{words:?}: {widest}\n{shown}");
    }
    // A pipe gets one line for each row, with every column complete, for any value of COLUMNS.
    let arguments = serde_json::json!({ "task_id": TASK }).to_string();
    rig.run(&["call", "tasks__delete_task", &arguments, "--user-text", TASK]).code(5);
    rig.run(&["call", "tasks__list_tasks"]).code(0);
    for (words, first, last, rows) in [
        (&["list"][..], "NAME", "SOURCE", 19),
        (&["approvals", "list"], "CALL", "WHAT", 1),
        (&["audit", "show"], "TIME", "CALL", 1),
    ] {
        let whole = rig.run(words).code(0).stdout;
        let heading = whole.lines().next().unwrap();
        assert!(heading.starts_with(first) && heading.ends_with(last), "{whole}");
        assert_eq!(whole.lines().count(), 1 + rows, "{whole}");
        rig.set("COLUMNS", "200");
        assert_eq!(whole, rig.run(words).code(0).stdout);
        rig.set("COLUMNS", "72");
    }
}

/// The guide shows a definition as `show` prints it, without the line number of its source.
#[test]
fn the_guide_shows_a_definition() {
    let guide = include_str!("../../../../docs/src/command-line.md");
    let (_, block) = guide.split_once("```text\nmail__send_email\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let steady = |text: &str| {
        let lines = text.lines().map(|line| line.split(", examples/").next().unwrap().trim_end());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let shown = Rig::new().run(&["show", "mail__send_email"]).code(0).stdout;
    assert_eq!(steady(&shown), steady(&format!("mail__send_email\n{block}")));
}

/// Lines that are wider hold examples, which are not broken.
fn only_verbatim(text: &str, width: usize) -> bool {
    text.lines().filter(|line| line.chars().count() > width).all(|line| line.starts_with("  "))
}

#[test]
fn colours_are_for_terminals_and_can_be_forced() {
    let mut rig = Rig::new();
    assert!(!rig.run(&["list"]).code(0).stdout.contains('\u{1b}'));
    assert!(rig.run(&["list", "--color", "always"]).code(0).stdout.contains("\u{1b}[1m"));
    rig.set("CLICOLOR_FORCE", "1");
    assert!(rig.run(&["list"]).code(0).stdout.contains("\u{1b}[1m"));
    rig.set("NO_COLOR", "1");
    assert!(!rig.run(&["list"]).code(0).stdout.contains('\u{1b}'));
}
