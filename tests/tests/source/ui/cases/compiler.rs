//! Compiles the cases: all of them as the binaries of one package, in one run of `cargo check`.
//!
//! The package has the dependencies of an author's crate and the runtime without features, so that no command line and
//! no HTTP client is compiled for it. It shares the target folder of the test, so that the macros and their
//! dependencies are built once.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Case, package};

/// The dependencies of an author's crate.
const DEPENDENCIES: [&str; 5] = ["async-trait", "schemars", "serde", "serde_json", "tool-runtime"];

/// The compiler's messages for each case, rendered and in order, by the name of its binary.
pub(crate) fn ask(cases: &[Case]) -> BTreeMap<String, Vec<String>> {
    let target = target();
    let folder = target.join("ui-cases");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("Cargo.toml"), manifest(cases)).unwrap();
    fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["check", "--offline", "--keep-going", "--bins", "--message-format", "json"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    let (mut answers, mut dependencies) = (BTreeMap::<String, Vec<String>>::new(), BTreeSet::new());
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let Some(of) = message["target"]["name"].as_str() else { continue };
        if message["reason"] == "compiler-artifact" {
            dependencies.insert(of.to_owned());
        }
        if let Some(rendered) = message["message"]["rendered"].as_str()
            && message["message"]["level"] != "failure-note"
        {
            let answers = answers.entry(of.to_owned()).or_default();
            if !answers.iter().any(|known| known == rendered) {
                answers.push(rendered.to_owned());
            }
        }
    }
    assert!(
        dependencies.contains("tool_runtime"),
        "cargo did not get to the cases: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    answers
}

pub(crate) fn workspace() -> PathBuf {
    package().parent().unwrap().to_owned()
}

/// `target` of `target/debug/deps/ui-0123456789abcdef`.
fn target() -> PathBuf {
    env::current_exe().unwrap().ancestors().nth(3).map(Path::to_owned).unwrap()
}

fn manifest(cases: &[Case]) -> String {
    let root = fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let mut text = OWN.to_owned();
    for name in DEPENDENCIES {
        let dependency = root.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
        let folder = format!("path = \"{}/", workspace().display()).replace('\\', "/");
        writeln!(text, "{}", dependency.replace("path = \"", &folder)).unwrap();
    }
    // The same profiles, so that existing builds are reused.
    for section in root.split("\n[").filter(|section| section.starts_with("profile.")) {
        write!(text, "\n[{section}").unwrap();
    }
    for case in cases {
        write!(text, "\n[[bin]]\nname = '{}'\npath = '{}'\n", case.binary(), case.source.display()).unwrap();
    }
    text
}

const OWN: &str = r#"[package]
name = "ui-cases"
version = "0.0.0"
edition = "2024"
autobins = false

[workspace]

[lints.rust]
dead_code = "allow"

[dependencies]
"#;
