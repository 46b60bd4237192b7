//! Reads the messages of a posted body, except the fields that are ignored.

use crate::error::ParseError;
use crate::json::Tree;
use crate::wire::Message;
use crate::wire::history::{CallMessage, Media, Part, ResultMessage};
use crate::wire::ui::read::{ChatErrorKind, file, id};

/// The maximum number of parts of one message.
const MAX_PARTS: usize = 1024;

/// The maximum number of bytes of a decision's reason.
const REASON_BYTES: usize = 4 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
}

/// One message.
pub(super) struct Posted<'a> {
    pub(super) id: String,
    pub(super) role: Role,
    /// The text of a user's message.
    pub(super) text: String,
    /// The calls of an assistant's message.
    pub(super) calls: Vec<Call<'a>>,
    /// The files of the last message, if it is the user's.
    pub(super) files: Vec<Media>,
    /// The first part of a user's message that is neither text nor a file.
    pub(super) unsupported: Option<usize>,
}

/// One call in the client's copy of a message.
pub(super) struct Call<'a> {
    pub(super) part: usize,
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) claim: Claim<'a>,
}

/// The client's claim about a call.
pub(super) enum Claim<'a> {
    /// The client shows the call and has not answered it.
    Shown,
    Decided {
        question: &'a str,
        approved: bool,
        reason: Option<&'a str>,
    },
    /// The output as JSON text.
    Output(String),
    Failed,
}

impl Claim<'_> {
    pub(super) const fn is_result(&self) -> bool {
        matches!(self, Self::Output(_) | Self::Failed)
    }
}

pub(super) fn read<'a>(messages: &'a Tree<'_>) -> Result<Vec<Posted<'a>>, ParseError> {
    let messages = messages.as_array().filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| malformed("/messages".to_owned()))?;
    let last = messages.len() - 1;
    let read = |(at, message)| one(message, &format!("/messages/{at}"), at == last);
    messages.iter().enumerate().map(read).collect()
}

/// The messages as a history, each with its index in the body.
pub(super) fn history(posted: &[Posted<'_>]) -> Vec<(usize, Message)> {
    let mut history = Vec::new();
    for (at, message) in posted.iter().enumerate() {
        if message.role == Role::User {
            history.push((at, Message::user(message.text.as_str())));
            continue;
        }
        let calls = message.calls.iter().map(|call| Part::Call(CallMessage::new(call.id, call.name, "{}")));
        history.push((at, Message::Assistant(calls.collect())));
        let claimed = message.calls.iter().filter(|call| call.claim.is_result());
        history.extend(claimed.map(|call| (at, Message::Result(ResultMessage::new(call.id, "")))));
    }
    history
}

fn malformed(path: String) -> ParseError {
    ChatErrorKind::Malformed.at(path)
}

fn one<'a>(message: &'a Tree<'_>, path: &str, is_last: bool) -> Result<Posted<'a>, ParseError> {
    let role = match message.get("role").and_then(Tree::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err(ChatErrorKind::Role.at(format!("{path}/role"))),
    };
    let id = id(message, "id").ok_or_else(|| malformed(format!("{path}/id")))?;
    let parts = message.get("parts").and_then(Tree::as_array).ok_or_else(|| malformed(format!("{path}/parts")))?;
    if parts.len() > MAX_PARTS {
        return Err(ChatErrorKind::TooLarge.at(format!("{path}/parts")));
    }
    let mut posted = Posted { id, role, text: String::new(), calls: Vec::new(), files: Vec::new(), unsupported: None };
    for (at, part) in parts.iter().enumerate() {
        let path = format!("{path}/parts/{at}");
        let kind = part.get("type").and_then(Tree::as_str).ok_or_else(|| malformed(path.clone()))?;
        match (role, kind) {
            (Role::User, "text") => {
                let text = part.get("text").and_then(Tree::as_str).ok_or_else(|| malformed(path))?;
                if !posted.text.is_empty() {
                    posted.text.push('\n');
                }
                posted.text.push_str(text);
            }
            // The server's history already has the files of earlier messages.
            (Role::User, "file") if !is_last => {}
            (Role::User, "file") => file::add(&mut posted.files, posted_file(part, &path)?, &path)?,
            (Role::User, _) => {
                posted.unsupported.get_or_insert(at);
            }
            (Role::Assistant, kind) => {
                let name = match kind {
                    "dynamic-tool" => part.get("toolName").and_then(Tree::as_str),
                    kind => kind.strip_prefix("tool-"),
                };
                if kind == "dynamic-tool" || name.is_some() {
                    posted.calls.push(call(part, at, name, &path)?);
                }
            }
        }
    }
    Ok(posted)
}

fn posted_file(part: &Tree<'_>, path: &str) -> Result<Media, ParseError> {
    let text = |key: &str| part.get(key).and_then(Tree::as_str);
    let missing = |key: &str| malformed(format!("{path}/{key}"));
    let media_type = text("mediaType").ok_or_else(|| missing("mediaType"))?;
    let file = file::at_url(media_type, text("url").ok_or_else(|| missing("url"))?, path)?;
    Ok(match text("filename") {
        Some(name) => file.with_name(name),
        None => file,
    })
}

fn call<'a>(part: &'a Tree<'_>, at: usize, name: Option<&'a str>, path: &str) -> Result<Call<'a>, ParseError> {
    let text = |key: &str| part.get(key).and_then(Tree::as_str).filter(|text| !text.is_empty());
    let missing = |key: &str| malformed(format!("{path}/{key}"));
    let id = text("toolCallId").ok_or_else(|| missing("toolCallId"))?;
    let name = name.ok_or_else(|| missing("toolName"))?;
    let claim = match text("state").ok_or_else(|| missing("state"))? {
        "input-streaming" | "input-available" | "approval-requested" | "output-denied" => Claim::Shown,
        "approval-responded" => decided(part.get("approval").ok_or_else(|| missing("approval"))?, path)?,
        "output-available" => {
            let output = part.get("output").unwrap_or(&Tree::Null);
            Claim::Output(serde_json::to_string(output).map_err(|_| missing("output"))?)
        }
        "output-error" => Claim::Failed,
        _ => return Err(missing("state")),
    };
    Ok(Call { part: at, id, name, claim })
}

fn decided<'a>(approval: &'a Tree<'_>, path: &str) -> Result<Claim<'a>, ParseError> {
    let path = format!("{path}/approval");
    let question = approval.get("id").and_then(Tree::as_str).ok_or_else(|| malformed(format!("{path}/id")))?;
    let (approved, reason) = decision(approval, &path)?;
    Ok(Claim::Decided { question, approved, reason })
}

/// Reads a decision: whether the person approved, and their reason.
pub(super) fn decision<'a>(answer: &'a Tree<'_>, path: &str) -> Result<(bool, Option<&'a str>), ParseError> {
    let missing = |key: &str| malformed(format!("{path}/{key}"));
    let Some(Tree::Bool(approved)) = answer.get("approved") else { return Err(missing("approved")) };
    let reason = match answer.get("reason") {
        None | Some(Tree::Null) => None,
        Some(reason) => Some(reason.as_str().ok_or_else(|| missing("reason"))?),
    };
    if reason.is_some_and(|reason| reason.len() > REASON_BYTES) {
        return Err(ChatErrorKind::TooLarge.at(format!("{path}/reason")));
    }
    Ok((*approved, reason))
}
