//! [`Rig`]: the folder of one test, with its own data, home and environment.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A task that every new database has.
pub(crate) const TASK: &str = "0c5e9f3a-1b2d-4e6f-8a7b-9c0d1e2f3a4b";

/// The environment of one test.
pub(crate) struct Rig {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    /// Sets a variable for every later command.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) -> &mut Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The variables that a command gets, so that this process's own environment cannot affect a test.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let folder = |name: &str| self.path(name).display().to_string();
        let mut all = vec![
            ("HOME".to_owned(), folder("home")),
            ("XDG_CONFIG_HOME".to_owned(), folder("config")),
            ("APPDATA".to_owned(), folder("config")),
            ("TERM".to_owned(), "xterm".to_owned()),
        ];
        // Windows cannot open sockets without this variable.
        all.extend(std::env::var("SystemRoot").ok().map(|root| ("SystemRoot".to_owned(), root)));
        all.extend(self.variables.iter().cloned());
        all
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        self.run_with(words, "")
    }

    /// Starts the program.
    pub(crate) fn start(&self, words: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_toolbox"))
            .args(words)
            .current_dir(self.folder())
            .env_clear()
            .envs(self.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs the program with this standard input.
    pub(crate) fn run_with(&self, words: &[&str], stdin: &str) -> Ended {
        let mut child = self.start(words);
        // A program that reads no input closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The waiting calls, as `approvals list` prints them.
    pub(crate) fn waiting(&self) -> Vec<Value> {
        let listed = self.run(&["--json", "approvals", "list"]);
        assert_eq!(listed.code, 0, "{listed:?}");
        serde_json::from_str(&listed.stdout).unwrap()
    }

    /// The mails in the outbox.
    pub(crate) fn mails(&self) -> usize {
        std::fs::read_dir(self.path("data/outbox/new")).map_or(0, Iterator::count)
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, expected, "{self:?}");
        self
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The error that `--json` prints.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let document: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert!(document["error"]["message"].is_string(), "{self:?}");
        document["error"]["code"].clone()
    }
}
