//! [`Frame`]: one step of a stream that is in order already, and how its JSON is written.

use crate::wire::Usage;

/// The place of a call or of words in the message.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Its index among the parts of the message.
    pub(super) index: usize,
    /// The id of the call or of the words.
    pub(super) id: String,
    /// The name of the tool.
    pub(super) name: String,
    /// The tool was discovered at run time.
    pub(super) dynamic: bool,
}

/// The kind of the words of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    Text,
    Reasoning,
}

/// The ids that the client gave to its request.
#[derive(Debug, Default)]
pub(super) struct RunIds {
    pub(super) thread: String,
    pub(super) run: String,
}

/// A call that stays open after the message.
#[derive(Debug)]
pub(super) struct Open<'a> {
    pub(super) call: &'a Part,
    /// The question that a person has to answer.
    pub(super) question: Option<Question<'a>>,
}

/// A question about a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) id: &'a str,
    pub(super) reason: Option<&'a str>,
}

/// A frame of a protocol. Comes in a valid order only; JSON texts are in one line and hold no refused key.
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
    /// The address is `http` or `https`, or there is none.
    Source {
        index: usize,
        id: &'a str,
        url: Option<&'a str>,
        title: Option<&'a str>,
    },
    /// The address is a data URL, `http` or `https`.
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
    /// `carrier` is the message that the call belongs to, where messages of a step have ids.
    CallStart {
        call: &'a Part,
        parent: Option<&'a str>,
        carrier: Option<&'a str>,
    },
    Arguments {
        call: &'a Part,
        text: &'a str,
    },
    /// With `streamed` their text was written before and is not written again. With `again` an earlier response ended
    /// the arguments of the call, and these take their place.
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
    /// The call stays open after the message.
    Left(&'a Part),
    StepFinish {
        reason: &'a str,
        usage: Usage,
        continued: bool,
    },
    /// `code` is the original reason, `reason` the protocols' word for it.
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

/// A member's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Json<'a> {
    Text(&'a str),
    /// Left out when there is none.
    Optional(Option<&'a str>),
    /// JSON text.
    Raw(&'a str),
    OptionalRaw(Option<&'a str>),
    Bool(bool),
    /// `true`; left out if it is not set.
    Flag(bool),
    /// The path of a part; of the message itself when there is none.
    Path(Option<usize>),
    Usage(Usage),
    /// A list of JSON texts.
    List(&'a [String]),
}

/// Writes an object in the order of the members.
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

/// Returns an object in the order of the members.
pub(super) fn json(members: &[(&str, Json<'_>)]) -> String {
    let mut out = Vec::new();
    object(&mut out, members);
    // Strings and JSON texts are UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

/// Writes a JSON string.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// The name of data that describes a source without an address, for protocols whose sources have one.
pub(super) const SOURCE: &str = "source-document";

/// A source without an address, as data.
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

/// The finish reason of a turn that waits for a person or a client.
pub(super) const TOOL_CALLS: &str = "tool-calls";

/// Returns the finish reason in the spelling of the protocols, with dashes; all three accept these.
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
