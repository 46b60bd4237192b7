//! Keeps the arguments of a call as its client wrote them.
//!
//! `rmcp` parses a message before the gate sees the call. Its parser keeps only the last of repeated keys, and rounds
//! numbers. The gate must refuse repeated keys, and keep all digits. The arguments therefore pass through `rmcp` as one
//! string, under a key that no client knows, and the gate parses that string.

use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};

use crate::mcp::scan::IdScan;

/// The maximum length of a message on a stream of lines, in bytes. Over HTTP, `HttpOptions::max_body` is the limit.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// The key of the string with the arguments. It is random, because a client that knew it could hide arguments from
/// parsers in front of this server.
static KEY: LazyLock<String> = LazyLock::new(|| uuid::Uuid::new_v4().to_string());

/// The size of one read, in bytes.
const CHUNK: usize = 16 * 1024;

/// Returns a message with the arguments of its call as one string. `None` if the message does not call a tool, or has
/// no object of arguments.
pub(super) fn carried(message: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: &'a RawValue,
    }
    let message = std::str::from_utf8(message).ok()?;
    let Message { method, params } = serde_json::from_str(message).ok()?;
    if method != "tools/call" {
        return None;
    }
    let Params { arguments } = serde_json::from_str(params.get()).ok()?;
    let arguments = arguments.get();
    let at = (arguments.as_ptr() as usize).checked_sub(message.as_ptr() as usize)?;
    let (before, after) = (message.get(..at)?, message.get(at + arguments.len()..)?);
    arguments.starts_with('{').then(|| format!("{before}{}{after}", json!({KEY.as_str(): arguments})))
}

/// Returns the maximum length of a message of `bytes` bytes after [`carried`]. In a string, a quote or a backslash
/// takes two bytes.
pub(super) const fn longest(bytes: usize) -> usize {
    bytes.saturating_mul(2).saturating_add(1024)
}

/// Returns the arguments as the client wrote them, or as `rmcp` parsed them if they did not pass through [`carried`].
/// `None` if they cannot be serialized.
pub(super) fn arguments(mut arguments: JsonObject) -> Option<String> {
    match arguments.remove(KEY.as_str()) {
        Some(Value::String(text)) => Some(text),
        _ => serde_json::to_string(&arguments).ok(),
    }
}

/// Whether [`Lines`] put this method in place of a request that was too long. No client knows the method.
pub(super) fn is_too_long(method: &str) -> bool {
    method == KEY.as_str()
}

/// A stream of messages, one on each line. It applies [`carried`] to each message. It replaces a request that is too
/// long by a request with a [special method](is_too_long), and drops other lines that are too long.
pub(super) struct Lines<R> {
    stream: R,
    buffer: Box<[u8]>,
    /// The current line, up to the last byte that was read.
    line: Vec<u8>,
    /// The converted bytes, and the index of the next one to return.
    ready: (Vec<u8>, usize),
    /// The scan for the id of the current line, if the line is too long.
    long: Option<IdScan>,
    is_over: bool,
}

impl<R> Lines<R> {
    pub(super) fn new(stream: R) -> Self {
        let (line, ready) = (Vec::new(), (Vec::new(), 0));
        Self { stream, buffer: vec![0; CHUNK].into(), line, ready, long: None, is_over: false }
    }

