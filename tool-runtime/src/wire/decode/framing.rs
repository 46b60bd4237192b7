//! Framing of streams: server-sent events, JSON lines and arrays of objects. Frames have a maximum size, and the time
//! is linear in the bytes however they are split.

mod array;

use memchr::{memchr, memchr2};

use crate::wire::WireErrorKind;

pub(crate) use array::ObjectArray;

/// A line or a frame is longer than allowed.
const TOO_LONG: WireErrorKind = WireErrorKind::LimitExceeded;

/// One frame, borrowed from the pushed bytes if they contain all of it.
pub(crate) struct Frame<'a> {
    pub(crate) event: &'a [u8],
    pub(crate) data: &'a [u8],
}

/// A callback for each frame; it returns `false` to stop reading.
type Each<'e> = &'e mut dyn FnMut(&Frame<'_>) -> bool;

/// No format has longer event names; the rest of a name is dropped.
const MAX_EVENT_NAME: usize = 64;

/// The maximum number of bytes of an event's id; longer ids are ignored.
const MAX_EVENT_ID: usize = 1024;

/// Server-sent events. Lines end in LF, CR or CRLF; comments and unknown fields are skipped.
pub(crate) struct EventStream {
    max: usize,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
    /// The copied data lines of the current event.
    data: Vec<u8>,
    has_data: bool,
    event: Vec<u8>,
    skip_line_feed: bool,
    /// The id of the current event. `last_id` is the id of the last complete event.
    id: Option<Vec<u8>>,
    last_id: Option<Vec<u8>>,
    retry: Option<u64>,
}

impl EventStream {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            max,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event: Vec::new(),
            skip_line_feed: false,
            id: None,
            last_id: None,
            retry: None,
        }
    }

    /// The id of the last complete event; `None` if the stream has no ids, or its id is empty.
    #[cfg(feature = "mcp-client")]
    pub(crate) fn last_id(&self) -> Option<&[u8]> {
        self.last_id.as_deref()
    }

    /// The server's `retry` field: the milliseconds to wait before the client requests the stream again.
    #[cfg(feature = "mcp-client")]
    pub(crate) const fn retry(&self) -> Option<u64> {
        self.retry
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], each: Each<'_>) -> Result<(), WireErrorKind> {
        let mut held = None;
        loop {
            if self.skip_line_feed && !bytes.is_empty() {
                self.skip_line_feed = false;
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            // Every third line is empty; no search is needed for its end.
            let end = if bytes.starts_with(b"\n") { Some(0) } else { memchr2(b'\n', b'\r', bytes) };
            let Some(end) = end else { break };
            let (line, rest) = bytes.split_at(end);
            self.skip_line_feed = rest.starts_with(b"\r");
            bytes = rest.get(1..).unwrap_or_default();
            if self.line.len() + line.len() > self.max {
                return Err(TOO_LONG);
            }
            let go_on = if self.line.is_empty() {
                self.line(line, true, &mut held, each)?
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                let mut none = held.take();
                self.keep(&mut none)?;
                let go_on = self.line(&whole, false, &mut none, each)?;
                whole.clear();
                self.line = whole;
                go_on
            };
            if !go_on {
                return Ok(());
            }
        }
        self.keep(&mut held)?;
        if self.line.len() + bytes.len() > self.max {
            return Err(TOO_LONG);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads one line. `held` is the event's only data line so far; it is borrowed from the pushed bytes, not copied.
    fn line<'b>(
        &mut self,
        line: &'b [u8],
        may_hold: bool,
        held: &mut Option<&'b [u8]>,
        each: Each<'_>,
    ) -> Result<bool, WireErrorKind> {
        if line.is_empty() {
            let data = held.take().unwrap_or(&self.data);
            if let Some(id) = self.id.take() {
                self.last_id = (!id.is_empty()).then_some(id);
            }
            let go_on = data.is_empty() || each(&Frame { event: &self.event, data });
            self.data.clear();
            self.has_data = false;
            self.event.clear();
            return Ok(go_on);
        }
        let (field, value) = field(line);
        match field {
            b"data" if may_hold && !self.has_data && held.is_none() => *held = Some(value),
            b"data" => {
                self.keep(held)?;
                self.add(value)?;
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value.get(..MAX_EVENT_NAME).unwrap_or(value));
            }
            b"id" if value.len() <= MAX_EVENT_ID && !value.contains(&0) => self.id = Some(value.to_vec()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).or(self.retry);
            }
            _ => {}
        }
        Ok(true)
    }

    /// Adds the held line to the copied data.
    fn keep(&mut self, held: &mut Option<&[u8]>) -> Result<(), WireErrorKind> {
        held.take().map_or(Ok(()), |value| self.add(value))
    }

    fn add(&mut self, value: &[u8]) -> Result<(), WireErrorKind> {
        if self.data.len() + value.len() >= self.max {
            return Err(TOO_LONG);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }
}

/// The name of a line's field and its value.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    // Nearly every line has one of these two fields, and the prefix checks cost less than a search for the colon.
    let (name, value) = if let Some(value) = line.strip_prefix(b"data:") {
        (&b"data"[..], value)
    } else if let Some(value) = line.strip_prefix(b"event:") {
        (&b"event"[..], value)
    } else if let Some(colon) = memchr(b':', line) {
        let (name, value) = line.split_at(colon);
        (name, value.get(1..).unwrap_or_default())
    } else {
        return (line, b"");
    };
    (name, value.strip_prefix(b" ").unwrap_or(value))
}

/// JSON lines, which end in LF or CRLF. Empty lines are passed on to the caller.
pub(crate) struct JsonLines {
    max: usize,
    line: Vec<u8>,
}

impl JsonLines {
    pub(crate) const fn new(max: usize) -> Self {
        Self { max, line: Vec::new() }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], each: Each<'_>) -> Result<(), WireErrorKind> {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.line.len() + line.len() > self.max {
                return Err(TOO_LONG);
            }
            let go_on = if self.line.is_empty() {
                each(&Frame { event: b"", data: line })
            } else {
                self.line.extend_from_slice(line);
                let go_on = each(&Frame { event: b"", data: &self.line });
                self.line.clear();
                go_on
            };
            if !go_on {
                return Ok(());
            }
        }
        if self.line.len() + bytes.len() > self.max {
            return Err(TOO_LONG);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The last line, if it has no line end.
    pub(crate) fn rest(&self) -> Option<&[u8]> {
        (!self.line.is_empty()).then_some(&self.line)
    }
}
