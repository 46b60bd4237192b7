//! [`UiStream`]: the events of a run as the bytes of a chat UI's stream.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;

use crate::call::{CallId, Event, LeftOut, Question, Suspension};
use crate::wire::ui::{Protocol, UiEncoder, UiEvent};

/// The backlog in bytes above which deltas, sources, files, data and status texts are left out.
const BACKLOG: usize = 1 << 20;

/// The backlog in bytes above which the values of results are left out too.
const FULL: usize = 4 * BACKLOG;

/// The bytes of one response, for a body such as axum's `Body::from_stream`. Created by
/// [`Conversation::ui_stream`](crate::agent::Conversation::ui_stream), or together with its sink by [`UiStream::new`].
///
/// The reader does not affect the run: a slow reader does not delay it, and a dropped stream does not cancel it. Unread
/// bytes are bounded. Above 1 MiB, the stream leaves out the remaining deltas, sources, files, data and status texts of
/// the response; above 4 MiB, the values of results too. A file with data is embedded if its Base64 text has at most
/// 8 MiB (a file of 6 MiB); for a larger file, the stream has only a status text. The stream always has the end of each
/// call that it shows and of the request, and, if something was left out, a final `error` that reports this.
///
/// ```
/// use tool_runtime::agent::Agent;
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::wire::ui::Protocol;
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let agent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello.")]));
/// let mut conversation = agent.converse(runner.run(RunOptions::new()));
/// let mut stream = conversation.ui_stream(Protocol::UiMessageStream, "msg_1");
/// conversation.send("Hi!").await;
/// drop(conversation);
///
/// let mut body = String::new();
/// while let Some(bytes) = stream.chunk().await {
///     body.push_str(std::str::from_utf8(&bytes)?);
/// }
/// assert!(body.contains("Hello."));
/// # Ok(()) })
/// # }
/// ```
pub struct UiStream {
    shared: Arc<Mutex<Shared>>,
    /// The future of [`end_after`](Self::end_after), for which the end of the stream waits.
    until: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// The calls that the client's request decides. Filled when the conversation takes the request, after the stream was
/// created.
pub(super) type Decided = Arc<Mutex<Vec<CallId>>>;

/// The sink of a [`UiStream`]'s events.
pub(super) struct UiSink(Arc<Mutex<Shared>>);

struct Shared {
    encoder: UiEncoder,
    bytes: Vec<u8>,
    /// The last frames, which [`UiStream::end_after`] can hold back.
    end: Vec<u8>,
    /// The calls of earlier messages. The stream leaves out their ends.
    earlier: Vec<CallId>,
    /// The calls whose decisions the client sent. `None` if they are not known.
    decided: Option<Decided>,
    /// Whether events or values were left out because the reader was too slow.
    lagged: bool,
    ended: bool,
    /// Whether the reader was dropped.
    abandoned: bool,
    waker: Option<Waker>,
}

impl UiStream {
    /// Creates a stream and its sink, for a message that begins with this response. The stream ends with the `done`
    /// event, or when the sink is dropped.
    ///
    /// ```
    /// use tool_runtime::RunOptions;
    /// use tool_runtime::agent::UiStream;
    /// use tool_runtime::wire::ui::Protocol;
    ///
    /// let (sink, stream) = UiStream::new(Protocol::DataStream, "msg_1");
    /// let options = RunOptions::new().events(sink);
    /// # let _ = (options, stream);
    /// ```
    pub fn new(protocol: Protocol, message_id: &str) -> (impl Fn(Event) + Send + Sync + use<>, Self) {
        let (sink, stream) = Self::beginning(protocol, message_id, Vec::new());
        (move |event| sink.emit(event), stream)
    }

    /// Creates a stream and its sink, for a response that continues a message after an approval or an answer of the
    /// client. `calls` are the calls of the message that waited, see [`UiEncoder::resuming`].
    pub fn resuming(
        protocol: Protocol,
        message_id: &str,
        calls: Vec<CallId>,
    ) -> (impl Fn(Event) + Send + Sync + use<>, Self) {
        let (sink, stream) = Self::with(UiEncoder::resuming(protocol, message_id, calls), Vec::new());
        (move |event| sink.emit(event), stream)
    }

    /// Sets the ids of an AG-UI run before its first event, see [`UiEncoder::for_run`].
    #[must_use]
    pub fn for_run(self, thread_id: &str, run_id: &str) -> Self {
        lock(&self.shared).encoder.set_run(thread_id, run_id);
        self
    }

    /// Holds back the end of the stream, including its last frames, until this future is done. Use it to save the
    /// conversation first, because a client may send its next request when it sees the end.
    ///
    /// ```
    /// use tool_runtime::agent::{Conversation, Input, UiStream};
    /// use tool_runtime::wire::ui::Protocol;
    ///
    /// /// The body of a response. The request continues even if the client hangs up.
    /// fn respond(mut conversation: Conversation, input: Input) -> UiStream {
    ///     let stream = conversation.ui_stream(Protocol::UiMessageStream, "msg_1");
    ///     let turn = tokio::spawn(async move {
    ///         let _ended = conversation.receive(input).await;
    ///         let _saved = conversation.save().await;
    ///     });
    ///     stream.end_after(turn)
    /// }
    /// ```
    #[must_use]
    pub fn end_after<F: Future<Output: Send> + Send + 'static>(mut self, saved: F) -> Self {
        self.until = Some(Box::pin(async move {
            saved.await;
        }));
        self
    }

