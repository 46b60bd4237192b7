//! Reads lines from the keyboard, with editing if the terminal supports it.

use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Behavior, Config, Editor};

use crate::terminal;

/// A line of input from the keyboard.
pub(crate) enum Line {
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or a closed terminal.
    End,
}

/// The keyboard with the prompts of this session.
#[derive(Default)]
pub(crate) struct Keyboard {
    editor: Option<Editor<(), MemHistory>>,
}

impl Keyboard {
    /// Reads one line. It holds no lock of stdin, stdout or stderr while it waits.
    pub(crate) async fn line(&mut self, question: &str) -> Line {
        self.edit(question, "").await
    }

    /// Reads one line that already contains `initial`.
    pub(crate) async fn edit(&mut self, question: &str, initial: &str) -> Line {
        terminal::end_line();
        let Some(mut editor) = self.editor.take().or_else(editor) else { return Line::End };
        let (question, initial) = (question.to_owned(), initial.to_owned());
        // Without an editor, Ctrl-C is a signal. The editor replaces the signal handler while it reads, and then
        // restores the handler that it found. The first poll installs our handler, so it must come before the editor.
        let mut interrupt = pin!(tokio::signal::ctrl_c());
        if poll_fn(|cx| Poll::Ready(interrupt.as_mut().poll(cx).is_ready())).await {
            self.editor = Some(editor);
            return Line::Interrupted;
        }
        let mut reading = tokio::task::spawn_blocking(move || {
            let read = editor.readline_with_initial(&question, (&initial, ""));
            (editor, read)
        });
        let read = poll_fn(|cx| match Pin::new(&mut reading).poll(cx) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending => interrupt.as_mut().poll(cx).map(|_| None),
        });
        let (editor, read) = match read.await {
            Some(Ok(done)) => done,
            Some(Err(_)) => return Line::End,
            None => return Line::Interrupted,
        };
        self.editor = Some(editor);
        match read {
            Ok(text) => Line::Text(text),
            Err(ReadlineError::Interrupted) => Line::Interrupted,
            Err(_) => Line::End,
        }
    }

    /// Adds a line to the history of the arrow keys.
    pub(crate) fn remember(&mut self, line: &str) {
        if let Some(editor) = &mut self.editor {
            let _ = editor.add_history_entry(line);
        }
    }
}

fn editor() -> Option<Editor<(), MemHistory>> {
    // `PreferTerm` writes to the terminal device, so that a redirected stdout gets data only.
    let config = Config::builder().behavior(Behavior::PreferTerm).auto_add_history(false).build();
    Editor::with_history(config.clone(), MemHistory::with_config(&config)).ok()
}
