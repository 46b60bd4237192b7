//! The log for operators, on stderr (`-v`, `--log FILTER`, `RUST_LOG`) or in a file (`--log FILE`), and the layers that
//! an application adds.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::config::Settings;
use crate::exit::Failure;
use crate::{private_file, terminal};

/// Libraries whose logs are long and can contain requests. A level, such as `-vv` or `--log debug`, logs at most their
/// warnings; a filter, such as `warn,hyper=debug`, is applied as it is written. Layers of an application receive none
/// of their logs.
const NOISY: &[&str] = &["h2", "hyper", "hyper_util", "reqwest", "rmcp", "rustls", "rustyline", "ureq"];

/// A log target that is always off. It quotes unknown parameters of a database URL, such as a password with a misspelt
/// key.
const QUOTES_URLS: &str = "sqlx_postgres::options";

/// The target of lines with the text of a failure. The text can contain private data, so it goes only to the log.
const FAILURES: &str = "tool_runtime::failures";

/// The target of the events that are metrics.
const METRICS: &str = "tool_runtime::metrics";

/// The target of the library's failure lines without text. At a level, it is off, because the lines of [`FAILURES`] say
/// the same and more.
const WITHOUT_TEXT: &str = "tool_runtime::runner::failure";

/// Whether this module installed the subscriber of the process.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Installs the subscriber that the settings and the application request, if they request any.
pub(super) fn install(layers: Vec<Box<dyn Layer<Registry> + Send + Sync>>, settings: &Settings) -> Result<(), Failure> {
    let verbose = match settings.verbose {
        0 => LevelFilter::OFF,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let environment = settings.rust_log.as_deref().map(|text| {
        filter(text).ok_or_else(|| {
            let why = "it is a level or a list such as `warn,tool_runtime=debug`; spans and fields cannot be selected";
            Failure::usage(format!("the environment variable RUST_LOG cannot be used: {why}")).code("config")
        })
    });
    let environment = environment.transpose()?;
    let (mut stderr, mut file) = ((verbose != LevelFilter::OFF).then(|| at(verbose)), None);
    for wanted in &settings.log {
        match (level(wanted), filter(wanted)) {
            (Some(level), _) => stderr = Some(at(level.max(verbose))),
            (_, Some(targets)) => stderr = Some(targets),
            (_, None) => file = Some(open(Path::new(wanted))?),
        }
    }
    if stderr.is_none() && file.is_none() {
        stderr.clone_from(&environment);
    }
    let in_file = environment.unwrap_or_else(|| at(verbose.max(LevelFilter::INFO)));
    let in_file = file.map(|file| fmt::layer().with_writer(Lines::File(file)).with_filter(in_file).boxed());
    let on_stderr =
        stderr.map(|targets| fmt::layer().without_time().with_writer(Lines::Stderr).with_filter(targets).boxed());
    let of_application = layers.into_iter().map(|layer| layer.with_filter(without_values()).boxed());
    let layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> =
        on_stderr.into_iter().chain(in_file).chain(of_application).collect();
    if !layers.is_empty() {
        // If the application has installed a subscriber, this call fails and changes nothing.
        let installed = tracing_subscriber::registry().with(layers).try_init();
        INSTALLED.store(installed.is_ok(), Ordering::Relaxed);
    }
    Ok(())
}

/// Logs why a store could not be opened. Quotations are removed, because they can come from the URL.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) fn unopened(error: &tool_runtime::store::StoreError) {
    if INSTALLED.load(Ordering::Relaxed) {
        tracing::error!(target: FAILURES, code = error.code(), "{}", crate::input::unquoted(&error.detail()));
    }
}

/// Whether a record could not be stored. The command reports this at its end.
static RECORD_LOST: AtomicBool = AtomicBool::new(false);

/// Set by commands that can run for days, so that each lost record is also reported at once; as JSON if `true`.
static REPORTS_AT_ONCE: OnceLock<bool> = OnceLock::new();

/// Reports each lost record when it is lost.
pub(super) fn report_lost_records(json: bool) {
    REPORTS_AT_ONCE.get_or_init(|| json);
}

/// Returns the failure for a record that could not be stored.
pub(super) fn record_lost() -> Failure {
    let text = "a record could not be stored, so the audit is incomplete (-v shows the reason)";
    Failure::failed(text).code("record_lost")
}

