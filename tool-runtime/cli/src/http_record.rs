//! Parses a recorded HTTP response: status line, headers and body as received, or a bare body.

use std::borrow::Cow;
use std::fmt;

/// The maximum number of headers of one response.
const MAX_HEADERS: usize = 128;

/// A recorded response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpRecord<'a> {
    /// The status; `None` for a bare body.
    pub(super) status: Option<u16>,
    /// The body, without chunked framing.
    pub(super) body: Cow<'a, [u8]>,
    /// Whether the body has the length that its framing declares; `true` for a body without framing.
    pub(super) complete: bool,
}

/// The reason why a recorded response cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpRecordError {
    /// The status line is missing, or the headers cannot be parsed.
    Head,
    /// The body is compressed.
    Encoding,
}

impl fmt::Display for HttpRecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "the recorded response has no readable status line and headers",
            Self::Encoding => "the recorded response is compressed; record it without `Accept-Encoding`",
        })
    }
}

impl std::error::Error for HttpRecordError {}

/// Reads a recorded response. Bytes that do not begin with `HTTP/` are a bare body.
pub(super) fn parse(mut bytes: &[u8]) -> Result<HttpRecord<'_>, HttpRecordError> {
    if !bytes.starts_with(b"HTTP/") {
        return Ok(HttpRecord { status: None, body: Cow::Borrowed(bytes), complete: true });
    }
    loop {
        let head = Head::parse(bytes)?;
        // Skips interim responses, such as `100 Continue`.
        if (100..200).contains(&head.status) && head.rest.starts_with(b"HTTP/") {
            bytes = head.rest;
            continue;
        }
        if head.compressed {
            return Err(HttpRecordError::Encoding);
        }
        let (body, complete) = match (head.chunked, head.length) {
            (true, _) => unchunk(head.rest),
            (false, Some(length)) => {
                (Cow::Borrowed(head.rest.get(..length).unwrap_or(head.rest)), head.rest.len() >= length)
            }
            (false, None) => (Cow::Borrowed(head.rest), true),
        };
        return Ok(HttpRecord { status: Some(head.status), body, complete });
    }
}

struct Head<'a> {
    status: u16,
    chunked: bool,
    compressed: bool,
    length: Option<usize>,
    rest: &'a [u8],
}

impl<'a> Head<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, HttpRecordError> {
        // Some tools write `HTTP/2 200`, which HTTP/1 parsers refuse, so the status line is parsed here.
        let (first, rest) = line(bytes).ok_or(HttpRecordError::Head)?;
        let status = text(first).split_ascii_whitespace().nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(HttpRecordError::Head)?;
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let Ok(httparse::Status::Complete((length, headers))) = httparse::parse_headers(rest, &mut headers) else {
            return Err(HttpRecordError::Head);
        };
        let rest = rest.get(length..).unwrap_or_default();
        let mut head = Self { status, chunked: false, compressed: false, length: None, rest };
        for header in headers {
            let value = text(header.value).trim().to_ascii_lowercase();
            match header.name.to_ascii_lowercase().as_str() {
                "transfer-encoding" => {
                    head.chunked |= value.ends_with("chunked");
                    head.compressed |= value.contains(',');
                }
                "content-encoding" => head.compressed |= !matches!(value.as_str(), "" | "identity"),
                "content-length" => head.length = value.parse().ok(),
                _ => {}
            }
        }
        Ok(head)
    }
}

/// Joins the chunks, and returns whether the last chunk is present. Many tools print headers but remove the framing of
/// the body. A body that does not begin with a chunk size is therefore returned unchanged.
fn unchunk(framed: &[u8]) -> (Cow<'_, [u8]>, bool) {
    let mut body = Vec::with_capacity(framed.len());
    let mut rest = framed;
    loop {
        let size = line(rest).and_then(|(size, after)| {
            let size = text(size);
            let digits = size.split(';').next().unwrap_or_default().trim();
            Some((usize::from_str_radix(digits, 16).ok()?, after))
        });
        match size {
            Some((0, _)) => return (Cow::Owned(body), true),
            Some((size, after)) => {
                let Some(chunk) = after.get(..size) else {
                    body.extend_from_slice(after);
                    return (Cow::Owned(body), false);
                };
                body.extend_from_slice(chunk);
                let after = after.get(size..).unwrap_or_default();
                rest = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n")).unwrap_or(after);
            }
            None if body.is_empty() => return (Cow::Borrowed(framed), true),
            None => return (Cow::Owned(body), false),
        }
    }
}

/// Splits off the first line, without its line break.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = bytes.split_at(end);
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest.get(1..).unwrap_or_default()))
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects")]

    use super::parse;

    #[test]
    fn recorded_responses() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (record, status, body, complete) in [
            ("data: x\n".to_owned(), None, "data: x\n", true),
            ("HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nabcdef".to_owned(), Some(500), "abc", true),
            ("HTTP/2 200\nx: y\n\nabc".to_owned(), Some(200), "abc", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_owned(), Some(200), "abc", false),
            (format!("{chunked}3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"), Some(200), "abcde", true),
            (format!("{chunked}3\r\nabc\r\n5\r\nde"), Some(200), "abcde", false),
            (format!("{chunked}ffffffffffffffff\r\nabc"), Some(200), "abc", false),
            (format!("{chunked}data: unframed\n\n"), Some(200), "data: unframed\n\n", true),
            (format!("{chunked}3\r\nabc\r\n"), Some(200), "abc", false),
            (format!("HTTP/1.1 100 Continue\r\n\r\n{chunked}0\r\n\r\n"), Some(200), "", true),
            (
                "HTTP/1.1 503 X\r\nllm_provider-transfer-encoding: chunked\r\n\r\n3\r\n".to_owned(),
                Some(503),
                "3\r\n",
                true,
            ),
        ] {
            let read = parse(record.as_bytes()).unwrap();
            let got = (read.status, std::str::from_utf8(&read.body).unwrap(), read.complete);
            assert_eq!(got, (status, body, complete), "{record}");
        }
        for record in [
            "HTTP/1.1",
            "HTTP/1.1 x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno end",
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nx",
        ] {
            assert!(parse(record.as_bytes()).is_err(), "{record}");
        }
    }
}
