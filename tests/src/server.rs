//! A server on loopback that replays recorded responses, byte for byte, and keeps the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The secret of a webhook.
pub const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The reply to one connection.
#[derive(Debug, Clone)]
#[must_use]
pub struct Reply {
    bytes: Arc<[u8]>,
    /// Bytes sent at a time.
    piece: usize,
    /// Bytes sent before the connection closes.
    cut: usize,
    /// The pause after each piece.
    pause: Duration,
    /// The bytes are sent over and over, until the client hangs up.
    forever: bool,
    /// After the bytes the connection stays open, and nothing more comes until the server stops.
    hangs: bool,
}

impl Reply {
    /// A whole HTTP response, headers and framing included.
    pub fn recorded(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self { cut: bytes.len(), piece: usize::MAX, bytes, pause: Duration::ZERO, forever: false, hangs: false }
    }

    /// A body with a status and headers.
    pub fn body(status: &str, headers: &str, body: &[u8]) -> Self {
        let mut bytes =
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len())
                .into_bytes();
        bytes.extend(body);
        Self::recorded(bytes)
    }

    /// An event stream.
    pub fn stream(body: &str) -> Self {
        Self::recorded(
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n{body}")
                .into_bytes(),
        )
    }

    /// A head, followed by the same bytes without end.
    pub fn forever(body: &str) -> Self {
        Self { forever: true, ..Self::stream(body) }
    }

    /// A connection on which the server sends no byte.
    pub fn silence() -> Self {
        Self::recorded(Vec::new()).and_hang()
    }

    /// The same reply with another status.
    pub fn with_status(mut self, status: &str) -> Self {
        let text = String::from_utf8_lossy(&self.bytes).replacen("200 OK", status, 1);
        (self.cut, self.bytes) = (text.len(), text.into_bytes().into());
        self
    }

    /// Keeps the connection open after the bytes, until the server stops.
    pub fn and_hang(mut self) -> Self {
        self.hangs = true;
        self
    }

    /// Closes the connection after this many bytes.
    pub fn cut_at(mut self, bytes: usize) -> Self {
        self.cut = bytes.min(self.bytes.len());
        self
    }

    /// Sends this many bytes at a time, with a pause after each piece.
    pub fn in_pieces(mut self, bytes: usize, pause: Duration) -> Self {
        (self.piece, self.pause) = (bytes.max(1), pause);
        self
    }

    /// The bytes of the whole reply.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The length of the whole reply in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the reply has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A received request.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The request line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

/// The server; it stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stopped: Arc<AtomicBool>,
}

impl Server {
    /// Serves these replies in order, one per connection; the last one is repeated.
    ///
    /// # Errors
    /// No port on loopback is free.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let (asked, stopped) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::new(AtomicBool::new(false)));
        let replies: Vec<_> = replies.into_iter().collect();
        let (seen, stop) = (Arc::clone(&asked), Arc::clone(&stopped));
        std::thread::spawn(move || {
            for (at, stream) in listener.incoming().enumerate() {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                let Some(reply) = replies.get(at).or(replies.last()).cloned() else { break };
                let (seen, stop) = (Arc::clone(&seen), Arc::clone(&stop));
                if let Ok(stream) = stream {
                    // One thread per connection, so that a hanging connection does not delay the next one. The error of
                    // a client that disconnects is ignored.
                    std::thread::spawn(move || drop(serve(stream, &reply, &seen, &stop)));
                }
            }
        });
        Ok(Self { address, asked, stopped })
    }

    /// The URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(mut stream: TcpStream, reply: &Reply, asked: &Mutex<Vec<Asked>>, stop: &AtomicBool) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let request = Asked::read(&mut BufReader::new(&stream))?;
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    for piece in reply.bytes[..reply.cut].chunks(reply.piece.min(1 << 16)) {
        stream.write_all(piece)?;
        if !reply.pause.is_zero() {
            std::thread::sleep(reply.pause);
        }
    }
    while reply.forever && !stop.load(Ordering::Acquire) {
        stream.write_all(&reply.bytes)?;
    }
    stream.flush()?;
    while reply.hangs && !stop.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

impl Asked {
    /// Reads a request.
    ///
    /// # Errors
    /// The client hung up.
    pub fn read(reader: &mut impl BufRead) -> std::io::Result<Self> {
        let mut asked = Self::default();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            asked.head.push_str(&line);
        }
        let length = asked.head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
        });
        reader.take(length.unwrap_or(0)).read_to_string(&mut asked.body)?;
        Ok(asked)
    }

    /// A header of the request.
    ///
    /// # Panics
    /// The request does not have it.
    #[must_use]
    #[allow(clippy::panic, reason = "a test says what it expects")]
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.unwrap_or_else(|| panic!("no {name}: {}", self.head)).1
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the thread that waits for a connection. Threads that still write are not joined: they end when their
        // client disconnects, and a client on this thread could not do so during a join.
        drop(TcpStream::connect(self.address));
    }
}
