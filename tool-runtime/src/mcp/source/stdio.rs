//! [`Stdio`]: a connection to a server that runs as a process in its own group, with one message on each line. The
//! process is killed when its standard output ends or is no protocol, and when the connection is dropped. Every tokio
//! task of the connection ends with the process.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::Stdio as Pipe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::mcp::scan::IdScan;
use crate::mcp::source::diagnostics::Diagnostics;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::hints::Hints;
use crate::mcp::source::message::{self, Incoming};
use crate::mcp::source::process::ProcessGroup;

/// The maximum number of messages that wait for the server to read them. Further notifications are dropped.
const OUTGOING: usize = 64;

/// The size of one read, in bytes.
const CHUNK: usize = 64 * 1024;

/// The number of non-protocol lines in a row that the client accepts. At the next one, it ends the connection.
const MAX_GARBAGE: usize = 1000;

/// How long a server may take to exit after its standard input is closed.
const GRACE: Duration = Duration::from_secs(2);

/// The sender of an answer to a waiting request.
type Waiting = oneshot::Sender<Result<Box<str>, RequestError>>;

/// A connection to a process.
pub(super) struct Stdio {
    outgoing: mpsc::Sender<String>,
    shared: Arc<Shared>,
    /// `None` after the connection has ended.
    process: Arc<Mutex<Option<ProcessGroup>>>,
}

/// The state that the tasks of a connection share.
pub(super) struct Shared {
    server: Arc<str>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    closed: AtomicBool,
    /// Whether the process wrote a line that is not a message, and whether it wrote a message.
    wrote: [AtomicBool; 2],
    ended: Notify,
    hints: Arc<Hints>,
}

/// The program to start.
pub(super) struct Program<'a> {
    pub(super) path: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) folder: Option<&'a PathBuf>,
}

impl Stdio {
    /// Starts the process.
    pub(super) fn start(
        server: Arc<str>,
        program: &Program<'_>,
        max_line: usize,
        hints: Arc<Hints>,
        diagnostics: &Arc<Diagnostics>,
    ) -> Result<Self, RequestError> {
        let mut command = Command::new(program.path);
        command.args(program.args).env_clear().envs(program.env);
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        if let Some(folder) = program.folder {
            command.current_dir(folder);
        }
        let mut process = ProcessGroup::start(&mut command).map_err(|error| {
            RequestError::NotSent(format!("the command `{}` cannot be started: {error}", program.path.escape_debug()))
        })?;
        let child = process.child();
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(RequestError::NotSent("the process has no standard streams".to_owned()));
        };
        let shared = Arc::new(Shared {
            server,
            waiting: Mutex::default(),
            closed: AtomicBool::new(false),
            wrote: Default::default(),
            ended: Notify::new(),
            hints,
        });
        let (outgoing, lines) = mpsc::channel(OUTGOING);
        tokio::spawn(write(stdin, lines));
        tokio::spawn(Arc::clone(diagnostics).drain(stderr));
        let answers = outgoing.downgrade();
        let process = Arc::new(Mutex::new(Some(process)));
        let (reading, read) = (Arc::clone(&shared), Arc::downgrade(&process));
        tokio::spawn(async move {
            reading.read(stdout, max_line, &answers).await;
            // No request reaches the process now, and the connection may stay until the next call.
            if let Some(process) = read.upgrade() {
                drop(process.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
            reading.close();
        });
        Ok(Self { outgoing, shared, process })
    }

    /// Whether the process ended or closed its standard output.
    pub(super) fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Whether the process wrote output, but no message.
    pub(super) fn is_no_server(&self) -> bool {
        self.shared.failure() == RequestError::NotMcp
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request at the server.
    pub(super) async fn request(&self, id: u64, text: String) -> Result<Box<str>, RequestError> {
        let (sender, answer) = oneshot::channel();
        self.shared.waiting().insert(id, sender);
        let mut pending = Pending { stdio: self, id, sent: false };
        if self.is_closed() {
            return Err(match self.shared.failure() {
                RequestError::Closed => RequestError::NotSent("the connection ended before".to_owned()),
                failure => failure,
            });
        }
        pending.sent = true;
        // If the send fails, the process has closed its end; its earlier output explains why.
        let _ = self.outgoing.send(text).await;
        answer.await.unwrap_or(Err(RequestError::Closed))
    }

    /// Sends a notification; it is dropped if the server does not read.
    pub(super) fn notify(&self, text: String) {
        let _ = self.outgoing.try_send(text);
    }

    /// Closes the standard input, waits for the process to exit, and kills it after a time limit.
    pub(super) async fn shutdown(self) {
        let Self { outgoing, shared, process } = self;
        drop(outgoing);
        let ended = shared.ended.notified();
        if !shared.closed.load(Ordering::Acquire) {
            let _ = tokio::time::timeout(GRACE, ended).await;
        }
        drop(process);
    }
}

/// A request that waits for its answer.
struct Pending<'a> {
    stdio: &'a Stdio,
    id: u64,
    sent: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        // An answer removes the entry first, so an entry that is still here belongs to a cancelled request.
        if self.stdio.shared.waiting().remove(&self.id).is_some() && self.sent {
            self.stdio.notify(message::cancelled(self.id));
        }
    }
}

