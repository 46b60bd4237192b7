//! Recorded HTTP responses: status line, headers and body as received, chunked framing included; or a bare body.

use std::fmt;

/// A recorded response with its framing taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// The status code; nothing for a bare body.
    pub status: Option<u16>,
    /// The body. Of a recording that was cut, what is there.
    pub body: Vec<u8>,
}

/// Why a recording cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordError {
    /// The status line or the end of the headers is missing.
    Head,
    /// A chunk's size is no number, or a chunk does not end where it says.
    Chunk,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "the status line or the empty line after the headers is missing",
            Self::Chunk => "the chunked framing is broken",
        })
    }
}

impl std::error::Error for RecordError {}

/// Reads a recording. What does not begin like an HTTP response is a bare body.
///
/// # Errors
/// It begins like a response and goes on otherwise.
pub fn read(bytes: &[u8]) -> Result<Recorded, RecordError> {
    if !bytes.starts_with(b"HTTP/") {
        return Ok(Recorded { status: None, body: bytes.to_vec() });
    }
    let end = find(bytes, b"\r\n\r\n").map(|at| (at, at + 4)).or_else(|| find(bytes, b"\n\n").map(|at| (at, at + 2)));
    let (head, body) = end.map(|(at, after)| (&bytes[..at], &bytes[after..])).ok_or(RecordError::Head)?;
    let head = std::str::from_utf8(head).map_err(|_| RecordError::Head)?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).ok_or(RecordError::Head)?;
    let header = |wanted: &str| {
        lines.clone().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().to_ascii_lowercase())
        })
    };
    let body = if header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        unchunk(body)?
    } else {
        let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(body.len());
        body[..length.min(body.len())].to_vec()
    };
    Ok(Recorded { status: Some(status), body })
}

/// Takes the chunk sizes away. A recording that ends early gives what is there.
fn unchunk(mut rest: &[u8]) -> Result<Vec<u8>, RecordError> {
    let mut body = Vec::new();
    while let Some(end) = find(rest, b"\r\n") {
        let line = std::str::from_utf8(&rest[..end]).map_err(|_| RecordError::Chunk)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| RecordError::Chunk)?;
        rest = &rest[end + 2..];
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        if rest.len() <= size {
            break;
        }
        rest = &rest[size..];
        rest = match rest {
            [b'\r', b'\n', after @ ..] => after,
            [b'\r'] => &[],
            _ => return Err(RecordError::Chunk),
        };
    }
    Ok(body)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(recording: &str, expected: Result<(Option<u16>, &str), RecordError>) {
        let read = read(recording.as_bytes());
        let expected = expected.map(|(status, body)| Recorded { status, body: body.as_bytes().to_vec() });
        assert_eq!(read, expected);
    }

    #[test]
    fn framings() {
        check("{}", Ok((None, "{}")));
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}more", Ok((Some(200), "{}")));
        check("HTTP/1.1 500 Oops\r\n\r\nx", Ok((Some(500), "x")));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(&format!("{chunked}3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n"), Ok((Some(200), "abc0123456789")));
        check(&format!("{chunked}5\r\nab"), Ok((Some(200), "ab")));
        check(&format!("{chunked}zz\r\nab"), Err(RecordError::Chunk));
        check(&format!("{chunked}1\r\nabc"), Err(RecordError::Chunk));
        check("HTTP/1.1 200 OK\r\nno end", Err(RecordError::Head));
    }
}
