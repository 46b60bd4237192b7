//! Writing to people: stdout for data, stderr for messages, and nothing that a terminal would obey.

use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Data was lost on its way out.
static LOST: AtomicBool = AtomicBool::new(false);

/// Some output could not be written, and not because its reader had enough.
pub(super) fn lost_output() -> bool {
    let flushed = std::io::stdout().flush();
    keep(flushed);
    LOST.load(Ordering::Relaxed)
}

/// A closed pipe ends the output, not the program; anything else is a failure of the whole command.
fn keep(written: std::io::Result<()>) {
    if written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Writes a line of data.
pub(super) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    keep(out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")));
}

/// Writes a part of a line of data, at once.
pub(super) fn part(text: &str) {
    let mut out = std::io::stdout().lock();
    keep(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Writes bytes for a program as they are.
pub(super) fn bytes(bytes: &[u8]) {
    keep(std::io::stdout().lock().write_all(bytes));
}

/// Writes a message for the person at the keyboard.
pub(super) fn message(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.write_all(b"\n"));
}

/// Emphasis, on a terminal only.
pub(super) fn bold(text: &str) -> String {
    if std::io::stdout().is_terminal() { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Text from elsewhere as a terminal may show it: control, bidirectional and invisible characters are escaped.
pub(super) fn safe(text: &str) -> String {
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
pub(super) fn safe_lines(text: &str) -> String {
    text.split('\n')
        .map(|line| line.split('\t').map(safe).collect::<Vec<_>>().join("\t"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// JSON text whose strings hold no hazard raw: they are written as JSON escapes, so the value is the same.
pub(super) fn safe_json(text: &str) -> String {
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

/// Characters that a terminal obeys or that a reader does not see.
fn is_hazard(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
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
