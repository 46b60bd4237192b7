//! Reads the `RunAgentInput` of AG-UI, except the fields that are ignored.

use std::collections::BTreeMap;

use crate::call::{CallId, ClientAnswer, Question};
use crate::error::ParseError;
use crate::json::{self, Limits, Tree};
use crate::wire::Message;
use crate::wire::history::{CallMessage, Media, Part, ResultMessage};
use crate::wire::ui::read::{ChatErrorKind, ChatReader, ChatRequest, check, check::ResultSource, decision, file, id};

/// The body that a client posts.
pub(super) struct Input<'a> {
    thread: String,
    run: String,
    /// The calls, results and user texts, each with the index of its message.
    pub(super) history: Vec<(usize, Message)>,
    /// The client's claims about results.
    results: BTreeMap<&'a str, Claim>,
    resume: Vec<Resume<'a>>,
    /// The text of the last message, if it is the user's. `files` are the files of this message.
    text: Option<String>,
    files: Vec<Media>,
}

/// A client's claim about the result of a call.
enum Claim {
    /// The output as JSON text.
    Output(String),
    Failed,
}

/// One answer to an interrupt.
struct Resume<'a> {
    /// The id of the call.
    id: &'a str,
    /// The question that the client answers; `None` for a call that the client executes.
    question: Option<Question>,
    /// The answer; `None` if the interrupt was cancelled.
    payload: Option<&'a Tree<'a>>,
}

pub(super) fn read<'a>(body: &'a Tree<'a>) -> Result<Input<'a>, ParseError> {
    let thread = id(body, "threadId").ok_or_else(|| malformed("/threadId"))?;
    let run = id(body, "runId").ok_or_else(|| malformed("/runId"))?;
    let resume = match body.get("resume") {
        None | Some(Tree::Null) => Vec::new(),
        Some(resume) => resume_entries(resume.as_array().ok_or_else(|| malformed("/resume"))?)?,
    };
    let mut input =
        Input { thread, run, history: Vec::new(), results: BTreeMap::new(), resume, text: None, files: Vec::new() };
    let messages = body.get("messages").and_then(Tree::as_array).ok_or_else(|| malformed("/messages"))?;
    if messages.len() > check::MAX_MESSAGES {
        return Err(ChatErrorKind::HistoryTooLarge.at("/messages"));
    }
    for (at, message) in messages.iter().enumerate() {
        input.take(at, message, at + 1 == messages.len())?;
    }
    Ok(input)
}

impl<'a> Input<'a> {
    fn take(&mut self, at: usize, message: &'a Tree<'a>, is_last: bool) -> Result<(), ParseError> {
        let path = format!("/messages/{at}");
        match message.get("role").and_then(Tree::as_str) {
            Some("user") => {
                let files = is_last.then_some(&mut self.files);
                let text = text(message.get("content"), &path, files)?;
                self.history.push((at, Message::user(text.as_str())));
                self.text = Some(text).filter(|text| is_last && !text.trim().is_empty());
            }
            Some("assistant") => self.calls(at, message, &path)?,
            Some("tool") => {
                let id = string(message, "toolCallId").ok_or_else(|| malformed(format!("{path}/toolCallId")))?;
                let claim = match message.get("error") {
                    None | Some(Tree::Null) => Claim::Output(json_text(&text(message.get("content"), &path, None)?)),
                    Some(_) => Claim::Failed,
                };
                self.results.insert(id, claim);
                self.history.push((at, Message::Result(ResultMessage::new(id, ""))));
            }
            // Data that the server streamed to the client, or that only the client shows.
            Some("reasoning" | "activity") => {}
            _ => return Err(ChatErrorKind::Role.at(format!("{path}/role"))),
        }
        Ok(())
    }