/// Returns whether a record could not be stored.
pub(super) fn lost_a_record() -> bool {
    RECORD_LOST.load(Ordering::Relaxed)
}

/// Logs a failure with its text. The text can contain private data, so it goes only to a log that a person requested.
pub(super) fn failure(failure: &tool_runtime::runner::Failure<'_>) {
    if failure.is_record_lost {
        RECORD_LOST.store(true, Ordering::Relaxed);
        if let Some(json) = REPORTS_AT_ONCE.get() {
            crate::report(&record_lost(), *json);
        }
    }
    if INSTALLED.load(Ordering::Relaxed) {
        let call = failure.call_id.map(tool_runtime::call::CallId::as_str);
        let (code, tool, run) = (failure.code, failure.tool, failure.run_id);
        tracing::error!(target: FAILURES, code, tool, call, run, error.r#type = failure.error_type, "{}", failure.text);
    }
}

/// Parses a level, or targets with levels such as `warn,tool_runtime=debug`. Returns `None` for the name of a file.
fn filter(text: &str) -> Option<Targets> {
    match level(text) {
        Some(level) => Some(at(level)),
        None => {
            let targets = text.contains('=').then(|| text.parse::<Targets>().ok()).flatten();
            targets.map(|targets| targets.with_target(QUOTES_URLS, LevelFilter::OFF))
        }
    }
}

/// Parses the name of a level. A number names a file, not a level.
fn level(word: &str) -> Option<LevelFilter> {
    word.starts_with(|first: char| first.is_ascii_alphabetic()).then(|| word.parse().ok()).flatten()
}

/// Returns the filter for a level.
fn at(level: LevelFilter) -> Targets {
    let noisy = NOISY.iter().map(|target| (*target, level.min(LevelFilter::WARN)));
    Targets::new()
        .with_default(level)
        .with_targets(noisy)
        .with_targets([METRICS, WITHOUT_TEXT, QUOTES_URLS].map(|one| (one, LevelFilter::OFF)))
}

/// Returns the filter for layers of an application. It excludes texts of failures, and libraries that see requests.
fn without_values() -> Targets {
    Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target(METRICS, LevelFilter::DEBUG)
        .with_targets(NOISY.iter().chain(&[FAILURES, QUOTES_URLS]).map(|target| (*target, LevelFilter::OFF)))
}

fn open(path: &Path) -> Result<Arc<Mutex<std::fs::File>>, Failure> {
    let file = private_file::options().append(true).open(path).map_err(|error| {
        let levels = "the levels are error, warn, info, debug, trace; a filter is TARGET=LEVEL, with commas between";
        Failure::usage(format!("cannot open the log file {}: {error} ({levels})", path.display()))
    })?;
    terminal::note_shared(path);
    Ok(Arc::new(Mutex::new(file)))
}

/// Writes each event as one line that is safe for a terminal.
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
        // Each event is one write. All line breaks inside it are escaped, and one is added at its end.
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

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn layers_of_applications_get_no_values() {
        let targets = without_values();
        assert!(!targets.would_enable(FAILURES, &Level::ERROR));
        assert!(!targets.would_enable("hyper::proto", &Level::ERROR));
        assert!(!targets.would_enable("sqlx_postgres::options::parse", &Level::ERROR));
        assert!(targets.would_enable(WITHOUT_TEXT, &Level::ERROR));
        assert!(targets.would_enable(METRICS, &Level::DEBUG));
        assert!(targets.would_enable("tool_runtime::agent::telemetry", &Level::INFO));
        assert!(!targets.would_enable("tool_runtime::runner::telemetry", &Level::DEBUG));
    }

    #[test]
    fn no_filter_shows_the_parameters_of_a_url() {
        for filtered in ["trace", "warn,tool_runtime=debug", "sqlx_postgres=trace", "sqlx_postgres::options=trace"] {
            let targets = filter(filtered).unwrap();
            assert!(!targets.would_enable("sqlx_postgres::options::parse", &Level::ERROR), "{filtered}");
        }
    }

    #[test]
    fn what_is_a_filter_and_what_is_a_file() {
        for filtered in ["off", "INFO", "trace", "warn,tool_runtime=debug", "tool_runtime=error"] {
            assert!(filter(filtered).is_some(), "{filtered}");
        }
        for file in ["operators.log", "1", "", "out=x.log", "a,b", "./info"] {
            assert!(filter(file).is_none(), "{file}");
        }
    }
}
