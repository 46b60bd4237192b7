//! Server-sent events, incrementally: bytes in, cut anywhere, the `data` of complete events out.

/// Splits a byte stream into the data of its events. Each byte is looked at once.
#[derive(Default)]
pub(super) struct Events {
    /// Bytes of the line that is not complete yet.
    line: Vec<u8>,
    /// The data lines of the event that is not complete yet.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return: a line feed right after it belongs to it.
    after_return: bool,
    /// A byte order mark is dropped from the first line only.
    begun: bool,
}

impl Events {
    /// Takes bytes and hands the data of each event they complete to `each`.
    pub(super) fn push(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let end = rest[at];
            let (line, after) = (&rest[..at], &rest[at + 1..]);
            rest = after;
            if std::mem::take(&mut self.after_return) && line.is_empty() && end == b'\n' && self.line.is_empty() {
                continue;
            }
            self.after_return = end == b'\r';
            if self.line.is_empty() {
                self.take(line, &mut each);
            } else {
                self.line.extend_from_slice(line);
                let line = std::mem::take(&mut self.line);
                self.take(&line, &mut each);
                self.line = line;
                self.line.clear();
            }
        }
        if !rest.is_empty() {
            self.after_return = false;
            self.line.extend_from_slice(rest);
        }
    }

    /// The data of an event that the end of the stream left without its empty line.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        self.take(&line, &mut |_| {});
        self.has_data.then_some(self.data)
    }

    fn take(&mut self, line: &[u8], each: &mut impl FnMut(&[u8])) {
        let mark = !std::mem::replace(&mut self.begun, true);
        let line = if mark { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                each(&self.data);
                self.data.clear();
            }
            return;
        }
        let Some(value) = line.strip_prefix(b"data") else { return };
        let value = match value {
            [] => value,
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            // A field of another name that begins with `data`.
            _ => return,
        };
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::Events;

    #[track_caller]
    fn check(stream: &str, expected: &[&str], left: Option<&str>) {
        for chunk in [stream.len().max(1), 1, 2, 3, 7] {
            let mut events = Events::default();
            let mut found = Vec::new();
            for piece in stream.as_bytes().chunks(chunk) {
                events.push(piece, |data| found.push(String::from_utf8_lossy(data).into_owned()));
            }
            assert_eq!(found, expected, "in pieces of {chunk}");
            assert_eq!(events.finish().map(|data| String::from_utf8_lossy(&data).into_owned()).as_deref(), left);
        }
    }

    #[test]
    fn events_are_found_in_any_cut() {
        check("data: a\n\ndata:b\n\n", &["a", "b"], None);
        check("\u{feff}data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["a", "b", "c"], None);
        check(": comment\nevent: x\nretry: 1\n\ndata: a\ndata: b\n\n", &["a\nb"], None);
        check("data: a\n\ndata: b", &["a"], Some("b"));
        check("data\n\ndatabase: no\n\n", &[""], None);
        check("", &[], None);
    }
}
