//! The log: what operators read, on stderr (`-v`, `--log LEVEL`) or in a file (`--log FILE`).

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::cli::config::Settings;
use crate::cli::exit::Failure;
use crate::cli::terminal;

/// Libraries whose own logs say little of tools; they may hold what was sent.
const NOISY: &[&str] = &["h2", "hyper", "hyper_util", "reqwest", "rustls", "rustyline"];

/// The log of this module is the process's.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Installs the subscriber that the settings ask for; none when they ask for none.
pub(super) fn install(settings: &Settings) -> Result<(), Failure> {
    let verbose = match settings.verbose {
        0 => LevelFilter::OFF,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let (mut stderr, mut file) = (verbose, None);
    for wanted in &settings.log {
        match level(wanted) {
            Some(level) => stderr = stderr.max(level),
            None => file = Some(open(Path::new(wanted))?),
        }
    }
    let on_stderr = (stderr != LevelFilter::OFF)
        .then(|| fmt::layer().without_time().with_writer(Lines::Stderr).with_filter(filter(stderr)));
    let level = verbose.max(LevelFilter::INFO);
    let in_file = file.map(|file| fmt::layer().with_writer(Lines::File(file)).with_filter(filter(level)));
    if on_stderr.is_some() || in_file.is_some() {
        // An application that has a subscriber of its own keeps it.
        let installed = tracing_subscriber::registry().with(on_stderr).with(in_file).try_init();
        INSTALLED.store(installed.is_ok(), Ordering::Relaxed);
    }
    Ok(())
}

/// Logs a contained failure with its text. The text can hold values, so it goes nowhere but to the log that a person
/// asked for on this command line.
pub(super) fn failure(failure: &crate::runner::Failure<'_>) {
    if INSTALLED.load(Ordering::Relaxed) {
        let tool = failure.tool.unwrap_or_default();
        let call = failure.call_id.map(crate::call::CallId::as_str).unwrap_or_default();
        tracing::error!(code = failure.code, tool, call, run = failure.run_id, "{}", failure.text);
    }
}

/// The level that a word names; a file is anything else.
fn level(word: &str) -> Option<LevelFilter> {
    Some(match word {
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => return None,
    })
}

fn filter(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_targets(NOISY.iter().map(|target| (*target, level.min(LevelFilter::WARN))))
}

fn open(path: &Path) -> Result<Arc<Mutex<std::fs::File>>, Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| {
        let levels = "error, warn, info, debug, trace";
        Failure::usage(format!("cannot open the log file {}: {error} (the levels are {levels})", path.display()))
    })?;
    Ok(Arc::new(Mutex::new(file)))
}

/// Writes each event as a line that a terminal may show.
#[derive(Clone)]
enum Lines {
    Stderr,
    File(Arc<Mutex<std::fs::File>>),
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // One event is one write: the line break at its end is the only one that belongs to the log.
        let text = String::from_utf8_lossy(bytes);
        let line = terminal::safe(text.trim_end());
        match self {
            Self::Stderr => terminal::message(&line),
            Self::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                writeln!(file, "{line}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
