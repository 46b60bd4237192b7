//! [`Frame`]: one step of a stream in valid order, and the functions that write its JSON.

use crate::wire::Usage;

/// The place of a call, text or reasoning in the message.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The index among the parts of the message.
    pub(super) index: usize,
    /// The id of the call, or of the text or reasoning.
    pub(super) id: String,
    /// The name of the tool; empty for text and reasoning.
    pub(super) name: String,
    /// Whether the tool was discovered at run time.
    pub(super) dynamic: bool,
}

/// Whether a part is text or reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    Text,
    Reasoning,
}

/// The ids that the client chose for its request.
#[derive(Debug, Default)]
pub(super) struct RunIds {
    pub(super) thread: String,
    pub(super) run: String,
}

/// A call that stays open after the message.
#[derive(Debug)]
pub(super) struct Open<'a> {
    pub(super) call: &'a Part,
    /// The question for a person; `None` if the client executes the call.
    pub(super) question: Option<Question<'a>>,
}

/// A question about a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) id: &'a str,
    pub(super) reason: Option<&'a str>,
}

/// A frame of a protocol. Frames come in valid order. Their JSON texts have no line breaks and no key that clients
/// refuse.
#[derive(Debug, Clone, Copy)]
pub(super) enum Frame<'a> {
    MessageStart {
        id: &'a str,
        run: &'a RunIds,
    },
    StepStart {
        id: &'a str,
    },
    WordsStart(Words, &'a Part),
    Words {
        words: Words,
        part: &'a Part,
        text: &'a str,
    },
    WordsEnd(Words, &'a Part),
    /// `url` is `http` or `https`, or `None`.
    Source {
        index: usize,
        id: &'a str,
        url: Option<&'a str>,
        title: Option<&'a str>,
    },
    /// `url` is a data URL, `http` or `https`.
    File {
        index: usize,
        media_type: &'a str,
        url: &'a str,
    },
    Data {
        index: usize,
        name: &'a str,
        id: Option<&'a str>,
        value: &'a str,
    },
    /// `carrier` is the id of the message that the call belongs to, in protocols whose steps have several messages.
    CallStart {
        call: &'a Part,
        parent: Option<&'a str>,
        carrier: Option<&'a str>,
    },
    Arguments {
        call: &'a Part,
        text: &'a str,
    },
    /// If `streamed`, the arguments were written before and are not written again. If `again`, an earlier response
    /// ended the arguments, and these replace them.
    ArgumentsEnd {
        call: &'a Part,
        input: &'a str,
        streamed: bool,
        again: bool,
    },
    ArgumentsError {
        call: &'a Part,
        message: &'a str,
        streamed: bool,
        again: bool,
    },
    ApprovalRequest {
        call: &'a Part,
        approval: &'a str,
        reason: Option<&'a str>,
    },
    ApprovalResponse {
        approval: &'a str,
        approved: bool,
        reason: Option<&'a str>,
    },
    Result {
        call: &'a Part,
        result: &'a str,
        artifact: Option<&'a str>,
    },
    Failure {
        call: &'a Part,
        result: &'a str,
        message: &'a str,
    },
    Denied {
        call: &'a Part,
        result: &'a str,
    },
    Status {
        text: &'a str,
    },
    /// A call that stays open after the message.
    Left(&'a Part),
    StepFinish {
        reason: &'a str,
        usage: Usage,
        continued: bool,
    },
    /// `code` is the original finish reason, `reason` its spelling in the protocols.
    Finish {
        reason: &'a str,
        code: &'a str,
        usage: Usage,
        run: &'a RunIds,
        open: &'a [Open<'a>],
    },
    Error {
        code: Option<&'a str>,
        message: &'a str,
    },
    End,
}

/// The value of a member.
#[derive(Debug, Clone, Copy)]
pub(super) enum Json<'a> {
    Text(&'a str),
    /// Left out if it is `None`.
    Optional(Option<&'a str>),
    /// JSON text.
    Raw(&'a str),
    OptionalRaw(Option<&'a str>),
    Bool(bool),
    /// `true`; left out if it is `false`.
    Flag(bool),
    /// The path of a part; `None` is the path of the message.
    Path(Option<usize>),
    Usage(Usage),
    /// A list of JSON texts.
    List(&'a [String]),
}

/// Writes an object with its members in order.
pub(super) fn object(out: &mut Vec<u8>, members: &[(&str, Json<'_>)]) {
    let mut before = b'{';
    for (name, value) in members {
        if matches!(value, Json::Optional(None) | Json::OptionalRaw(None) | Json::Flag(false)) {
            continue;
        }
        out.push(std::mem::replace(&mut before, b','));
        text(out, name);
        out.push(b':');
        match *value {
            Json::Text(value) | Json::Optional(Some(value)) => text(out, value),
            Json::Raw(value) | Json::OptionalRaw(Some(value)) => out.extend_from_slice(value.as_bytes()),
            Json::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Json::Path(index) => {
                let index = index.map(|index| index.to_string()).unwrap_or_default();
                out.extend_from_slice(format!("[{index}]").as_bytes());
            }
            Json::Usage(usage) => {
                let (input, output) = (usage.input_tokens, usage.output_tokens);
                out.extend_from_slice(format!(r#"{{"inputTokens":{input},"outputTokens":{output}}}"#).as_bytes());
            }
            Json::List(items) => out.extend_from_slice(format!("[{}]", items.join(",")).as_bytes()),
            Json::Flag(_) => out.extend_from_slice(b"true"),
            Json::Optional(None) | Json::OptionalRaw(None) => {}
        }
    }
    if before == b'{' {
        out.push(before);
    }
    out.push(b'}');
}

/// Returns an object with its members in order, as text.
pub(super) fn json(members: &[(&str, Json<'_>)]) -> String {
    let mut out = Vec::new();
    object(&mut out, members);
    // The strings and JSON texts are UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

/// Writes a JSON string.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// The data name for sources without a URL, in protocols whose sources require one.
pub(super) const SOURCE: &str = "source-document";

/// A source without a URL, as data.
pub(super) fn document(id: &str, title: Option<&str>) -> String {
    json(&[("id", Json::Text(id)), ("title", Json::Optional(title))])
}

/// Writes one server-sent event with its name in `type`.
pub(super) fn named(out: &mut Vec<u8>, name: &str, members: &[(&str, Json<'_>)]) {
    let mut all = vec![("type", Json::Text(name))];
    all.extend_from_slice(members);
    sse(out, &all);
}

/// Writes one server-sent event.
pub(super) fn sse(out: &mut Vec<u8>, members: &[(&str, Json<'_>)]) {
    out.extend_from_slice(b"data: ");
    object(out, members);
    out.extend_from_slice(b"\n\n");
}

/// The end of a stream of server-sent events.
pub(super) const DONE: &[u8] = b"data: [DONE]\n\n";

/// The finish reason of a message whose calls wait for a person or a client.
pub(super) const TOOL_CALLS: &str = "tool-calls";

/// Returns the finish reason in the spelling of the protocols, with dashes. All protocols with finish reasons accept
/// it.
pub(super) fn reason_word(reason: &str) -> &'static str {
    match reason {
        "stop" | "answered" => "stop",
        "length" => "length",
        "tool-calls" | "tool_calls" | "client_required" | "approval_required" => TOOL_CALLS,
        "content-filter" | "content_filter" | "refusal" => "content-filter",
        "error" => "error",
        _ => "other",
    }
}
