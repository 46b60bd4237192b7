//! Tests the recording in the guide, `docs/src/chat.svg`: the program on a terminal asks before it sends a mail.
//!
//! `REFRESH_RECORDING=1 cargo test -p toolbox --test cli picture` writes it again.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use crate::endpoint::{Endpoint, call, text};
use crate::rig::Rig;
use crate::terminal::Session;

const SHOWN: &str = "A conversation with the program toolbox: the model wants to send a mail, the program shows the recipient, \
the subject and the body and asks, the person types y, the mail is sent, and the model answers.";

/// The width and the height of a character cell, in pixels.
const CELL: (f64, f64) = (8.4, 19.0);
const COLUMNS: usize = 100;

#[test]
fn the_recording_of_the_guide_is_current() {
    let mail = json!({
        "to": ["bob@example.org"], "subject": "Plan for Friday",
        "body": "The plan is in plan.md. Shall we go through it on Friday at ten?",
    });
    let endpoint = Endpoint::new(vec![
        call("call_1", "mail__send_email", &mail),
        text("I sent Bob the mail. It asks him whether Friday at ten suits him."),
    ]);
    let mut rig = Rig::new();
    // The terminal has no cursor movements, so no progress line is shown.
    rig.set("TERM", "dumb").set("TOOLBOX_MODEL_URL", &endpoint.url).set("TOOLBOX_MODEL", "example-model");
    let mut session = Session::start(&rig, &["--color", "always", "chat", "--no-stream"]);
    for (question, typed) in [
        ("leaves\r\n> ", "Ask Bob whether we can go through the plan on Friday.\r"),
        ("?: ", "y\r"),
        ("suits him.\r\n> ", "/quit\r"),
    ] {
        session.expect(question);
        session.mark();
        session.type_in(typed);
    }
    let marks = session.marks();
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    assert_eq!(rig.mails(), 1);

    let mut screen = Screen::default();
    let mut from = 0;
    for (step, to) in marks.into_iter().chain([seen.len()]).enumerate() {
        screen.step = step;
        screen.write(&steady(&seen[from..to], &endpoint.url));
        from = to;
    }
    let drawn = screen.svg();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/chat.svg");
    if std::env::var_os("REFRESH_RECORDING").is_some() {
        std::fs::write(&file, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == drawn, "docs/src/chat.svg is old; REFRESH_RECORDING=1 writes it:\n{drawn}");
}

/// Replaces the parts that differ between runs: the port, the time of expiry and the id of the conversation.
fn steady(text: &str, url: &str) -> String {
    let mut steady = text.replace(url, "http://127.0.0.1:11434");
    for (before, value) in [("; until ", "2026-01-02T09:00:00Z"), ("--conversation ", "5b2f9c1e")] {
        if let Some(at) = steady.find(before).map(|at| at + before.len()) {
            steady.replace_range(at..at + value.len(), value);
        }
    }
    steady
}

/// Lines of characters, each with its colour and the step in which it was written.
#[derive(Default)]
struct Screen {
    lines: Vec<Vec<Cell>>,
    column: usize,
    class: &'static str,
    step: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Cell {
    letter: char,
    class: &'static str,
    step: usize,
}

impl Screen {
    fn write(&mut self, text: &str) {
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\n' => self.lines.push(Vec::new()),
                '\r' => self.column = 0,
                '\u{1b}' => {
                    assert_eq!(letters.next(), Some('['), "a sequence that is not drawn: {text:?}");
                    let code: String = letters.by_ref().take_while(|letter| *letter != 'm').collect();
                    self.class = match &*code {
                        "0" => "",
                        "1" => "b",
                        "2" => "d",
                        "31" => "r",
                        "32" => "g",
                        "33" => "y",
                        other => panic!("a style that is not drawn: {other}"),
                    };
                }
                _ => self.put(letter),
            }
        }
    }

    fn put(&mut self, letter: char) {
        if self.lines.is_empty() {
            self.lines.push(Vec::new());
        }
        if self.column == COLUMNS {
            self.lines.push(Vec::new());
            self.column = 0;
        }
        let cell = Cell { letter, class: self.class, step: self.step };
        let line = self.lines.last_mut().unwrap();
        line.resize(line.len().max(self.column + 1), Cell { letter: ' ', ..cell });
        line[self.column] = cell;
        self.column += 1;
    }

    /// Animates the steps, two seconds each, unless the viewer prefers reduced motion.
    #[allow(clippy::cast_precision_loss, reason = "a screen has some hundred cells")]
    fn svg(&self) -> String {
        let lines = &self.lines[..self.lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1)];
        let (wide, high) = (CELL.0 * COLUMNS as f64 + 32.0, CELL.1 * lines.len() as f64 + 30.0);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide:.0}\" height=\"{high:.0}\" \
             viewBox=\"0 0 {wide:.0} {high:.0}\" role=\"img\">\n<title>{SHOWN}</title>\n<style>\n\
             text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #e6e6e6; white-space: pre; }}\n\
             .b {{ font-weight: bold; }} .d {{ fill: #9a9a9a; }} .r {{ fill: #ff7b72; }} .g {{ fill: #7ee787; }} .y {{ fill: #f2cc60; }}\n\
             @media (prefers-reduced-motion: no-preference) {{\n\
             .s {{ animation: appear 0.1s both; }} .s1 {{ animation-delay: 2s; }} .s2 {{ animation-delay: 4s; }} .s3 {{ animation-delay: 6s; }}\n\
             @keyframes appear {{ from {{ opacity: 0; }} }}\n}}\n</style>\n\
             <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1b1f24\"/>\n"
        );
        for (row, line) in lines.iter().enumerate() {
            let y = CELL.1 * row as f64 + 29.0;
            let mut column = 0;
            for run in line.chunk_by(|one, other| (one.class, one.step) == (other.class, other.step)) {
                let text: String = run.iter().map(|cell| cell.letter).collect();
                let (x, length) = (16.0 + CELL.0 * column as f64, CELL.0 * run.len() as f64);
                column += run.len();
                if text.trim().is_empty() {
                    continue;
                }
                let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let Cell { class, step, .. } = run[0];
                let class = format!("{class} s s{step}");
                let _ = writeln!(
                    svg,
                    "<text class=\"{}\" x=\"{x:.1}\" y=\"{y:.0}\" textLength=\"{length:.1}\">{text}</text>",
                    class.trim_start()
                );
            }
        }
        svg + "</svg>\n"
    }
}
