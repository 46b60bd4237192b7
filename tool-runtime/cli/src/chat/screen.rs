//! Prints the events of a conversation, for a person or for a program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tool_runtime::call::{CallId, JsonText};
use tool_runtime::store::PendingCall;
use tool_runtime::{Event, Outcome};

use crate::describe::ShownCall;
use crate::fold::{Room, fields};
use crate::terminal;
use crate::terminal::Tone;
use crate::text::Why;

/// The maximum number of lines of one value.
const LINES: usize = 12;

/// The arguments that a person has read before a decision, by call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Described(Arc<Mutex<HashMap<CallId, String>>>);

impl Described {
    /// Adds the arguments of a call that was described to the person.
    pub(super) fn add(&self, call: &PendingCall) {
        let arguments = ShownCall::of(call).arguments.to_owned();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(call.call_id.clone(), arguments);
    }

    fn has(&self, id: &CallId, arguments: Option<&JsonText>) -> bool {
        let described = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        described.get(id).is_some_and(|known| arguments.is_some_and(|arguments| arguments.get() == known))
    }
}

/// Prints the text of the model to stdout, and its calls to stderr.
pub(crate) struct Screen {
    /// The maximum number of lines of a value.
    lines: usize,
    /// Whether the text of the model is printed.
    shows_text: bool,
    /// The command that explains a refusal.
    why: Option<Why>,
    /// The arguments that are not printed again.
    described: Described,
}

impl Screen {
    /// Creates a screen. With `whole`, values of any length are printed completely.
    pub(crate) const fn new(whole: bool, described: Described) -> Self {
        Self { lines: if whole { usize::MAX } else { LINES }, shows_text: true, why: None, described }
    }

    /// Sets the command that is printed after a refusal of the policy.
    pub(crate) fn explained(mut self, why: Why) -> Self {
        self.why = Some(why);
        self
    }

    /// Omits the text of the model.
    pub(crate) const fn silent(mut self) -> Self {
        self.shows_text = false;
        self
    }

    /// Prints a JSON value as lines, if there is one. With `faint`, the lines have the colour of arguments.
    fn value(&self, json: Option<&JsonText>, faint: bool) {
        let Some(json) = json else { return };
        for line in fields(json.get(), Room::of_message(self.lines)) {
            terminal::note(&if faint { terminal::tone(Tone::Faint, &line) } else { line });
        }
    }

    /// Prints an event.
    pub(crate) fn show(&self, event: Event) {
        match event {
            Event::TextDelta { text, .. } if self.shows_text => terminal::part(&terminal::safe_lines(&text)),
            Event::ToolCallStart { name, .. } => {
                // The text of the turn ends with a line break, also in a file or a pipe.
                terminal::end_line();
                terminal::message(&format!("-> {}", terminal::safe(&name)));
            }
            // On a terminal, the progress line of `attend` already shows that the command waits.
            Event::Status { text, .. } if !terminal::is_watched() => terminal::note(&terminal::safe_lines(&text)),
            Event::ToolCallSuspended { name, outcome, prepared, .. } => {
                terminal::message(&ending(outcome, &name));
                self.value(prepared.as_ref(), false);
            }
            Event::ToolCallResult { id, name, arguments, outcome, value, error, left_out, .. } => {
                if !self.described.has(&id, arguments.as_ref()) {
                    self.value(arguments.as_ref(), true);
                }
                terminal::message(&ending(outcome, &name));
                self.value(value.as_ref(), false);
                if let Some(error) = error {
                    terminal::message(&format!("   {}", terminal::safe(&error.safe_message)));
                }
                if let Some(command) = self.why.as_ref().and_then(|why| why.command(outcome, &name)) {
                    terminal::note(&format!("   why: {command}"));
                }
                if !left_out.is_none() {
                    terminal::message(&format!("   {}", left_out.note()));
                }
            }
            Event::File { media_type, url, .. } => terminal::message(&file(&media_type, &url)),
            Event::Done { .. } => terminal::end_line(),
            _ => {}
        }
    }
}

/// Returns the line about the end of a call: `<- ok tasks__list_tasks`.
pub(super) fn ending(outcome: Outcome, name: &str) -> String {
    let tone = match outcome {
        Outcome::Ok => Tone::Good,
        Outcome::ApprovalRequired | Outcome::ClientRequired => Tone::Waiting,
        _ => Tone::Bad,
    };
    format!("<- {} {}", terminal::tone(tone, outcome.code()), terminal::safe(name))
}

/// Returns the line about a file: `   file: application/pdf, 812 bytes`, or its URL if the event has no content.
fn file(media_type: &str, url: &str) -> String {
    let media_type = terminal::safe(media_type);
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((_, data)) => format!("   file: {media_type}, {} bytes", decoded_len(data)),
        None => format!("   file: {media_type}, {}", terminal::safe(url)),
    }
}

/// Writes an event as a JSON line to stdout.
pub(crate) fn json_line(event: &Event) {
    if let Ok(line) = serde_json::to_string(event) {
        terminal::line(&terminal::safe_json(&line));
    }
}

/// Returns the number of bytes that a Base64 text encodes.
fn decoded_len(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}
