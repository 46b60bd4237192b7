//! [`Call`]: the state of one open call in a UI stream, and the frames that it writes.

use crate::call::{self, Outcome, Suspension};
use crate::wire::ui::frame::{Frame, Part, Question};
use crate::wire::ui::keys::{self, Keys};

/// An open call.
pub(super) struct Call {
    pub(super) part: Part,
    pub(super) wait: Wait,
    keys: Keys,
    /// The argument text that was written.
    text: String,
    /// Whether all argument text was written.
    closed: bool,
    /// Whether an earlier response announced the call.
    earlier: bool,
}

/// The party that a call waits for.
pub(super) enum Wait {
    /// No party: the tool runs, or has not started.
    Nobody,
    /// A person or a client, whom an earlier response asked.
    Earlier(Earlier),
    /// A person: the id of the question, and its reason.
    Asked(String, Option<String>),
    /// No party any more: a person answered; `true` if they approved the call.
    Answered(bool),
    /// A client, which executes the call.
    Client,
}

/// The party that an earlier response asked.
pub(super) enum Earlier {
    /// The party is not known.
    Unknown,
    /// A person, with the id of the question.
    Person(String),
    Client,
}

impl Earlier {
    pub(super) fn of(suspension: Suspension, question: &call::Question) -> Self {
        match suspension {
            Suspension::Approval => Self::Person(question.to_string()),
            Suspension::Client => Self::Client,
        }
    }
}

