//! [`Heads`]: a connection whose request heads must end their lines with CR LF, as HTTP requires.
//!
//! Some parsers accept a lone line feed as the end of a line, and others as a part of it. A proxy and this server could
//! then read different requests from the same bytes (request smuggling).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The maximum number of bytes of a line that are stored: enough for the headers that state the length of a body.
const LOOKED_AT: usize = 64;

/// A stream of HTTP requests. It replaces a lone line feed in a head, and the end of a `Content-Length` line that is
/// too long, with a byte that is illegal in heads. The server then refuses the request with 400.
pub(super) struct Heads<S> {
    stream: S,
    place: Section,
    /// Whether the last byte was a carriage return.
    returned: bool,
}

enum Section {
    /// In a head: the start of the current line, and the body's length and encoding from earlier lines.
    Head { line: Vec<u8>, length: u64, is_chunked: bool },
    /// In a body with this many bytes left.
    Body(u64),
    /// In a body whose end is unknown. The connection ends after the answer.
    Rest,
}

impl Section {
    const fn head() -> Self {
        Self::Head { line: Vec::new(), length: 0, is_chunked: false }
    }
}

impl<S> Heads<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self { stream, place: Section::head(), returned: false }
    }

    fn read(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let count = match &mut self.place {
                Section::Rest => return,
                Section::Body(left) => {
                    let count = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= count as u64;
                    if *left == 0 {
                        self.place = Section::head();
                    }
                    count
                }
                Section::Head { .. } => {
                    if let Some(byte) = bytes.first_mut() {
                        self.read_head(byte);
                    }
                    1
                }
            };
            bytes = bytes.get_mut(count..).unwrap_or_default();
        }
    }

    fn read_head(&mut self, byte: &mut u8) {
        let Section::Head { line, length, is_chunked } = &mut self.place else { return };
        let returned = std::mem::replace(&mut self.returned, *byte == b'\r');
        match byte {
            b'\n' if !returned => *byte = 0,
            b'\n' if line.is_empty() => {
                self.place = match (*is_chunked, *length) {
                    (true, _) => Section::Rest,
                    (false, 0) => Section::head(),
                    (false, length) => Section::Body(length),
                };
            }
            b'\n' => {
                let said = String::from_utf8_lossy(line).to_ascii_lowercase();
                match said.split_once(':') {
                    Some(("content-length", said)) => *length = said.trim().parse().unwrap_or(0),
                    Some(("transfer-encoding", _)) => *is_chunked = true,
                    _ => {}
                }
                line.clear();
            }
            b'\r' => {}
            byte if line.len() < LOOKED_AT => line.push(*byte),
            // The line is too long to store, so the length is unknown. Bytes of the next request could be taken for the
            // body.
            byte if line.to_ascii_lowercase().starts_with(b"content-length:") => *byte = 0,
            _ => {}
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, out))?;
        self.read(out.filled_mut().get_mut(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heads<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_feed_alone_is_seen_in_heads_only() {
        let first = "POST /mcp HTTP/1.1\r\nContent-Length: 4\r\n\r\n{\n\n}";
        for (text, alone) in [
            (first.repeat(2), 0),
            (format!("{first}GET / HTTP/1.1\r\na: b\nhost: c\r\n\r\n"), 1),
            ("GET / HTTP/1.1\n\n".to_owned(), 2),
            (format!("POST / HTTP/1.1\r\nContent-Length: {}4\r\n\r\n", "0".repeat(LOOKED_AT - 16)), 1),
            (format!("POST / HTTP/1.1\r\nContent-Length: {}4\r\n\r\n", "0".repeat(LOOKED_AT - 17)), 0),
            ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n\n\n\r\n0\r\n\r\n".to_owned(), 0),
        ] {
            for size in [1, 3, text.len()] {
                let mut heads = Heads::new(());
                let mut bytes = text.clone().into_bytes();
                bytes.chunks_mut(size).for_each(|part| heads.read(part));
                assert_eq!(bytes.split(|byte| *byte == 0).count() - 1, alone, "{text:?} in {size}");
            }
        }
    }
}
