//! Output for people and programs: data on stdout, messages on stderr.
//!
//! [`line`](fn@line), [`message`] and [`note`] write their text unchanged. Pass untrusted text (of models, tools,
//! files) through [`safe`], [`safe_lines`], [`safe_json`] or [`json`] first, because it can contain control sequences
//! for the terminal.

use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;
use tool_runtime::store::Finding;
use tool_runtime::wire::Loss;

use crate::exit::{Exit, Failure};
use crate::private_file;

/// Whether some output could not be written.
static LOST: AtomicBool = AtomicBool::new(false);
/// Whether the last line on stdout is unfinished.
static OPEN: AtomicBool = AtomicBool::new(false);
/// Whether a progress line is on the screen.
static PROGRESS: AtomicBool = AtomicBool::new(false);
/// The time of the last output.
static LAST: Mutex<Option<Instant>> = Mutex::new(None);
static STYLE: OnceLock<Style> = OnceLock::new();

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR`, `CLICOLOR=0` or `TERM=dumb` is set
    Auto,
    Always,
    Never,
}

/// The output settings of this process.
#[derive(Debug, Clone, Copy)]
struct Style {
    stdout: bool,
    stderr: bool,
    quiet: bool,
}

/// Sets the use of colours and notes. Call it once, before any output.
pub(super) fn configure(color: Color, quiet: bool) {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    // https://no-color.org and https://bixense.com/clicolors
    let wanted = |terminal: bool| match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto if set("NO_COLOR") => false,
        Color::Auto if set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
        Color::Auto => terminal && !is("TERM", "dumb") && !is("CLICOLOR", "0"),
    };
    let (stdout, stderr) = (wanted(std::io::stdout().is_terminal()), wanted(std::io::stderr().is_terminal()));
    let _ = STYLE.set(Style { stdout, stderr, quiet });
}

fn style() -> Style {
    STYLE.get().copied().unwrap_or(Style { stdout: false, stderr: false, quiet: false })
}

/// Returns the width for help and messages: `COLUMNS`, or the width of the terminal. `None` if neither is known.
pub(super) fn width() -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal = || {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(usize::from(width.0))
    };
    given.or_else(terminal).filter(|width| *width > 0).map(|width: usize| width.clamp(20, 500))
}

/// Returns the width of the terminal that shows stdout; `None` for a pipe or a file, whose readers need whole lines.
pub(super) fn columns() -> Option<usize> {
    std::io::stdout().is_terminal().then(width).flatten()
}

/// Whether stderr is a terminal that shows notes.
pub(super) fn is_watched() -> bool {
    !style().quiet && std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether some output could not be written, for any reason except a closed pipe.
pub(super) fn lost_output() -> bool {
    let flushed = std::io::stdout().flush();
    keep(flushed);
    LOST.load(Ordering::Relaxed)
}

/// Remembers that output could not be written. A closed pipe is not a failure.
fn keep(written: std::io::Result<()>) {
    if written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Writes a line of data.
pub fn line(text: &str) {
    clear_progress();
    let mut out = std::io::stdout().lock();
    keep(out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")));
    OPEN.store(false, Ordering::Relaxed);
}

/// Writes a piece of a line of data and shows it.
pub(super) fn part(text: &str) {
    clear_progress();
    let mut out = std::io::stdout().lock();
    keep(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    if !text.is_empty() {
        OPEN.store(!text.ends_with('\n'), Ordering::Relaxed);
    }
}

/// Finishes a line of data that [`part`] began.
pub(super) fn end_line() {
    if OPEN.load(Ordering::Relaxed) {
        part("\n");
    }
}

/// Writes bytes to stdout unchanged.
pub fn bytes(bytes: &[u8]) {
    keep(std::io::stdout().lock().write_all(bytes));
}

/// Writes a message to stderr, on its own line.
pub fn message(text: &str) {
    clear_progress();
    if OPEN.load(Ordering::Relaxed) && std::io::stdout().is_terminal() {
        end_line();
    }
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.write_all(b"\n"));
}

/// Writes a message to stderr, unless `--quiet` is set.
pub fn note(text: &str) {
    if !style().quiet {
        message(text);
    }
}

/// Prints a defect on stderr.
pub(super) fn broken(defect: &impl ToString) {
    let broken = tone(Tone::Bad, "broken:");
    message(&format!("{broken} {}", safe(&defect.to_string())));
}

/// Returns the items that could be read, and the exit of the command. Prints the other items on stderr; if there are
/// any, the command fails.
pub(super) fn readable<T>(found: Vec<Result<T, Finding>>) -> (Vec<T>, Exit) {
    let (mut read, mut exit) = (Vec::new(), Exit::Done);
    for found in found {
        match found {
            Ok(found) => read.push(found),
            Err(finding) => {
                broken(&finding);
                exit = Exit::Failed;
            }
        }
    }
    (read, exit)
}

/// Notes that other users may open a file.
pub(super) fn note_shared(path: &std::path::Path) {
    if let Some(mode) = private_file::shared_mode(path) {
        note(&safe_lines(&private_file::warning(path, mode)));
    }
}

/// The time since the last output or the last call of [`clear_progress`]; zero before the first.
pub(super) fn silence() -> Duration {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).map_or(Duration::ZERO, |last| last.elapsed())
}

fn touch() {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Shows a line on stderr that the next output replaces, unless the last line on stdout is unfinished. Call it only if
/// [`is_watched`].
pub(super) fn progress(text: &str) {
    if OPEN.load(Ordering::Relaxed) {
        return;
    }
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "\r\u{1b}[K{text}").and_then(|()| err.flush());
    PROGRESS.store(true, Ordering::Relaxed);
}

/// Removes the progress line, and restarts the time of [`silence`].
pub(super) fn clear_progress() {
    touch();
    if PROGRESS.swap(false, Ordering::Relaxed) {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(b"\r\x1b[K").and_then(|()| err.flush());
    }
}

/// Returns bold text for stdout.
pub(super) fn bold(text: &str) -> String {
    paint(style().stdout, "1", text)
}

/// The tone of a piece of a message on stderr.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tone {
    Good,
    Bad,
    Waiting,
    Faint,
}

/// Returns a piece of a message in the colour of its tone.
pub(super) fn tone(tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Good => "32",
        Tone::Bad => "31",
        Tone::Waiting => "33",
        Tone::Faint => "2",
    };
    paint(style().stderr, code, text)
}

fn paint(wanted: bool, code: &str, text: &str) -> String {
    if wanted { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Returns untrusted text that is safe for a terminal: control, bidirectional and invisible characters are escaped.
#[must_use]
pub fn safe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hazard(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Like [`safe`], but line breaks and tabs are kept.
#[must_use]
pub fn safe_lines(text: &str) -> String {
    text.split('\n')
        .map(|line| line.split('\t').map(safe).collect::<Vec<_>>().join("\t"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns JSON text that is safe for a terminal: hazardous characters become JSON escapes, so the value is the same.
#[must_use]
pub fn safe_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut units = [0; 2];
    for character in text.chars() {
        if is_hazard(character) && character != '\n' {
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Returns a value as JSON text for [`line`](fn@line), on one line and safe for a terminal.
///
/// # Errors
/// The value cannot be serialised.
pub fn json<T: Serialize>(value: &T) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(safe_json(&text))
}

/// Prints a note for each part of a definition or request that an encoder left out.
pub fn losses(losses: &[Loss]) {
    for loss in losses {
        let tool = loss.tool.as_deref().unwrap_or("the request");
        note(&format!("left out: {} at {} of {}", loss.what, loss.path, safe(tool)));
    }
}

/// Whether a character controls a terminal or is invisible: controls, marks without width or that change the direction
/// of text, line breaks, joiners, variation selectors, fillers and tags. The blank Braille pattern is allowed.
const fn is_hazard(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::{safe, safe_json};

    #[test]
    fn hazards_are_escaped_and_text_is_kept() {
        assert_eq!(safe("Grüße, 日本"), "Grüße, 日本");
        assert_eq!(safe("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(safe_json("\"\u{202e}\u{e0001}\""), r#""\u202e\udb40\udc01""#);
        assert_eq!(safe("x\u{202e}y\u{200b}z"), "x\\u{202e}y\\u{200b}z");
    }
}