    fn calls(&mut self, at: usize, message: &'a Tree<'a>, path: &str) -> Result<(), ParseError> {
        let posted = match message.get("toolCalls") {
            None | Some(Tree::Null) => return Ok(()),
            Some(calls) => calls.as_array().ok_or_else(|| malformed(format!("{path}/toolCalls")))?,
        };
        let mut read = Vec::new();
        for (index, call) in posted.iter().enumerate() {
            let name = call.get("function").and_then(|function| string(function, "name"));
            let (Some(id), Some(name)) = (string(call, "id"), name) else {
                return Err(malformed(format!("{path}/toolCalls/{index}")));
            };
            read.push(Part::Call(CallMessage::new(id, name, "{}")));
        }
        // Clients may show a turn as several messages, and its results after the last of them.
        match self.history.last_mut() {
            Some((_, Message::Assistant(parts))) => parts.append(&mut read),
            _ if read.is_empty() => {}
            _ => self.history.push((at, Message::Assistant(read))),
        }
        Ok(())
    }

    /// The call ids in the request, in the order of the calls. Interrupts whose calls are not in the messages come
    /// last.
    fn named(&self) -> Vec<CallId> {
        let calls = self.history.iter().flat_map(|(_, message)| message.calls());
        let mut ids: Vec<CallId> = calls.map(|call| call.id.clone()).collect();
        for resume in &self.resume {
            if !ids.iter().any(|id| id.as_str() == resume.id) {
                ids.push(CallId::new(resume.id));
            }
        }
        ids
    }
}

impl ChatReader {
    /// Returns the answers and the text of a client whose messages passed the checks.
    pub(super) fn resumed(&self, mut input: Input<'_>) -> Result<ChatRequest, ParseError> {
        let (mut decided, mut answered, mut late) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for (at, resume) in input.resume.iter().enumerate() {
            let answer = self.answer(resume.id);
            let refused = |kind: ChatErrorKind| Err(kind.at(format!("/resume/{at}")));
            if answer.is_none() {
                return refused(ChatErrorKind::Forged);
            }
            let is_known = decided.contains_key(resume.id) || answered.contains_key(resume.id);
            if is_known || input.results.contains_key(resume.id) {
                return refused(ChatErrorKind::Duplicate);
            }
            match answer {
                Some(ResultSource::Ended) => {
                    late.extend(resume.question.as_ref().and_then(|_| resume.decision(at).ok()));
                }
                Some(ResultSource::Pending) => {
                    decided.insert(resume.id, resume.decision(at)?);
                }
                _ => {
                    answered.insert(resume.id, resume.answer(at)?);
                }
            }
        }
        let mut asked = self.issued.values().filter(|(_, answer)| *answer == ResultSource::Pending);
        if asked.any(|(call, _)| !decided.contains_key(call.id.as_str())) {
            return Err(ChatErrorKind::Interrupts.at("/resume"));
        }
        let mut request = ChatRequest::new(std::mem::take(&mut input.thread));
        request.run_id = Some(std::mem::take(&mut input.run));
        for id in input.named() {
            request.decisions.extend(decided.remove(id.as_str()));
            let claim = input.results.remove(id.as_str());
            request.answers.extend(match (self.answer(id.as_str()), answered.remove(id.as_str()), claim) {
                (Some(ResultSource::Client), Some(answer), _) => Some(answer),
                (Some(ResultSource::Client), None, Some(Claim::Output(json))) => Some(ClientAnswer::value(id, json)),
                (Some(ResultSource::Client), None, Some(Claim::Failed)) => Some(ClientAnswer::Failed { id }),
                _ => None,
            });
        }
        request.text = input.text;
        request.files = input.files;
        Ok(request.or_late(late))
    }
}