type Write<'a> = &'a mut dyn FnMut(&Frame<'_>);

impl Call {
    pub(super) fn new(part: Part) -> Self {
        Self { part, wait: Wait::Nobody, keys: Keys::default(), text: String::new(), closed: false, earlier: false }
    }

    /// Creates a call that an earlier response announced with its name and arguments.
    pub(super) fn earlier(id: String, asked: Earlier) -> Self {
        let part = Part { index: 0, id, name: String::new(), dynamic: false };
        Self { wait: Wait::Earlier(asked), closed: true, earlier: true, ..Self::new(part) }
    }

    /// Whether an earlier response announced the call.
    pub(super) const fn is_earlier(&self) -> bool {
        self.earlier
    }

    /// Whether an earlier response announced the call, and this response has written nothing about it.
    pub(super) const fn is_unheard(&self) -> bool {
        matches!(self.wait, Wait::Earlier(_))
    }

    /// Prepares a call of an earlier response so that its question or client request can be written again. `in_place`
    /// allows its arguments to be written again, too.
    pub(super) fn reopen(&mut self, name: &str, in_place: bool) {
        if matches!(self.wait, Wait::Earlier(_)) {
            name.clone_into(&mut self.part.name);
            self.part.dynamic = is_discovered(name);
            self.wait = Wait::Nobody;
            self.closed = !in_place;
        }
    }

    /// Records that another client answered the question of an earlier response.
    pub(super) fn decided_elsewhere(&mut self) {
        if let Wait::Earlier(Earlier::Person(question)) = &mut self.wait {
            self.wait = Wait::Asked(std::mem::take(question), None);
        }
    }

    /// Whether the argument text has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the argument text so far is a complete JSON value.
    pub(super) fn is_complete(&self) -> bool {
        self.keys.is_complete()
    }

    /// Whether the call waits for a person or a client.
    pub(super) fn waits(&self) -> bool {
        matches!(self.wait, Wait::Earlier(_) | Wait::Asked(..) | Wait::Client)
    }

    /// Returns the open question. If the id of an earlier response's question is unknown, the id of the call is used.
    pub(super) fn question(&self) -> Option<Question<'_>> {
        match &self.wait {
            Wait::Asked(id, reason) => Some(Question { id, reason: reason.as_deref() }),
            Wait::Earlier(Earlier::Person(id)) => Some(Question { id, reason: None }),
            Wait::Earlier(Earlier::Unknown) => Some(Question { id: &self.part.id, reason: None }),
            Wait::Nobody | Wait::Earlier(Earlier::Client) | Wait::Answered(_) | Wait::Client => None,
        }
    }

    pub(super) fn delta(&mut self, text: &str, write: Write<'_>) {
        if self.closed {
            return;
        }
        let mut safe = String::new();
        self.keys.push(text, &mut safe);
        if !safe.is_empty() {
            write(&Frame::Arguments { call: &self.part, text: &safe });
            self.text.push_str(&safe);
        }
    }

    pub(super) fn arguments(&mut self, json: &str, write: Write<'_>) {
        if !std::mem::replace(&mut self.closed, true) {
            let streamed = !self.text.is_empty();
            self.text = String::new();
            write(&Frame::ArgumentsEnd { call: &self.part, input: &keys::whole(json), streamed, again: self.earlier });
        }
    }

    pub(super) fn unreadable(&mut self, message: &str, write: Write<'_>) {
        if !std::mem::replace(&mut self.closed, true) {
            let streamed = !std::mem::take(&mut self.text).is_empty();
            write(&Frame::ArgumentsError { call: &self.part, message, streamed, again: self.earlier });
        }
    }

    /// Ends the arguments with the text so far; no text means `{}`.
    pub(super) fn close(&mut self, write: Write<'_>) {
        if self.closed {
            return;
        }
        if self.text.is_empty() {
            self.arguments("{}", write);
        } else if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&self.text).is_ok() {
            let text = self.text.clone();
            self.arguments(&text, write);
        } else {
            self.unreadable("The arguments are not a JSON object", write);
        }
    }

    pub(super) fn hand_over(&mut self, write: Write<'_>) {
        self.close(write);
        // The client gets the call only after a person approved it.
        self.answer(true, None, write);
        self.wait = Wait::Client;
    }

    pub(super) fn ask(&mut self, approval: &str, reason: Option<&str>, write: Write<'_>) {
        // A call that waits again asks a new question.
        let asks = match &self.wait {
            Wait::Nobody => true,
            Wait::Asked(before, _) => before != approval,
            Wait::Earlier(_) | Wait::Answered(_) | Wait::Client => false,
        };
        if asks {
            self.close(write);
            self.wait = Wait::Asked(approval.to_owned(), reason.map(str::to_owned));
            write(&Frame::ApprovalRequest { call: &self.part, approval, reason });
        }
    }

    pub(super) fn answer(&mut self, approved: bool, reason: Option<&str>, write: Write<'_>) {
        if let Wait::Asked(approval, _) = &self.wait {
            write(&Frame::ApprovalResponse { approval, approved, reason });
            self.wait = Wait::Answered(approved);
        }
    }

    pub(super) fn result(&mut self, json: &str, is_error: bool, artifact: Option<&str>, write: Write<'_>) {
        self.close(write);
        // A question that is still open here was answered elsewhere. The call has a result, so it was approved.
        self.answer(true, None, write);
        let result = &*keys::whole(json);
        if is_error && matches!(self.wait, Wait::Answered(false)) {
            // The protocols allow a failure only for an approved call.
            write(&Frame::Denied { call: &self.part, result });
        } else if is_error {
            write(&Frame::Failure { call: &self.part, result, message: &message(result) });
        } else {
            write(&Frame::Result { call: &self.part, result, artifact });
        }
    }

    pub(super) fn denied(&mut self, json: &str, write: Write<'_>) {
        if matches!(self.wait, Wait::Nobody | Wait::Client | Wait::Answered(true)) {
            // Only a call with an open or denied question can show a refusal; other calls show a failure.
            self.result(json, true, None, write);
        } else {
            self.answer(false, None, write);
            write(&Frame::Denied { call: &self.part, result: &keys::whole(json) });
        }
    }
}

/// Whether the tool was discovered at run time, so that a UI has no specific type for it.
pub(super) fn is_discovered(name: &str) -> bool {
    name.starts_with("mcp__")
}

/// The message in the JSON of a failure.
fn message(result: &str) -> String {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum FailureText {
        Text(String),
        Object { message: String },
    }
    match serde_json::from_str(result) {
        Ok(FailureText::Text(message) | FailureText::Object { message }) => message,
        Err(_) => result.to_owned(),
    }
}

/// The JSON of a failure for a UI.
pub(super) fn failure(outcome: Outcome, message: &str) -> String {
    serde_json::json!({ "ok": false, "errorCode": outcome.code(), "message": message }).to_string()
}
