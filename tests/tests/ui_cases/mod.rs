//! The files under `tests/ui`.

pub(crate) mod any_compiler;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A source that must not compile.
pub(crate) struct Case {
    pub(crate) topic: String,
    pub(crate) name: String,
    pub(crate) source: PathBuf,
    /// What the pinned compiler answers.
    pub(crate) answer: String,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ui")
}

/// The folders of sources that must not compile.
pub(crate) fn topics() -> Vec<String> {
    let mut topics: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "pass")
        .collect();
    topics.sort();
    topics
}

pub(crate) fn cases() -> Vec<Case> {
    let case = |topic: &str, source: PathBuf| Case {
        topic: topic.to_owned(),
        name: source.file_stem().unwrap().to_str().unwrap().to_owned(),
        answer: fs::read_to_string(source.with_extension("stderr")).unwrap_or_default(),
        source,
    };
    let topics = topics();
    topics.iter().flat_map(|topic| sources(topic).into_iter().map(|source| case(topic, source))).collect()
}

pub(crate) fn passing() -> Vec<PathBuf> {
    sources("pass")
}

fn sources(topic: &str) -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = fs::read_dir(folder().join(topic))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    sources.sort();
    sources
}

/// `1.95.0` of `rustc 1.95.0 (..)`, of the compiler that cargo runs here.
pub(crate) fn compiler_version() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(' ').nth(1).unwrap_or_default().to_owned()
}