impl Shared {
    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.ended.notify_waiters();
        let waiting = std::mem::take(&mut *self.waiting());
        waiting.into_values().for_each(|one| drop(one.send(Err(self.failure()))));
    }

    /// Returns the reason why the connection accepts no more requests.
    fn failure(&self) -> RequestError {
        // A single message proves that the process is a server.
        let [garbage, message] = &self.wrote;
        let [garbage, message] = [garbage, message].map(|wrote| wrote.load(Ordering::Relaxed));
        if garbage && !message { RequestError::NotMcp } else { RequestError::Closed }
    }

    fn end(&self, id: u64, result: Result<Box<str>, RequestError>) {
        let waiting = self.waiting().remove(&id);
        if let Some(waiting) = waiting {
            // The receiver is gone if the request was cancelled.
            let _ = waiting.send(result);
        }
    }

    /// Reads lines until the stream ends. Lines longer than `max` are not stored.
    async fn read(&self, mut stream: impl AsyncRead + Unpin, max: usize, answers: &mpsc::WeakSender<String>) {
        let (mut buffer, mut line) = (vec![0; CHUNK], Vec::new());
        let mut long: Option<IdScan> = None;
        let mut garbage = 0;
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let mut rest = buffer.get(..count).unwrap_or_default();
            while !rest.is_empty() {
                let end = memchr::memchr(b'\n', rest);
                let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
                rest = after.get(1..).unwrap_or_default();
                match &mut long {
                    Some(scan) => scan.push(part),
                    None if line.len() + part.len() <= max => line.extend_from_slice(part),
                    None => {
                        let mut scan = IdScan::default();
                        scan.push(&std::mem::take(&mut line));
                        scan.push(part);
                        long = Some(scan);
                    }
                }
                if end.is_none() {
                    break;
                }
                let known = match long.take() {
                    Some(scan) => scan.id().map(|id| self.end(id, Err(RequestError::TooLarge))).is_some(),
                    None => self.line(&line, answers),
                };
                line.clear();
                line.shrink_to(CHUNK);
                garbage = if known { 0 } else { garbage + 1 };
                let [garbage_at_all, message] = &self.wrote;
                if known { message } else { garbage_at_all }.store(true, Ordering::Relaxed);
                if garbage > MAX_GARBAGE {
                    tracing::warn!(
                        server = &*self.server,
                        "the server wrote non-protocol output to stdout; terminating it"
                    );
                    return;
                }
            }
        }
    }

    /// Handles a line. Returns whether it is a message.
    fn line(&self, line: &[u8], answers: &mpsc::WeakSender<String>) -> bool {
        match std::str::from_utf8(line).ok().and_then(message::read) {
            Some(Incoming::Answer(id, result)) => self.end(id, result),
            Some(Incoming::Request { id, is_ping }) => {
                if let Some(answers) = answers.upgrade() {
                    // Dropped if the queue is full: the server sends requests but does not read the answers.
                    let _ = answers.try_send(message::answer(&id, is_ping));
                }
            }
            Some(Incoming::Notification(notification)) => {
                self.hints
                    .notify(notification)
                    .into_iter()
                    .for_each(|ended| self.end(ended, Err(RequestError::Closed)));
            }
            None => {
                // If the line is the broken answer to a request, that request fails at once.
                let mut scan = IdScan::default();
                scan.push(line);
                return scan.id().map(|id| self.end(id, Err(RequestError::Unreadable))).is_some();
            }
        }
        true
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}
