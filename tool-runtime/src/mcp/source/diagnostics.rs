//! [`Diagnostics`]: prepares texts of a server for operators: the end of its standard error, and the messages of its
//! errors.
//!
//! The texts are bounded. They contain no control characters except line ends, no invisible characters, and none of the
//! configured secrets that have at least four bytes. They appear in notes and in the log, never in a model's input.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::agent::http::Hidden;
use crate::mcp::source::config::Reach;
use crate::text::{cut, invisible_kind};

/// The maximum size of the stored standard error, in bytes, in addition to the longest secret.
const KEPT: usize = 4 * 1024;

/// The maximum number of lines that are shown.
const MAX_LINES: usize = 10;

/// The longest line that is shown, in bytes.
const MAX_LINE: usize = 400;

/// How long to wait for the end of the standard error after a process has exited.
const GRACE: Duration = Duration::from_secs(1);

pub(super) struct Diagnostics {
    /// The configured headers, and the environment of a process, whose names replace its values.
    pub(super) hidden: Hidden,
    tail: Mutex<Tail>,
    /// Whether the standard error of the last process has reached its end.
    has_ended: AtomicBool,
    ended: Notify,
}

#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Diagnostics {
    pub(super) fn new(reach: &Reach) -> Self {
        let mut hidden = Hidden::default();
        match reach {
            Reach::Command { env, .. } => {
                env.iter().for_each(|(name, value)| hidden.hide(value, format!("[{name}]")));
            }
            Reach::Url { headers, .. } => {
                headers.iter().for_each(|(_, value)| hidden.hide(value.expose(), "[header]"));
            }
        }
        Self { hidden, tail: Mutex::default(), has_ended: AtomicBool::new(true), ended: Notify::new() }
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the standard error of a process to its end, so that the process never blocks on it, and stores the last
    /// part.
    pub(super) async fn drain(self: Arc<Self>, mut stderr: impl AsyncRead + Unpin) {
        *self.tail() = Tail::default();
        self.has_ended.store(false, Ordering::Release);
        let most = KEPT + self.hidden.longest();
        let mut buffer = [0; 8 * 1024];
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            let mut tail = self.tail();
            tail.bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if let Some(beyond @ 1..) = tail.bytes.len().checked_sub(most) {
                tail.bytes.drain(..beyond);
                tail.is_cut = true;
            }
        }
        self.has_ended.store(true, Ordering::Release);
        self.ended.notify_waiters();
    }

    /// Waits a moment for the last output of a process that exited.
    pub(super) async fn settled(&self) {
        let ended = self.ended.notified();
        if !self.has_ended.load(Ordering::Acquire) {
            // A child process that the server started can outlive it and hold the stream open.
            let _ = timeout(GRACE, ended).await;
        }
    }

    /// Returns the last lines of the standard error; `None` if they have no visible text.
    pub(super) fn lines(&self) -> Option<String> {
        let text = {
            let tail = self.tail();
            let bytes = tail.bytes.as_slice();
            // The text may begin inside a secret, where masking does not find it, so drop the beginning.
            let whole = if tail.is_cut { self.hidden.longest() } else { 0 };
            let masked = self.hidden.mask(String::from_utf8_lossy(bytes).into_owned());
            let from = (whole..masked.len()).find(|at| masked.is_char_boundary(*at)).unwrap_or(masked.len());
            masked.get(from..).unwrap_or_default().to_owned()
        };
        let lines: Vec<_> = text.lines().map(|line| self.plain(line)).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(MAX_LINES)..).unwrap_or_default();
        (!last.is_empty()).then(|| last.join("\n"))
    }

    /// Returns one line of the server in a form that is safe to show to an operator.
    pub(super) fn plain(&self, line: &str) -> String {
        let mut plain = String::with_capacity(line.len());
        let mut rest = line.chars();
        while let Some(one) = rest.next() {
            match one {
                // Colour codes of a terminal: `ESC [ .. letter`.
                '\u{1b}' if rest.clone().next() == Some('[') => {
                    let _ = rest.by_ref().skip(1).find(|one| ('@'..='~').contains(one));
                }
                '\t' | '\n' => plain.push(' '),
                one if one.is_control() || invisible_kind(one).is_some() => {}
                one => plain.push(one),
            }
        }
        // Mask after the removal, because removed characters can have split a secret.
        let masked = self.hidden.mask(plain.trim().to_owned());
        let short = cut(&masked, MAX_LINE);
        if short.len() < masked.len() { format!("{short}..") } else { masked }
    }

    /// Returns the note with the last lines of the standard error below it.
    pub(super) fn noted(&self, mut note: String) -> String {
        if let Some(lines) = self.lines() {
            note.push_str("; the end of its standard error:");
            lines.lines().for_each(|line| note.extend(["\n  ", line]));
        }
        note
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn of(env: &[(&str, &str)], stderr: &[u8]) -> Option<String> {
        let env: BTreeMap<_, _> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let reach = Reach::Command { program: String::new(), args: Vec::new(), env, folder: None };
        let diagnostics = Arc::new(Diagnostics::new(&reach));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(Arc::clone(&diagnostics).drain(stderr));
        diagnostics.lines()
    }

    #[test]
    fn the_last_lines_are_plain_text() {
        assert_eq!(of(&[], b""), None);
        assert_eq!(of(&[], b"\n \n\x1b[0m\n"), None);
        assert_eq!(of(&[], b"\x1b[31mno \xffkey\x1b[0m\r\n\x07beep\tx\n").unwrap(), "no \u{fffd}key\nbeep x");
        assert_eq!(of(&[], "a\u{202e}b\u{200b}c".as_bytes()).unwrap(), "abc");
        let many = (0..1000).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
        let last = of(&[], many.as_bytes()).unwrap();
        assert!(last.starts_with("line 990\n") && last.ends_with("line 999"), "{last}");
    }

    #[test]
    fn nothing_that_a_server_writes_is_kept_beyond_its_bounds() {
        for endless in [vec![b'x'; 5 << 20], vec![0xff; 5 << 20], vec![0; 5 << 20], b"y\n".repeat(1 << 20)] {
            let shown = of(&[], &endless).unwrap_or_default();
            assert!(shown.len() <= MAX_LINES * (MAX_LINE + 3), "{} bytes", shown.len());
        }
    }

    /// Reading a gigabyte does not grow the stored part.
    #[tokio::test]
    async fn a_standard_error_without_an_end_costs_no_memory() {
        let reach = Reach::Command { program: String::new(), args: Vec::new(), env: BTreeMap::new(), folder: None };
        let diagnostics = Arc::new(Diagnostics::new(&reach));
        Arc::clone(&diagnostics).drain(tokio::io::repeat(b'x').take(1 << 30)).await;
        let kept = diagnostics.tail().bytes.capacity();
        assert!(kept <= 8 * KEPT, "{kept} bytes");
    }

    #[test]
    fn secrets_are_masked_also_where_they_are_cut() {
        let env = [("API_KEY", "sk-live-0123456789"), ("SHORT", "x"), ("PEM", "-----BEGIN\nabcdefghijkl\nEND")];
        let shown = of(&env, b"bad key sk-live-0123456789 x\nsk-live\x1b[0m-0123456789\nabcdefghijkl\n").unwrap();
        assert_eq!(shown, "bad key [API_KEY] x\n[API_KEY]\n[PEM]");
        // Wherever the text is cut, no part of the secret remains at the cut.
        for shift in 0..40 {
            let mut text = "sk-live-0123456789".repeat(1000).into_bytes();
            text.extend(vec![b'.'; KEPT - 200 + shift]);
            let shown = of(&env, &text).unwrap();
            assert!(!shown.contains("0123456789") && !shown.contains("789"), "{shift}: {}", cut(&shown, 60));
        }
    }
}
