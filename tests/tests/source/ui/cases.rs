//! The files under `tests/ui`, and the compiler's messages about them.

pub(crate) mod compiler;

use std::fs;
use std::path::{Path, PathBuf};

/// A source that must not compile.
pub(crate) struct Case {
    pub(crate) topic: String,
    pub(crate) name: String,
    pub(crate) source: PathBuf,
    /// The answer of the pinned compiler.
    pub(crate) answer: String,
}

impl Case {
    /// The name of its binary.
    pub(crate) fn binary(&self) -> String {
        format!("{}-{}", self.topic, self.name)
    }
}

/// The folder of the package that holds the tests.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The sources that must not compile, by topic and name.
pub(crate) fn cases() -> Vec<Case> {
    let topics = entries(&package().join("ui")).into_iter().filter(|path| path.is_dir() && !path.ends_with("pass"));
    let case = |topic: &Path, source: PathBuf| Case {
        topic: text(topic.file_name()),
        name: text(source.file_stem()),
        answer: fs::read_to_string(source.with_extension("stderr")).unwrap_or_default(),
        source,
    };
    topics.flat_map(|topic| sources(&topic).into_iter().map(move |source| case(&topic, source))).collect()
}

/// The names of the sources that compile and run.
pub(crate) fn passing() -> Vec<String> {
    sources(&package().join("ui/pass")).iter().map(|source| text(source.file_stem())).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut sources = entries(folder);
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

fn text(name: Option<&std::ffi::OsStr>) -> String {
    name.and_then(|name| name.to_str()).unwrap().to_owned()
}