impl Resume<'_> {
    /// The question about a waiting call. The server sends every interrupt with a question, so one without it is
    /// forged.
    fn asked(&self, at: usize) -> Result<Question, ParseError> {
        let forged = || ChatErrorKind::Forged.at(format!("/resume/{at}"));
        self.question.clone().ok_or_else(forged)
    }

    /// The person's decision about a waiting call.
    fn decision(&self, at: usize) -> Result<(Question, bool, Option<String>), ParseError> {
        let Some(payload) = self.payload else { return Ok((self.asked(at)?, false, None)) };
        let path = format!("/resume/{at}/payload");
        // The person was asked about the original arguments, so edited ones are not approved.
        if payload.get("editedArgs").is_some() {
            return Err(malformed(format!("{path}/editedArgs")));
        }
        let (approved, reason) = decision(payload, &path)?;
        Ok((self.asked(at)?, approved, reason.map(str::to_owned)))
    }

    /// The client's answer for a call that it executes.
    fn answer(&self, at: usize) -> Result<ClientAnswer, ParseError> {
        let Some(payload) = self.payload else { return Ok(ClientAnswer::failed(self.id)) };
        let json = serde_json::to_string(payload).map_err(|_| malformed(format!("/resume/{at}/payload")))?;
        Ok(ClientAnswer::value(self.id, json))
    }
}

fn resume_entries<'a>(entries: &'a [Tree<'a>]) -> Result<Vec<Resume<'a>>, ParseError> {
    let entry = |(at, entry): (usize, &'a Tree<'a>)| {
        let missing = |key: &str| malformed(format!("/resume/{at}/{key}"));
        let id = string(entry, "interruptId").ok_or_else(|| missing("interruptId"))?;
        let question: Option<Question> = id.parse().ok();
        // The id of a question ends with the id of its call.
        let id = question.as_ref().and_then(|_| id.split_once('.')).map_or(id, |(_, call)| call);
        let payload = match string(entry, "status") {
            Some("resolved") => Some(entry.get("payload").unwrap_or(&Tree::Null)),
            Some("cancelled") => None,
            _ => return Err(missing("status")),
        };
        Ok(Resume { id, question, payload })
    };
    entries.iter().enumerate().map(entry).collect()
}

/// Returns the text of a message. Adds its files to `files`, if that is `Some`.
fn text(content: Option<&Tree<'_>>, path: &str, mut files: Option<&mut Vec<Media>>) -> Result<String, ParseError> {
    let Some(content) = content else { return Err(malformed(format!("{path}/content"))) };
    if let Some(text) = content.as_str() {
        return Ok(text.to_owned());
    }
    let parts = content.as_array().ok_or_else(|| malformed(format!("{path}/content")))?;
    let mut texts = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let path = format!("{path}/content/{at}");
        match part.get("type").and_then(Tree::as_str) {
            Some("text") => texts.push(part.get("text").and_then(Tree::as_str).ok_or_else(|| malformed(path))?),
            Some("image" | "audio" | "video" | "document") => {
                if let Some(files) = &mut files {
                    file::add(files, posted_file(part, &path)?, &path)?;
                }
            }
            Some(_) if files.is_some() => return Err(ChatErrorKind::Part.at(path)),
            Some(_) => {}
            None => return Err(malformed(path)),
        }
    }
    Ok(texts.join("\n"))
}

/// A file in the body or at a URL. A provider's file id is refused, because it could belong to another user's file.
fn posted_file(part: &Tree<'_>, path: &str) -> Result<Media, ParseError> {
    let path = format!("{path}/source");
    let source = part.get("source").ok_or_else(|| malformed(path.as_str()))?;
    let missing = |key: &str| malformed(format!("{path}/{key}"));
    let value = string(source, "value").ok_or_else(|| missing("value"))?;
    let media_type = || string(source, "mimeType").ok_or_else(|| missing("mimeType"));
    match string(source, "type") {
        Some("data") => file::in_base64(media_type()?, value, &path),
        Some("url") => file::at_url(media_type()?, value, &path),
        _ => Err(ChatErrorKind::Part.at(path)),
    }
}

/// Results of client tools are text: JSON text is read as its value, other text as a string.
fn json_text(text: &str) -> String {
    let limits = Limits { bytes: text.len(), ..Limits::default() };
    let value = json::parse_value(text, &limits).ok().and_then(|value| serde_json::to_string(&value).ok());
    value.unwrap_or_else(|| serde_json::Value::from(text).to_string())
}

fn string<'a>(object: &'a Tree<'_>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Tree::as_str).filter(|text| !text.is_empty())
}

fn malformed(path: impl Into<Box<str>>) -> ParseError {
    ChatErrorKind::Malformed.at(path)
}