    /// Handles the bytes that were read from the stream.
    fn take(&mut self, count: usize) {
        let read = self.buffer.get(..count).unwrap_or_default();
        self.is_over = read.is_empty();
        let out = &mut self.ready.0;
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            match &mut self.long {
                Some(scan) => scan.push(part),
                None => self.line.extend_from_slice(part),
            }
            let is_end = part.last() == Some(&b'\n');
            if self.line.len() > MAX_MESSAGE_BYTES + usize::from(is_end) {
                let mut scan = IdScan::default();
                scan.push(&self.line);
                self.long = Some(scan);
                self.line.clear();
            }
            if is_end {
                match (self.long.take(), carried(&self.line)) {
                    (Some(scan), _) => {
                        if let Some(id) = scan.request_id() {
                            // `id` is JSON text as the client wrote it, so it is inserted unchanged.
                            let refused = json!({"jsonrpc": "2.0", "method": KEY.as_str()}).to_string();
                            out.extend_from_slice(refused.replacen('{', &format!("{{\"id\":{id},"), 1).as_bytes());
                            out.push(b'\n');
                        }
                    }
                    (None, Some(line)) => out.extend_from_slice(line.as_bytes()),
                    (None, None) => out.append(&mut self.line),
                }
                self.line.clear();
            }
        }
        if self.is_over && self.long.is_none() {
            out.append(&mut self.line);
        }
        if self.line.is_empty() {
            self.line.shrink_to(CHUNK);
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let (ready, at) = &mut this.ready;
            let rest = ready.get(*at..).unwrap_or_default();
            if !rest.is_empty() {
                let count = rest.len().min(out.remaining());
                out.put_slice(rest.get(..count).unwrap_or_default());
                *at += count;
                return Poll::Ready(Ok(()));
            }
            if this.is_over {
                return Poll::Ready(Ok(()));
            }
            (*ready, *at) = (Vec::new(), 0);
            let mut buffer = ReadBuf::new(&mut this.buffer);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer))?;
            let count = buffer.filled().len();
            this.take(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn arguments_of(message: &str) -> Option<String> {
        let carried = carried(message.as_bytes())?;
        let mut message: Value = serde_json::from_str(&carried).unwrap();
        let Value::Object(object) = message["params"]["arguments"].take() else { panic!("{carried}") };
        arguments(object)
    }

    #[test]
    fn arguments_stay_as_they_were_written() {
        for written in [r#"{"a":1,"a":2}"#, "{}", r#"{ "n" : 1.00000000000000000000000001, "t":"\ud800\\\"}{" }"#] {
            for message in [
                format!(r#"{{"method":"tools/call","params":{{"name":"x","arguments":{written}}},"id":1}}"#),
                format!(r#"{{"params": {{"argum\u0065nts": {written} ,"_meta":{{}}}},"method":"tools\/call"}}"#),
            ] {
                assert_eq!(arguments_of(&message).as_deref(), Some(written), "{message}");
            }
        }
        for other in [
            "",
            "[]",
            r#"{"method":"tools/list","params":{"arguments":{}}}"#,
            r#"{"method":"tools/call"}"#,
            r#"{"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"method":"tools/call","params":{"arguments":7}}"#,
        ] {
            assert_eq!(carried(other.as_bytes()), None, "{other}");
        }
        assert_eq!(arguments(JsonObject::from_iter([("a".to_owned(), json!(1))])).as_deref(), Some(r#"{"a":1}"#));
    }

    #[tokio::test]
    async fn lines_are_carried_one_by_one() {
        let call = "{\"method\":\"tools/call\",\"params\":{\"arguments\":{\"a\":1,\"a\":2}}}\n";
        let long = format!("{{\"x\":\"{}\"}}\n", "y".repeat(MAX_MESSAGE_BYTES + CHUNK));
        let asked = format!("{{\"id\":\"a b\",\"x\":\"{}\",\"method\":\"m\"}}\n", "y".repeat(MAX_MESSAGE_BYTES));
        let text = format!("{{}}\n{call}{long}{asked}{call}no line");
        let mut read = String::new();
        Lines::new(text.as_bytes()).read_to_string(&mut read).await.unwrap();
        let lines: Vec<_> = read.split_inclusive('\n').collect();
        let carried = carried(call.as_bytes()).unwrap();
        assert_eq!(lines.len(), 5);
        let refused: Value = serde_json::from_str(lines[2]).unwrap();
        assert!(refused["id"] == "a b" && is_too_long(refused["method"].as_str().unwrap()), "{refused}");
        assert_eq!([lines[0], lines[1], lines[3], lines[4]], ["{}\n", &carried, &carried, "no line"]);
    }
}
