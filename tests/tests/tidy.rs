//! Holds the house rules that no compiler knows: who may import whom, how long files are, what must not be there.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

use std::fs;
use std::path::{Path, PathBuf};

/// The layers of `tool-runtime`, lowest first. A module imports its own layer and lower ones only.
const LAYERS: &[&[&str]] = &[
    &["contain", "error", "text", "tool"],
    &["capability"],
    &["call"],
    &["component"],
    &["json"],
    &["schema"],
    &["redact", "policy"],
    &["registration"],
    &["catalog"],
    &["hydrate"],
    &["store"],
    &["runner"],
    &["agent", "testing"],
    &["cli"],
];

/// From this layer on `wire` may be imported.
const LOOP: &str = "agent";

/// `wire` is beside the layers: it imports nothing above `json`, and only the outermost ones import it.
const WIRE: &str = "wire";

/// Files that are longer than 300 lines; ARCHITECTURE.md gives the reason for each.
const LONG: &[&str] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package stands in the workspace").to_owned()
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                if !matches!(path.file_name().and_then(|name| name.to_str()), Some("target" | "fixtures" | ".git")) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a readable source");
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no sources below {}", folder.display());
    found
}

/// What stands before the unit tests of a file: tests may look wherever they like.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

/// A file of unit tests.
fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem == "tests" || stem.ends_with("_tests") || path.components().any(|part| part.as_os_str() == "tests")
}

/// The sources of a library below the workspace's root, unit tests in files of their own left out.
fn library(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = sources(folder);
    found.retain(|(path, _)| !is_test(path.strip_prefix(folder).expect("below the folder")));
    found
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// The modules of this crate that a line of code names through `crate::`.
fn imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("//") {
            continue;
        }
        for part in line.split("crate::").skip(1) {
            let module: String = part.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if !module.is_empty() {
                found.push((number + 1, module));
            }
        }
    }
    found
}

#[test]
fn layers_import_downwards_only() {
    let folder = root().join("tool-runtime/src");
    let mut wrong = Vec::new();
    for (path, text) in library(&folder) {
        let relative = path.strip_prefix(&folder).expect("below the folder");
        let module = relative.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let module = module.unwrap_or_default().trim_end_matches(".rs").to_owned();
        if matches!(module.as_str(), "lib" | "private") {
            continue;
        }
        for (line, imported) in imports(code(&text)) {
            let allowed = match (layer(&module), layer(&imported)) {
                (Some(own), Some(other)) => other <= own,
                (None, Some(other)) if module == WIRE => layer("json").is_some_and(|json| other <= json),
                (Some(own), None) if imported == WIRE => layer(LOOP).is_some_and(|from| own >= from),
                (None, None) if module == WIRE && imported == WIRE => true,
                _ => false,
            };
            if !allowed {
                wrong.push(format!("{}:{line}: `{module}` must not import `{imported}`", relative.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each text may occur in the named places of `tool-runtime/src` only.
const CONFINED: &[(&str, &[&str])] = &[
    ("std::env", &["cli/"]),
    ("println!", &[]),
    ("SystemTime::now", &[]),
    ("Timestamp::now", &["store/clock.rs", "agent/http/"]),
    ("reqwest::", &["agent/http/"]),
    ("jsonschema::", &["schema/"]),
    ("inventory::iter", &["catalog/build.rs"]),
    ("std::net", &[]),
    ("std::fs", &["cli/", "policy/"]),
    ("File::open", &["cli/"]),
];

#[test]
fn what_touches_the_world_is_confined() {
    let folder = root().join("tool-runtime/src");
    let mut wrong = Vec::new();
    for (path, text) in library(&folder) {
        let relative = path.strip_prefix(&folder).expect("below the folder").to_string_lossy().into_owned();
        for (needle, places) in CONFINED {
            let used = code(&text).lines().any(|line| !line.trim_start().starts_with("//") && line.contains(needle));
            if used && !places.iter().any(|place| relative.starts_with(place)) {
                wrong.push(format!("{relative}: `{needle}` belongs to {places:?} only"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let mut wrong = Vec::new();
    for folder in ["tool-macros/src", "tool-runtime/src", "examples/office-tools/src", "examples/toolbox/src"] {
        for (path, text) in library(&root().join(folder)) {
            let relative = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
            let length = text.lines().count();
            if length > 300 && !LONG.contains(&relative.as_str()) {
                wrong.push(format!("{relative}: {length} lines; split it, or give the reason in ARCHITECTURE.md"));
            }
            if !text.starts_with("//!") {
                wrong.push(format!("{relative}: begins without a `//!` sentence of purpose"));
            }
        }
    }
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for long in LONG {
        if !architecture.contains(long) {
            wrong.push(format!("ARCHITECTURE.md gives no reason for the length of {long}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_left_undone() {
    // Spelled apart, so that this file holds none of them.
    let needles =
        [["to", "do!("], ["unimple", "mented!("], ["db", "g!("], ["#[ign", "ore"]].map(|parts| parts.concat());
    let mut wrong = Vec::new();
    for (path, text) in sources(&root()) {
        for needle in needles.iter().filter(|needle| text.contains(needle.as_str())) {
            wrong.push(format!("{}: {needle}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