    /// Waits for the next bytes. `None` at the end. For callers that do not use the [`Stream`] implementation.
    pub async fn chunk(&mut self) -> Option<Bytes> {
        let next = poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await?;
        let Ok(bytes) = next;
        Some(bytes)
    }

    /// Returns a stream for a message that begins with this response. The ends of the `earlier` calls are not part of
    /// it.
    pub(super) fn beginning(protocol: Protocol, message_id: &str, earlier: Vec<CallId>) -> (UiSink, Self) {
        let mut encoder = UiEncoder::new(protocol);
        let bytes = encoder.push(&UiEvent::MessageStart { id: message_id.to_owned() });
        let (sink, stream) = Self::with(encoder, bytes);
        lock(&stream.shared).earlier = earlier;
        (sink, stream)
    }

    /// Returns a stream for a response that continues the message whose calls wait. For calls that are not in
    /// `decided`, the stream also tells the client that they were decided.
    pub(super) fn continuing(
        protocol: Protocol,
        message_id: &str,
        calls: impl Iterator<Item = (Suspension, Question)>,
        decided: Decided,
    ) -> (UiSink, Self) {
        let (sink, stream) = Self::with(UiEncoder::continuing(protocol, message_id, calls), Vec::new());
        lock(&stream.shared).decided = Some(decided);
        (sink, stream)
    }

    fn with(encoder: UiEncoder, bytes: Vec<u8>) -> (UiSink, Self) {
        let shared = Arc::new(Mutex::new(Shared {
            encoder,
            bytes,
            end: Vec::new(),
            earlier: Vec::new(),
            decided: None,
            lagged: false,
            ended: false,
            abandoned: false,
            waker: None,
        }));
        (UiSink(Arc::clone(&shared)), Self { shared, until: None })
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn push(&mut self, event: Event) {
        let elsewhere = matches!(&event, Event::ToolCallResult { id, .. } if self.earlier.contains(id));
        if self.ended || self.abandoned || elsewhere {
            return;
        }
        if let (Event::ToolCallResult { id, .. }, Some(decided)) = (&event, &self.decided)
            && !decided.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
        {
            self.encoder.decided_elsewhere(id);
        }
        match event {
            Event::TextDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::Source { .. }
            | Event::File { .. }
            | Event::Data { .. }
            | Event::ToolCallDelta { .. }
            | Event::Status { .. } => {
                self.lagged |= self.bytes.len() > BACKLOG;
                if !self.lagged {
                    self.encode(&event);
                }
            }
            Event::ToolCallResult { id, name, outcome, error, executed, .. } if self.bytes.len() > FULL => {
                self.lagged = true;
                self.encode(&Event::ToolCallResult {
                    id,
                    name,
                    arguments: None,
                    outcome,
                    value: None,
                    error,
                    executed,
                    left_out: LeftOut::default(),
                    earlier_call: None,
                });
            }
            Event::Done { .. } => self.end(Some(&event)),
            // Counts of tokens are part of later frames, and events of graphs are part of none, so both need no room.
            _ => self.encode(&event),
        }
    }

    fn encode(&mut self, event: &Event) {
        let bytes = self.encoder.push_event(event);
        self.bytes.extend(bytes);
    }

    /// Writes the last frames. `done` is `None` if the sink was dropped before that event.
    fn end(&mut self, done: Option<&Event>) {
        if std::mem::replace(&mut self.ended, true) || self.abandoned {
            return;
        }
        let before = self.bytes.len();
        if self.lagged {
            let message = "The connection was too slow for a part of the response. Load the conversation again.";
            self.encode(&Event::Error { code: "stream_lagged".to_owned(), message: message.to_owned() });
        }
        if let Some(done) = done {
            self.encode(done);
        }
        self.end = self.bytes.split_off(before);
        let bytes = self.encoder.finish();
        self.end.extend(bytes);
    }
}

impl UiSink {
    pub(super) fn emit(&self, event: Event) {
        let mut shared = lock(&self.0);
        shared.push(event);
        let waker = shared.waker.take();
        // Woken outside the lock: a waker is the executor's code.
        drop(shared);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for UiSink {
    fn drop(&mut self) {
        let mut shared = lock(&self.0);
        shared.end(None);
        let waker = shared.waker.take();
        drop(shared);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Stream for UiStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut shared = lock(&this.shared);
        if !shared.bytes.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut shared.bytes).into())));
        }
        if !shared.ended {
            shared.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let end = std::mem::take(&mut shared.end);
        // The future is the application's code, and is polled outside the lock.
        drop(shared);
        if let Some(until) = &mut this.until {
            if until.as_mut().poll(cx).is_pending() {
                lock(&this.shared).end = end;
                return Poll::Pending;
            }
            this.until = None;
        }
        Poll::Ready((!end.is_empty()).then(|| Ok(end.into())))
    }
}

impl Drop for UiStream {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.abandoned = true;
        (shared.bytes, shared.end) = (Vec::new(), Vec::new());
    }
}

impl fmt::Debug for UiStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UiStream").field("unread", &lock(&self.shared).bytes.len()).finish_non_exhaustive()
    }
}
