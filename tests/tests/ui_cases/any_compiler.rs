//! The check under a compiler that words its own errors differently: every case still fails, with our first line.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::ui_cases::{Case, folder};

/// Checks the cases as the binaries of one package, in one run of cargo.
pub(crate) fn check(failing: &[Case], passing: &[PathBuf]) {
    let package = tempfile::tempdir().unwrap();
    let bins = failing.iter().map(|case| &case.source).chain(passing);
    fs::write(package.path().join("Cargo.toml"), manifest(bins)).unwrap();
    fs::copy(workspace().join("Cargo.lock"), package.path().join("Cargo.lock")).unwrap();
    let answers = compile(package.path());

    let mut wrong = Vec::new();
    for case in failing {
        let said = answers.get(&name(&case.source)).map(Vec::as_slice).unwrap_or_default();
        if differs(&case.answer, said) {
            wrong.push(format!(
                "{}/{}: expected {:?}, found {said:?}",
                case.topic,
                case.name,
                case.answer.lines().next()
            ));
        }
    }
    for source in passing {
        if let Some(said) = answers.get(&name(source)) {
            wrong.push(format!("{} does not compile: {said:?}", source.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether none of the errors begins as the recorded answer does.
pub(crate) fn differs(answer: &str, said: &[String]) -> bool {
    let wanted = answer.lines().next().unwrap_or_default();
    wanted.is_empty() || !said.iter().any(|line| line == wanted)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn name(source: &Path) -> String {
    let relative = source.strip_prefix(folder()).unwrap().with_extension("");
    relative.iter().map(|part| part.to_str().unwrap()).collect::<Vec<_>>().join("-")
}

fn manifest<'a>(sources: impl Iterator<Item = &'a PathBuf>) -> String {
    let versions = fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let dependency =
        |name: &str| versions.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap().to_owned();
    let mut text = "[package]\nname = \"ui-cases\"\nversion = \"0.0.0\"\nedition = \"2024\"\nautobins = false\n\n[workspace]\n\n[dependencies]\n".to_owned();
    for name in ["async-trait", "schemars", "serde", "serde_json"] {
        writeln!(text, "{}", dependency(name)).unwrap();
    }
    writeln!(text, "tool-runtime = {{ path = '{}' }}", workspace().join("tool-runtime").display()).unwrap();
    for source in sources {
        write!(text, "\n[[bin]]\nname = '{}'\npath = '{}'\n", name(source), source.display()).unwrap();
    }
    text
}

/// The first lines of the errors, by binary.
fn compile(package: &Path) -> BTreeMap<String, Vec<String>> {
    // A directory of its own: this cargo runs inside another one, which may hold the lock of the usual one.
    let target = env::current_exe().unwrap().ancestors().nth(3).unwrap().join("ui-cases");
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["check", "--offline", "--keep-going", "--bins", "--message-format", "json"])
        .current_dir(package)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    let mut answers = BTreeMap::<String, Vec<String>>::new();
    let mut seen = BTreeSet::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let Some(target) = message["target"]["name"].as_str() else { continue };
        seen.insert(target.to_owned());
        if message["message"]["level"] == "error" {
            let rendered = message["message"]["rendered"].as_str().unwrap_or_default();
            answers.entry(target.to_owned()).or_default().extend(rendered.lines().next().map(str::to_owned));
        }
    }
    assert!(
        seen.contains("tool_runtime"),
        "cargo did not get to the cases: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    answers
}
